//! What a model server tells of changed session state when it is made to, and how it is made to.

use std::collections::BTreeMap;

use crate::memory::Memory;
use crate::statement::Statement;

/// Changes that the next OK tells of.
#[derive(Debug, Clone, Default)]
pub struct Told {
    variables: BTreeMap<String, String>,
    state: bool,
}

impl Told {
    pub fn merge(&mut self, later: &Self) {
        self.variables.extend(later.variables.clone());
        self.state |= later.state;
    }

    /// The session-state block, with what the server tells everybody.
    pub fn block(&self, schema: Option<&str>) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in &self.variables {
            let mut data = Vec::new();
            for text in [name, value] {
                data.push(short(text));
                data.extend_from_slice(text.as_bytes());
            }
            block.extend([0, u8::try_from(data.len()).expect("a short entry")]);
            block.extend(data);
        }
        if let Some(schema) = schema {
            block.extend([1, short(schema) + 1, short(schema)]);
            block.extend_from_slice(schema.as_bytes());
        }
        if self.state {
            block.extend([2, 1, b'1']);
        }
        block
    }
}

fn short(text: &str) -> u8 {
    u8::try_from(text.len()).expect("a short text")
}

/// What there was before a statement.
#[derive(Debug)]
pub struct Before(Option<Box<Memory>>);

impl Before {
    pub fn of(memory: &Memory) -> Self {
        Self(memory.tracks.then(|| Box::new(memory.clone())))
    }

    pub fn told(self, memory: &Memory, statement: &Statement) -> Told {
        let Some(before) = self.0 else {
            return Told::default();
        };
        let mut told = Told::default();
        for (name, value) in &memory.variables {
            if before.variables.get(name) != Some(value) {
                told.variables.insert(name.clone(), value.clone());
            }
        }
        // Servers do not tell of those assigned by `:=` and INTO.
        let sets = !matches!(statement, Statement::Select(_));
        told.state = !told.variables.is_empty()
            || before.temporary != memory.temporary
            || before.named != memory.named
            || sets && before.user_variables != memory.user_variables;
        told
    }
}

/// What comes of a statement by which Atlas has a server tell of changes.
#[derive(Debug)]
pub enum Setup {
    Ok,
    Row([&'static str; 3]),
}

impl Setup {
    pub fn of(memory: &mut Memory, text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let setup = if text.starts_with("SELECT @@session_track_schema") {
            // Clients are shown the schema only.
            Self::Row(["1", "0", ""])
        } else if let Some(rest) = text.strip_prefix("SET SESSION session_track_state_change = ") {
            memory.tracks = !rest.starts_with("DEFAULT");
            Self::Ok
        } else if text == "DO 0" || text.starts_with("EXECUTE IMMEDIATE CONCAT(") {
            Self::Ok
        } else {
            return None;
        };
        memory.previous.counts(0, 0);
        memory.previous.warn(0, false);
        Some(setup)
    }
}
