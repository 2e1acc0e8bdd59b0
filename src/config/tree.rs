//! Walks the parsed file and collects everything that is wrong with it: reading goes on after a mistake with the default
//! value in its place, so that all mistakes come out at once. Knows no section by name; `keys` says which keys exist.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::field::Field;
use super::keys;
use super::problem::{NamedFile, Problem, Severity, on_one_line};
use super::{Outside, SealKey};

/// What all parts of one file share: its name, where its lines are, the environment, and the findings so far.
pub(super) struct Context<'a> {
    file: &'a str,
    /// Folder of the file: what relative paths start from.
    folder: PathBuf,
    /// Offsets of line ends.
    line_ends: Vec<usize>,
    pub(super) outside: Outside<'a>,
    key_file: RefCell<PathBuf>,
    /// The key for `enc:v1:` values once it was asked for; an error when it is not to be had.
    key: OnceCell<Result<Option<SealKey>, ()>>,
    problems: RefCell<Vec<(usize, Problem)>>,
    has_clear_passwords: Cell<bool>,
    input_files: RefCell<Vec<NamedFile>>,
    output_files: RefCell<Vec<NamedFile>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(text: &str, file: &'a str, outside: Outside<'a>) -> Self {
        let folder = Path::new(file)
            .parent()
            .map(Path::to_path_buf)
            .unwrap_or_default();
        let line_ends = memchr::memchr_iter(b'\n', text.as_bytes()).collect();
        Self {
            file,
            folder,
            line_ends,
            outside,
            key_file: RefCell::default(),
            key: OnceCell::new(),
            problems: RefCell::default(),
            has_clear_passwords: Cell::new(false),
            input_files: RefCell::default(),
            output_files: RefCell::default(),
        }
    }

    pub(super) fn report(&self, severity: Severity, offset: usize, key: &str, text: &str) {
        let problem = Problem {
            file: self.file.to_owned(),
            line: self.line(offset),
            key: on_one_line(key),
            severity,
            text: on_one_line(text),
        };
        self.problems.borrow_mut().push((offset, problem));
    }

    fn line(&self, offset: usize) -> usize {
        self.line_ends.partition_point(|end| *end < offset) + 1
    }

    fn named_file(&self, offset: usize, key: &str, path: PathBuf) -> NamedFile {
        let line = self.line(offset);
        let key = on_one_line(key);
        NamedFile { path, line, key }
    }

    pub(super) fn take_input_files(&self) -> Vec<NamedFile> {
        self.input_files.take()
    }

    pub(super) fn take_output_files(&self) -> Vec<NamedFile> {
        self.output_files.take()
    }

    /// Says where the key is, before the first password is read.
    pub(super) fn set_key_file(&self, path: &Path) {
        self.key_file.replace(path.to_owned());
    }

    /// The key for `enc:v1:` values; nothing when no password is needed. Why there is none goes to `told`, once.
    pub(super) fn key(&self, told: impl FnOnce(String)) -> Result<Option<&SealKey>, ()> {
        let key = self
            .key
            .get_or_init(|| (self.outside.key)(&self.key_file.borrow()).map_err(told));
        match key {
            Ok(key) => Ok(key.as_ref()),
            Err(()) => Err(()),
        }
    }

    /// A path in the file; relative ones start from its folder.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.folder.join(path)
    }

    /// Remembers that the file holds a password that everyone who can read it knows.
    pub(super) fn saw_clear_password(&self) {
        self.has_clear_passwords.set(true);
    }

    pub(super) fn has_clear_passwords(&self) -> bool {
        self.has_clear_passwords.get()
    }

    /// All findings in the order of the file.
    pub(super) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|(offset, _)| *offset);
        problems.into_iter().map(|(_, problem)| problem).collect()
    }
}

/// A table of the file.
pub(super) struct Section<'a> {
    ctx: &'a Context<'a>,
    table: Option<&'a DeTable<'a>>,
    path: String,
    schema: String,
    offset: usize,
}

impl<'a> Section<'a> {
    pub(super) fn root(ctx: &'a Context<'a>, table: &'a DeTable<'a>) -> Self {
        Self::new(ctx, Some(table), String::new(), String::new(), 0)
    }

    pub(super) fn new(
        ctx: &'a Context<'a>,
        table: Option<&'a DeTable<'a>>,
        path: String,
        schema: String,
        offset: usize,
    ) -> Self {
        let section = Self {
            ctx,
            table,
            path,
            schema,
            offset,
        };
        section.check_keys();
        section
    }

    /// Reports keys that do not exist, and notes those that this version does not act on.
    fn check_keys(&self) {
        let known = keys::children(&self.schema);
        if known == ["*"] {
            return;
        }
        for (key, _) in self.table.into_iter().flat_map(DeTable::iter) {
            let name = key.get_ref().as_ref();
            let path = join(&self.path, name);
            if !known.contains(&name) {
                let text = format!("unknown key{}", elsewhere(&self.schema, name, &known));
                self.ctx
                    .report(Severity::Error, key.span().start, &path, &text);
                continue;
            }
            let schema = join(&self.schema, name);
            let parent_is_ignored = !self.schema.is_empty() && keys::is_ignored(&self.schema);
            if keys::is_ignored(&schema) && !parent_is_ignored {
                self.ctx.report(
                    Severity::Note,
                    key.span().start,
                    &path,
                    "not acted on by this version",
                );
            }
        }
    }

    /// Whether the table stands in the file.
    pub(super) fn is_present(&self) -> bool {
        self.table.is_some()
    }

    pub(super) fn get(&self, name: &str) -> Option<Field<'a>> {
        let (key, value) = self.table?.iter().find(|(key, _)| key.get_ref() == name)?;
        Some(self.field(name, key.span(), value))
    }

    /// Every entry of a table whose keys the user chooses.
    pub(super) fn entries(&self) -> Vec<(&'a str, Field<'a>)> {
        let entries = self.table.into_iter().flat_map(DeTable::iter);
        entries
            .map(|(key, value)| {
                (
                    key.get_ref().as_ref(),
                    self.field(key.get_ref(), key.span(), value),
                )
            })
            .collect()
    }

    fn field(&self, name: &str, key: Range<usize>, value: &'a Spanned<DeValue<'a>>) -> Field<'a> {
        // A table spelled with dotted keys has no text of its own: its place is that of the key.
        let offset = if value.get_ref().is_table() {
            key.start
        } else {
            value.span().start
        };
        Field {
            ctx: self.ctx,
            path: join(&self.path, name),
            schema: join(&self.schema, name),
            offset,
            value: value.get_ref(),
        }
    }

    /// A table inside this one; absent, it reads as an empty one at the place of this one.
    pub(super) fn section(&self, name: &str) -> Self {
        match self.get(name) {
            Some(field) => field.section(),
            None => Self::new(
                self.ctx,
                None,
                join(&self.path, name),
                join(&self.schema, name),
                self.offset,
            ),
        }
    }

    /// The tables of `[[name]]`.
    pub(super) fn sections(&self, name: &str) -> Vec<Self> {
        let Some(field) = self.get(name) else {
            return Vec::new();
        };
        if field.is_table() {
            field.error(format!(
                "expected a list of tables: write [[{}]] in place of [{}]",
                field.schema, field.schema
            ));
            return Vec::new();
        }
        field.list().iter().map(Field::section).collect()
    }

    pub(super) fn missing(&self, name: &str, text: &str) {
        self.ctx.report(
            Severity::Error,
            self.offset,
            &join(&self.path, name),
            &format!("missing: {text}"),
        );
    }

    pub(super) fn error(&self, text: impl Into<String>) {
        self.ctx
            .report(Severity::Error, self.offset, &self.path, &text.into());
    }

    /// A note at the top of this table about something that does not stand in it.
    pub(super) fn note(&self, key: &str, text: &str) {
        self.ctx.report(Severity::Note, self.offset, key, text);
    }

    /// A path in the folder of the configuration file.
    pub(super) fn path_beside(&self, name: &str) -> PathBuf {
        self.ctx.resolve(name)
    }

    pub(super) fn int(&self, name: &str, range: RangeInclusive<i64>, default: i64) -> i64 {
        self.get(name)
            .and_then(|field| field.int(range))
            .unwrap_or(default)
    }

    pub(super) fn duration(
        &self,
        name: &str,
        range: RangeInclusive<Duration>,
        default: Duration,
    ) -> Duration {
        self.get(name)
            .and_then(|field| field.duration(range))
            .unwrap_or(default)
    }

    pub(super) fn bool(&self, name: &str, default: bool) -> bool {
        self.get(name)
            .and_then(|field| field.bool())
            .unwrap_or(default)
    }

    pub(super) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)], default: T) -> T {
        self.get(name)
            .and_then(|field| field.choice(choices))
            .unwrap_or(default)
    }

    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        self.get(name).and_then(|field| field.file())
    }

    /// As [`Self::file`], of a file that must be readable when the configuration is put to use.
    pub(super) fn input_file(&self, name: &str) -> Option<PathBuf> {
        self.named_file(name, &self.ctx.input_files)
    }

    /// As [`Self::file`], of a file that is written.
    pub(super) fn output_file(&self, name: &str) -> Option<PathBuf> {
        self.named_file(name, &self.ctx.output_files)
    }

    fn named_file(&self, name: &str, list: &RefCell<Vec<NamedFile>>) -> Option<PathBuf> {
        let field = self.get(name)?;
        let path = field.file()?;
        let named = self.ctx.named_file(field.offset, &field.path, path.clone());
        list.borrow_mut().push(named);
        Some(path)
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// The word of a list that was probably meant.
pub(super) fn did_you_mean(given: &str, names: &[&str]) -> String {
    keys::nearest(given, names)
        .map_or_else(String::new, |name| format!("; did you mean \"{name}\"?"))
}

/// Help for an unknown key: the nearest name here, the section that has a key of that name, or the names that exist.
fn elsewhere(schema: &str, given: &str, known: &[&str]) -> String {
    if let Some(name) = keys::nearest(given, known) {
        return format!("; did you mean `{name}`?");
    }
    let suffix = format!(".{given}");
    if let Some(key) = keys::KEYS.iter().find(|key| key.path.ends_with(&suffix)) {
        return format!("; there is `{}`", key.path);
    }
    let place = if schema.is_empty() {
        "the sections are".to_owned()
    } else {
        format!("`{schema}` has")
    };
    format!("; {place} {}", known.join(", "))
}
