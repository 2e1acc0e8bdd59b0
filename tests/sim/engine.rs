//! What statements do: to the memory of their connection, to the databases, and what they answer. The same code runs on the
//! model servers and on each client's shadow.

use crate::changes::{Before, Told};
use crate::lex::scan;
use crate::memory::{Memory, Previous, Transaction};
use crate::outcome::{After, Done, Outcome, Outside};
use crate::statement::{
    Assignment, Name, Select, Statement, Value, asks_of_previous, nature, parse,
};

const OK: Outcome = Outcome::Ok {
    affected: 0,
    insert_id: 0,
    schema_dropped: false,
};

/// The tables that are everywhere, with the rows that they give.
const TABLES: [(&str, usize); 5] = [
    ("t", 1),
    ("none", 0),
    ("three", 3),
    ("many", 300),
    ("late", 2),
];

/// Runs a text: its statements up to the first error. `parameters` stand for the markers.
pub fn run(
    memory: &mut Memory,
    outside: &mut dyn Outside,
    text: &[u8],
    parameters: &[String],
) -> Vec<Done> {
    let mut done = Vec::new();
    // Every statement is read as the ones before it left the session.
    let mut index = 0;
    loop {
        let scanned = scan(text, memory.reading());
        let many = scanned.statements.len() > 1;
        let Some((tag, tokens)) = scanned.statements.get(index) else {
            break;
        };
        let refused = scanned.is_open || many && !memory.multi_statements;
        let statement = if refused {
            Statement::Bogus
        } else {
            parse(tokens)
        };
        let before = memory.previous;
        let untold = Before::of(memory);
        let mentions_user_variables = tokens
            .iter()
            .any(|t| matches!(t, crate::lex::Token::User(_)));
        let (needs_primary, writes) = nature(&statement);
        let mut execution = Execution {
            memory,
            outside,
            before,
            tag: *tag,
            parameters,
        };
        let outcome = execution
            .statement(&statement)
            .unwrap_or_else(Outcome::Error);
        outcome.leave_behind(memory, &statement, *tag, many);
        let failed = matches!(
            outcome,
            Outcome::Error(_)
                | Outcome::File
                | Outcome::Rows {
                    error_after: Some(_),
                    ..
                }
        );
        done.push(Done {
            tag: *tag,
            outcome,
            needs_primary,
            writes,
            mentions_user_variables,
            asks: asks_of_previous(&statement),
            told: untold.told(memory, &statement),
            after: After::of(memory),
        });
        if failed {
            break;
        }
        index += 1;
    }
    if done.is_empty() {
        done.push(Done {
            tag: 0,
            outcome: Outcome::Error(1065),
            needs_primary: true,
            writes: false,
            mentions_user_variables: false,
            asks: false,
            told: Told::default(),
            after: After::of(memory),
        });
    }
    done
}

pub struct Execution<'a> {
    pub memory: &'a mut Memory,
    outside: &'a mut dyn Outside,
    pub before: Previous,
    pub tag: u32,
    parameters: &'a [String],
}

impl Execution<'_> {
    fn statement(&mut self, statement: &Statement) -> Result<Outcome, u16> {
        match statement {
            Statement::Select(select) => return self.select(select),
            Statement::Write | Statement::Audited => {
                self.touch_table(true)?;
                if *statement == Statement::Audited {
                    // Its trigger.
                    let zone = format!("+0{}:00", self.tag % 10);
                    self.memory.variables.insert("time_zone".to_owned(), zone);
                }
                let id = self.outside.next_insert_id();
                self.memory.insert_id = id;
                self.add_row();
                return Ok(Outcome::Ok {
                    affected: 1,
                    insert_id: id,
                    schema_dropped: false,
                });
            }
            Statement::Load => {
                self.touch_table(true)?;
                return Ok(Outcome::File);
            }
            Statement::Begin { read_only } => {
                self.commit();
                self.open(*read_only);
            }
            Statement::Commit => self.commit(),
            Statement::Rollback => self.memory.transaction = None,
            Statement::Savepoint | Statement::Do => {}
            Statement::Set(list) => self.set(list)?,
            Statement::SetOneShot(read_only) => {
                if self.memory.transaction.is_some() {
                    return Err(1568);
                }
                self.memory.one_shot = Some(*read_only);
            }
            Statement::SetSessionTransaction(read_only) => {
                let value = u8::from(*read_only).to_string();
                self.memory
                    .variables
                    .insert("transaction_read_only".to_owned(), value);
            }
            Statement::Use(schema) => self.use_schema(schema)?,
            Statement::CreateTemporary(name) => {
                let name = self.resolve(name)?;
                if !self.memory.temporary.insert(name) {
                    return Err(1050);
                }
            }
            Statement::CreateTable(name) => {
                let name = self.resolve(name)?;
                self.commit();
                if !self.outside.databases().tables.insert(name) {
                    return Err(1050);
                }
            }
            Statement::DropTable {
                temporary,
                if_exists,
                name,
            } => {
                if !temporary {
                    self.commit();
                }
                let name = self.resolve(name)?;
                let mut dropped = self.memory.temporary.remove(&name);
                if !dropped && !temporary {
                    dropped = self.outside.databases().tables.remove(&name);
                }
                if !dropped && !if_exists {
                    return Err(1051);
                }
            }
            Statement::RenameTable(from, to) => {
                let (from, to) = (self.resolve(from)?, self.resolve(to)?);
                if !self.memory.temporary.contains(&from) {
                    return Err(1146);
                }
                if self.memory.temporary.contains(&to) {
                    return Err(1050);
                }
                self.memory.temporary.remove(&from);
                self.memory.temporary.insert(to);
            }
            Statement::CreateDatabase(name) => {
                self.commit();
                if !self.outside.databases().names.insert(name.clone()) {
                    return Err(1007);
                }
            }
            Statement::DropDatabase(name) => return self.drop_database(name),
            Statement::LockTables => {
                self.commit();
                self.memory.tables_locked = true;
            }
            Statement::UnlockTables => {
                if std::mem::take(&mut self.memory.tables_locked) {
                    self.commit();
                }
            }
            Statement::ShowNoWarnings => return Ok(Outcome::one_row("no warnings".to_owned())),
            Statement::ShowWarnings => {
                let value = self.before.warnings_text();
                return Ok(Outcome::one_row(value));
            }
            Statement::Prepare(name, text) => {
                self.memory.named.insert(name.clone(), text.clone());
            }
            Statement::Execute(name) => {
                let text = self.memory.named.get(name).cloned().ok_or(1243_u16)?;
                let scanned = scan(&text, self.memory.reading());
                let tokens = scanned.statements.first().map(|(_, tokens)| tokens);
                return self.statement(&parse(tokens.map_or(&[], Vec::as_slice)));
            }
            Statement::Deallocate(name) => {
                self.memory.named.remove(name).ok_or(1243_u16)?;
            }
            Statement::Call => {
                let schema = self.memory.schema.clone().ok_or(1046_u16)?;
                self.memory.temporary.insert((schema, "of_call".to_owned()));
                self.memory
                    .user_variables
                    .insert("of_call".to_owned(), self.tag.to_string());
            }
            Statement::Bogus => return Err(1064),
        }
        Ok(OK)
    }

    fn resolve(&self, name: &Name) -> Result<(String, String), u16> {
        match (&name.0, &self.memory.schema) {
            (Some(schema), _) | (None, Some(schema)) => Ok((schema.clone(), name.1.clone())),
            (None, None) => Err(1046),
        }
    }

    fn select(&mut self, select: &Select) -> Result<Outcome, u16> {
        let mut rows = 1;
        let mut error_after = None;
        if let Some(from) = &select.from {
            let name = self.resolve(from)?;
            let known = TABLES.iter().find(|(table, _)| *table == name.1);
            let exists = self.memory.temporary.contains(&name)
                || known.is_some()
                || self.outside.databases().tables.contains(&name);
            if !exists {
                return Err(1146);
            }
            self.touch_table(false)?;
            rows = known.map_or(1, |(_, rows)| *rows);
            error_after = (name.1 == "late").then_some(rows);
        }
        let mut values = Vec::new();
        for column in &select.columns {
            values.push(self.value(column)?);
        }
        let value = values.join(",");
        if let Some(name) = &select.into {
            self.memory.user_variables.insert(name.clone(), value);
            return Ok(Outcome::Ok {
                affected: 1,
                insert_id: 0,
                schema_dropped: false,
            });
        }
        Ok(Outcome::Rows {
            rows,
            value,
            error_after,
        })
    }

    /// A base table is read or written: a transaction may begin, SET TRANSACTION is used up.
    fn touch_table(&mut self, writes: bool) -> Result<(), u16> {
        let read_only = match (&self.memory.transaction, self.memory.one_shot) {
            (Some(transaction), _) => transaction.read_only,
            (None, Some(read_only)) => read_only,
            (None, None) => self.memory.variables["transaction_read_only"] == "1",
        };
        if writes && read_only {
            return Err(1792);
        }
        if self.memory.transaction.is_none() {
            self.memory.one_shot = None;
            if !self.memory.autocommit {
                self.memory.transaction = Some(Transaction {
                    read_only,
                    rows: Vec::new(),
                });
            }
        }
        Ok(())
    }

    pub fn add_row(&mut self) {
        match &mut self.memory.transaction {
            Some(transaction) => transaction.rows.push(self.tag),
            None => self.outside.committed(&[self.tag]),
        }
    }

    fn open(&mut self, read_only: bool) {
        let by_session = self.memory.variables["transaction_read_only"] == "1";
        let one_shot = self.memory.one_shot.take();
        self.memory.transaction = Some(Transaction {
            read_only: read_only || one_shot.unwrap_or(by_session),
            rows: Vec::new(),
        });
    }

    fn commit(&mut self) {
        if let Some(transaction) = self.memory.transaction.take() {
            self.outside.committed(&transaction.rows);
        }
    }

    fn use_schema(&mut self, schema: &str) -> Result<(), u16> {
        if !self.outside.databases().names.contains(schema) {
            return Err(1049);
        }
        self.memory.schema = Some(schema.to_owned());
        Ok(())
    }

    fn drop_database(&mut self, name: &str) -> Result<Outcome, u16> {
        self.commit();
        let databases = self.outside.databases();
        if !databases.names.remove(name) {
            return Err(1008);
        }
        databases.tables.retain(|(schema, _)| schema != name);
        let schema_dropped = self.memory.schema.as_deref() == Some(name);
        if schema_dropped {
            self.memory.schema = None;
        }
        Ok(Outcome::Ok {
            affected: 0,
            insert_id: 0,
            schema_dropped,
        })
    }

    /// All values are found before the first is set, as both servers do it.
    fn set(&mut self, list: &[Assignment]) -> Result<(), u16> {
        let mut values = Vec::new();
        for assignment in list {
            values.push(match assignment {
                Assignment::User(_, value) => self.value(value)?,
                Assignment::Variable(name, value) => {
                    let default = match name.as_str() {
                        "autocommit" => "1",
                        "last_insert_id" => "0",
                        _ => {
                            if !self.memory.variables.contains_key(name) {
                                return Err(1193);
                            }
                            self.memory.default_of(name).unwrap_or("utf8mb4")
                        }
                    };
                    match value {
                        Value::Word(word) if word == "default" => default.to_owned(),
                        Value::Word(word) => word.clone(),
                        value => self.value(value)?,
                    }
                }
                Assignment::Global | Assignment::Names(..) | Assignment::CharacterSet(_) => {
                    String::new()
                }
            });
        }
        for (assignment, value) in list.iter().zip(values) {
            match assignment {
                // A variable of Atlas's own, which no client has a name for: it is as good as gone.
                Assignment::User(name, _)
                    if value == "NULL" && name.trim_start_matches('@').starts_with("atlas ") =>
                {
                    self.memory.user_variables.remove(name);
                }
                Assignment::User(name, _) => {
                    self.memory.user_variables.insert(name.clone(), value);
                }
                Assignment::Variable(name, _) if name == "autocommit" => {
                    let on = matches!(value.as_str(), "1" | "on" | "true");
                    if on && !self.memory.autocommit {
                        self.commit();
                    }
                    self.memory.autocommit = on;
                }
                Assignment::Variable(name, _) if name == "last_insert_id" => {
                    self.memory.insert_id = value.parse().map_err(|_| 1231_u16)?;
                }
                Assignment::Variable(name, _) => {
                    self.memory.variables.insert(name.clone(), value);
                }
                Assignment::Global => {}
                Assignment::Names(charset, collation) => self.memory.set_names(
                    charset.as_deref().unwrap_or("utf8mb4"),
                    collation.as_deref(),
                ),
                Assignment::CharacterSet(charset) => {
                    self.memory
                        .set_character_set(charset.as_deref().unwrap_or("utf8mb4"));
                }
            }
        }
        Ok(())
    }

    pub fn value(&mut self, value: &Value) -> Result<String, u16> {
        Ok(match value {
            // What a text means hangs on the character set in which it came, unless it is ASCII.
            Value::Text(text) if text.is_ascii() => String::from_utf8_lossy(text).into_owned(),
            Value::Text(text) => {
                let hex: String = text.iter().map(|b| format!("{b:02x}")).collect();
                format!("{hex}:{}", self.memory.variables["character_set_client"])
            }
            Value::Word(word) if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                word.clone()
            }
            Value::Word(word) if word == "null" => "NULL".to_owned(),
            Value::Word(_) => return Err(1054),
            Value::User(name) => self
                .memory
                .user_variables
                .get(name)
                .cloned()
                .unwrap_or_else(|| "NULL".to_owned()),
            Value::System(name) => self.memory.variable(name).ok_or(1193_u16)?,
            Value::Assign(name, inner) => {
                let value = self.value(inner)?;
                self.memory
                    .user_variables
                    .insert(name.clone(), value.clone());
                value
            }
            Value::Concat(parts) => {
                let mut text = String::new();
                for part in parts {
                    text += &self.value(part)?;
                }
                text
            }
            // One marker a statement is all that the model needs.
            Value::Marker => self.parameters.join(","),
            Value::Call(name, arguments) => self.call(name, arguments)?,
        })
    }
}

/// The file of a LOAD DATA LOCAL has come.
pub fn loaded(memory: &mut Memory, outside: &mut dyn Outside, tag: u32) -> Outcome {
    let mut execution = Execution {
        before: memory.previous,
        memory,
        outside,
        tag,
        parameters: &[],
    };
    execution.add_row();
    execution.memory.previous.affected = 1;
    Outcome::Ok {
        affected: 1,
        insert_id: 0,
        schema_dropped: false,
    }
}
