//! What a model server connection remembers of its session. Each client has a second one, its shadow: what a direct
//! connection would remember. The two are compared at every reply.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use atlas::wire::Status;

use crate::changes::Told;
use crate::lex::Reading;

/// Whose habits the servers of a world have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    MySql,
    MariaDb,
}

/// What a fresh session has on a server.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    pub flavour: Flavour,
    pub autocommit: bool,
    pub sql_mode: &'static str,
}

/// See the module's words.
#[derive(Debug, Clone)]
pub struct Memory {
    pub defaults: Defaults,
    /// The character set of the log-in packet.
    pub login_charset: &'static str,
    pub schema: Option<String>,
    /// Variables by name; the character sets and sql_mode are among them.
    pub variables: BTreeMap<String, String>,
    pub user_variables: BTreeMap<String, String>,
    pub autocommit: bool,
    pub transaction: Option<Transaction>,
    /// SET TRANSACTION waits: read only or not.
    pub one_shot: Option<bool>,
    /// Temporary tables, with their schemas.
    pub temporary: BTreeSet<(String, String)>,
    pub locks: BTreeSet<String>,
    pub tables_locked: bool,
    pub multi_statements: bool,
    pub insert_id: u64,
    /// The statement before: what SHOW WARNINGS and its kin ask about.
    pub previous: Previous,
    /// Statements prepared by text.
    pub named: BTreeMap<String, Vec<u8>>,
    pub prepared: BTreeMap<u32, Prepared>,
    pub prepared_count: u32,
    /// It was made to tell of all changes.
    pub tracks: bool,
    /// What it has not told of yet.
    pub untold: Told,
}

/// An open transaction.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    pub read_only: bool,
    /// Tags of the rows that it would add.
    pub rows: Vec<u32>,
}

/// What statements left behind for questions about them; by their tags.
#[derive(Debug, Clone, Copy, Default)]
pub struct Previous {
    /// Whose warnings SHOW WARNINGS shows.
    pub warned: u32,
    /// There are any.
    pub warns: bool,
    /// Whose rows ROW_COUNT() counts, and how many.
    pub counted: u32,
    pub affected: i64,
    /// Whose rows FOUND_ROWS() counts, and how many.
    pub found: u32,
    pub rows: i64,
}

impl Previous {
    /// The statement (or command) has left warnings, or none.
    pub fn warn(&mut self, tag: u32, warns: bool) {
        self.warned = tag;
        self.warns = warns;
    }

    /// What SHOW WARNINGS shows. Nobody can tell the empty list of one statement from that of another.
    pub fn warnings_text(&self) -> String {
        if self.warns {
            format!("warnings of {}", self.warned)
        } else {
            "no warnings".to_owned()
        }
    }

    /// FOUND_ROWS() outlives COM_RESET_CONNECTION and COM_CHANGE_USER.
    pub fn keep_found(&mut self, before: Self) {
        self.found = before.found;
        self.rows = before.rows;
    }

    pub fn counts(&mut self, tag: u32, affected: i64) {
        self.counted = tag;
        self.affected = affected;
    }
}

/// Stands for the tag of a command that is no statement: SHOW WARNINGS shows its error, while the counts stay.
pub const OF_A_COMMAND: u32 = u32::MAX;

/// A statement prepared by COM_STMT_PREPARE.
#[derive(Debug, Clone)]
pub struct Prepared {
    pub text: Vec<u8>,
    pub params: u16,
    /// Parameter types of the last execution.
    pub types: Option<Vec<u8>>,
    pub long_data: BTreeMap<u16, Vec<u8>>,
    /// Rows that an open cursor has left.
    pub cursor: Option<usize>,
    /// It was executed before (MariaDB then leaves out what the client knows).
    pub executed: bool,
}

/// Variables that exist, and their defaults.
const VARIABLES: [(&str, &str); 9] = [
    ("sql_mode", "STRICT"),
    ("time_zone", "SYSTEM"),
    ("wait_timeout", "28800"),
    ("sql_select_limit", "999"),
    ("div_precision_increment", "4"),
    ("transaction_read_only", "0"),
    ("transaction_isolation", "REPEATABLE-READ"),
    ("role", "NONE"),
    ("lc_time_names", "en_US"),
];

pub const CHARSETS: [(&str, u16); 4] =
    [("utf8mb4", 45), ("latin1", 8), ("gbk", 28), ("utf8mb3", 33)];

/// The character set of a collation id.
pub fn charset_of(id: u16) -> &'static str {
    CHARSETS
        .iter()
        .find(|(_, known)| *known == id)
        .map_or("utf8mb4", |(name, _)| name)
}

impl Memory {
    pub fn new(defaults: Defaults, login_charset: &'static str, schema: Option<String>) -> Self {
        let mut memory = Self {
            defaults,
            login_charset,
            schema,
            variables: BTreeMap::new(),
            user_variables: BTreeMap::new(),
            autocommit: defaults.autocommit,
            transaction: None,
            one_shot: None,
            temporary: BTreeSet::new(),
            locks: BTreeSet::new(),
            tables_locked: false,
            multi_statements: false,
            insert_id: 0,
            previous: Previous::default(),
            named: BTreeMap::new(),
            prepared: BTreeMap::new(),
            prepared_count: 0,
            tracks: false,
            untold: Told::default(),
        };
        for (name, value) in VARIABLES {
            memory.variables.insert(name.to_owned(), value.to_owned());
        }
        let sql_mode = defaults.sql_mode.to_owned();
        memory.variables.insert("sql_mode".to_owned(), sql_mode);
        memory.set_names(login_charset, None);
        memory
    }

    /// COM_RESET_CONNECTION. Multi-statements are a matter of the connection, not of the session, on MariaDB and MySQL alike.
    pub fn reset(&mut self) {
        let charset = match self.defaults.flavour {
            Flavour::MariaDb => self.login_charset,
            Flavour::MySql => "utf8mb4",
        };
        let multi_statements = self.multi_statements;
        let prepared_count = self.prepared_count;
        let login_charset = self.login_charset;
        let previous = self.previous;
        *self = Self::new(self.defaults, charset, self.schema.take());
        self.login_charset = login_charset;
        self.multi_statements = multi_statements;
        self.prepared_count = prepared_count;
        self.previous.keep_found(previous);
    }

    pub fn default_of(&self, name: &str) -> Option<&'static str> {
        if name == "sql_mode" {
            return Some(self.defaults.sql_mode);
        }
        VARIABLES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    pub fn set_names(&mut self, charset: &str, collation: Option<&str>) {
        let default = format!("{charset}_general_ci");
        for (name, value) in [
            ("character_set_client", charset),
            ("character_set_results", charset),
            ("collation_connection", collation.unwrap_or(&default)),
        ] {
            self.variables.insert(name.to_owned(), value.to_owned());
        }
    }

    /// The collation of the connection becomes the schema's.
    pub fn set_character_set(&mut self, charset: &str) {
        self.set_names(charset, None);
        let of_schema = match &self.schema {
            Some(schema) => format!("coll_of_{schema}"),
            None => "coll_of_server".to_owned(),
        };
        self.variables
            .insert("collation_connection".to_owned(), of_schema);
    }

    pub fn variable(&self, name: &str) -> Option<String> {
        match name {
            "autocommit" => Some(u8::from(self.autocommit).to_string()),
            _ => self.variables.get(name).cloned(),
        }
    }

    fn mode_has(&self, mode: &str) -> bool {
        self.variables["sql_mode"].split(',').any(|m| m == mode)
    }

    pub fn reading(&self) -> Reading {
        Reading {
            ansi_quotes: self.mode_has("ANSI_QUOTES"),
            no_backslash_escapes: self.mode_has("NO_BACKSLASH_ESCAPES"),
            gbk: self.variables["character_set_client"] == "gbk",
        }
    }

    pub fn status(&self) -> Status {
        let mut status = Status::NONE;
        if self.autocommit {
            status = status | Status::AUTOCOMMIT;
        }
        if let Some(transaction) = &self.transaction {
            status = status | Status::IN_TRANS;
            if transaction.read_only {
                status = status | Status::IN_TRANS_READONLY;
            }
        }
        if self.mode_has("NO_BACKSLASH_ESCAPES") {
            status = status | Status::NO_BACKSLASH_ESCAPES;
        }
        if self.defaults.flavour == Flavour::MariaDb && self.mode_has("ANSI_QUOTES") {
            status = status | Status::ANSI_QUOTES;
        }
        status
    }

    /// What must be the same wherever a statement runs.
    pub fn common(&self) -> String {
        let mut text = self.schema.clone().unwrap_or_else(|| "(none)".to_owned());
        for (name, value) in &self.variables {
            let _ = write!(text, " {name}={value}");
        }
        text
    }

    /// What must be the same where a statement mentions user variables.
    pub fn users(&self) -> String {
        self.user_variables
            .iter()
            .map(|(name, value)| format!("@{name}={value} "))
            .collect()
    }

    /// What lives on the primary's connection only.
    pub fn own(&self) -> String {
        format!(
            "autocommit={} transaction={:?} one_shot={:?} temporary={:?} locks={:?} locked={} multi={} named={:?}",
            u8::from(self.autocommit),
            self.transaction.as_ref().map(|t| (&t.rows, t.read_only)),
            self.one_shot,
            self.temporary,
            self.locks,
            self.tables_locked,
            self.multi_statements,
            self.named.keys(),
        )
    }
}
