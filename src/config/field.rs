//! A value of the parsed file and the ways to read it. What is wrong with it is reported, and reads as nothing.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::problem::Severity;
use super::tree::{Context, Section, did_you_mean};
use super::{Secret, value};

/// A value in the file: where it is, what it is called, and where findings about it go.
#[derive(Clone)]
pub(super) struct Field<'a> {
    pub(super) ctx: &'a Context<'a>,
    /// Path with indices, for messages.
    pub(super) path: String,
    /// Path without indices, for `keys`.
    pub(super) schema: String,
    pub(super) offset: usize,
    pub(super) value: &'a DeValue<'a>,
}

impl<'a> Field<'a> {
    pub(super) fn error(&self, text: impl Into<String>) {
        self.ctx
            .report(Severity::Error, self.offset, &self.path, &text.into());
    }

    pub(super) fn warning(&self, text: impl Into<String>) {
        self.ctx
            .report(Severity::Warning, self.offset, &self.path, &text.into());
    }

    pub(super) fn note(&self, text: impl Into<String>) {
        self.ctx
            .report(Severity::Note, self.offset, &self.path, &text.into());
    }

    pub(super) fn env(&self, name: &str) -> Option<String> {
        (self.ctx.outside.env)(name)
    }

    /// The password that an `enc:v1:` value holds.
    pub(super) fn unseal(&self, value: &str) -> Option<Secret> {
        let key = self
            .ctx
            .key(|why| self.error(format!("cannot be decrypted: {why}")))
            .ok()?;
        let Some(key) = key else {
            return Some(Secret::from(""));
        };
        key.unseal(value)
            .map_err(|why| self.error(format!("cannot be decrypted: {why}")))
            .ok()
    }

    /// Remembers that the value is a password that everyone who can read the file knows.
    pub(super) fn saw_clear_password(&self) {
        self.ctx.saw_clear_password();
    }

    fn wrong_type<T>(&self, wanted: &str) -> Option<T> {
        let found = match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.error(format!("expected {wanted}, found {found}"));
        None
    }

    pub(super) fn is_string(&self) -> bool {
        self.value.is_str()
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.is_table()
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.is_array()
    }

    pub(super) fn string(&self) -> Option<&'a str> {
        match self.value.as_str() {
            Some(text) => Some(text),
            None => self.wrong_type("a string in quotes"),
        }
    }

    /// A string that `read` understands; its refusal is reported.
    pub(super) fn parse<T>(&self, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        read(self.string()?).map_err(|text| self.error(text)).ok()
    }

    pub(super) fn bool(&self) -> Option<bool> {
        match self.value.as_bool() {
            Some(value) => Some(value),
            None => self.wrong_type("true or false"),
        }
    }

    pub(super) fn int(&self, range: RangeInclusive<i64>) -> Option<i64> {
        let Some(digits) = self.value.as_integer() else {
            return self.wrong_type("a whole number");
        };
        match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(value) if range.contains(&value) => Some(value),
            _ => {
                self.error(format!(
                    "{digits} is out of range: {} to {}",
                    range.start(),
                    range.end()
                ));
                None
            }
        }
    }

    pub(super) fn float(&self, range: RangeInclusive<f64>) -> Option<f64> {
        let value: Option<f64> = match self.value {
            DeValue::Float(text) => text.as_str().parse().ok(),
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().parse().ok(),
            _ => return self.wrong_type("a number"),
        };
        let value = value.filter(|value| range.contains(value));
        if value.is_none() {
            self.error(format!(
                "out of range: {} to {}",
                range.start(),
                range.end()
            ));
        }
        value
    }

    pub(super) fn duration(&self, range: RangeInclusive<Duration>) -> Option<Duration> {
        if self.value.is_integer() {
            return self
                .wrong_type("a duration in quotes with its unit, such as \"10s\" or \"500ms\"");
        }
        let value = self.parse(value::duration)?;
        if range.contains(&value) {
            return Some(value);
        }
        let (low, high) = (
            value::print_duration(*range.start()),
            value::print_duration(*range.end()),
        );
        self.error(format!(
            "{} is out of range: {low} to {high}",
            value::print_duration(value)
        ));
        None
    }

    /// A path; relative ones start from the folder of the configuration file. An empty one is none.
    pub(super) fn file(&self) -> Option<PathBuf> {
        let text = self.string()?;
        if text.contains('\0') {
            self.error("a path cannot contain a NUL byte");
            return None;
        }
        (!text.is_empty()).then(|| self.ctx.resolve(text))
    }

    /// One of the words of a list, each with its value.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.string()?;
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(*value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        self.error(format!(
            "`{text}` is not one of {}{}",
            quoted(&names),
            did_you_mean(text, &names)
        ));
        None
    }

    pub(super) fn list(&self) -> Vec<Self> {
        let Some(items) = self.value.as_array() else {
            self.wrong_type::<()>("a list in [ ]");
            return Vec::new();
        };
        items
            .iter()
            .enumerate()
            .map(|(index, item)| Self {
                ctx: self.ctx,
                path: format!("{}[{index}]", self.path),
                schema: self.schema.clone(),
                offset: item.span().start,
                value: item.get_ref(),
            })
            .collect()
    }

    /// A list, or one value standing for a list of one.
    pub(super) fn one_or_list(&self) -> Vec<Self> {
        if self.is_list() {
            self.list()
        } else {
            vec![self.clone()]
        }
    }

    /// The table that the value is, with unknown keys reported. Not a table: reported, and an empty one.
    pub(super) fn section(&self) -> Section<'a> {
        let table = self.value.as_table();
        if table.is_none() {
            self.wrong_type::<()>("a table in { } or under its own [header]");
        }
        Section::new(
            self.ctx,
            table,
            self.path.clone(),
            self.schema.clone(),
            self.offset,
        )
    }
}

fn quoted(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("\"{name}\""))
        .collect::<Vec<_>>()
        .join(", ")
}
