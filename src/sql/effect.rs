//! What a statement does to the state of its session: the vocabulary.
//!
//! Not here: finding effects in a text, and keeping or replaying state.

/// One change of session state that a statement makes when it succeeds.
///
/// Names are given as written, without quotes; a doubled quote inside a quoted name stays doubled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect<'a> {
    /// `SET [scope] name = value`, `SET @@scope.name = value`.
    SetVariable {
        /// Where the value goes.
        scope: Scope,
        /// The variable, without scope and quotes (`sql_mode`, `keycache.key_buffer_size`).
        name: &'a [u8],
        /// The new value.
        value: Value<'a>,
    },
    /// `SET @name = value`; also each `@x := …` and INTO @x with a value that cannot be replayed.
    SetUserVariable {
        /// The variable, without `@` and quotes.
        name: &'a [u8],
        /// The new value.
        value: Value<'a>,
    },
    /// `SET NAMES`; no character set means DEFAULT.
    Names {
        /// The character set; `None` for DEFAULT.
        charset: Option<&'a [u8]>,
        /// The collation, if one is given.
        collation: Option<&'a [u8]>,
    },
    /// `SET CHARACTER SET`; `None` for DEFAULT.
    CharacterSet(Option<&'a [u8]>),
    /// `SET [scope] TRANSACTION …`.
    SetTransaction {
        /// `OneShot` for the form without SESSION and GLOBAL.
        scope: Scope,
        /// The whole statement, from SET on.
        text: &'a [u8],
    },
    /// `USE name`.
    Use(&'a [u8]),
    /// `CREATE TEMPORARY TABLE … name`.
    CreateTemporary(TableName<'a>),
    /// `DROP [TEMPORARY] TABLE … name`, once for each table.
    DropTables {
        /// With the word TEMPORARY.
        temporary: bool,
        /// The table.
        table: TableName<'a>,
    },
    /// `RENAME TABLE`, `ALTER TABLE … RENAME`: a temporary table may have another name now.
    RenameTables,
    /// `PREPARE name FROM …`.
    Prepare {
        /// The statement's name.
        name: &'a [u8],
        /// Its text.
        from: Source<'a>,
    },
    /// `EXECUTE name`.
    Execute(&'a [u8]),
    /// `EXECUTE IMMEDIATE …`.
    ExecuteImmediate(Source<'a>),
    /// `DEALLOCATE PREPARE name`, `DROP PREPARE name`.
    Deallocate(&'a [u8]),
    /// `LOCK TABLES`, `LOCK INSTANCE`, `FLUSH TABLES … WITH READ LOCK`, `FLUSH TABLES … FOR EXPORT`,
    /// `BACKUP LOCK`, `BACKUP STAGE`.
    LockTables,
    /// `UNLOCK TABLES`, `UNLOCK INSTANCE`, `BACKUP UNLOCK`.
    UnlockTables,
    /// `HANDLER t OPEN`, with the name that the handler has from then on.
    HandlerOpen(&'a [u8]),
    /// `HANDLER t CLOSE`.
    HandlerClose(&'a [u8]),
    /// `CALL` or an anonymous block: may have made temporary tables and set user variables.
    Call,
    /// `SET PASSWORD`.
    SetPassword,
    /// `SET ROLE …`, the text after ROLE.
    SetRole(&'a [u8]),
    /// `DROP DATABASE name`: if it was the default database there is none now.
    DropDatabase(&'a [u8]),
    /// State may change in a way that is not known.
    Opaque,
}

/// Where PREPARE and EXECUTE IMMEDIATE have their text from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// A string literal, as written.
    Literal(&'a [u8]),
    /// A user variable, without `@` and quotes.
    Variable(&'a [u8]),
    /// Something that only the server works out.
    Other,
}

/// The name of a table as a statement has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableName<'a> {
    /// The schema in front of it; without one it is the session's.
    pub schema: Option<&'a [u8]>,
    /// The last part.
    pub name: &'a [u8],
}

/// A value in a SET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// The value exactly as written.
    pub text: &'a [u8],
    /// The same text gives the same value on another connection with the same session state:
    /// literals, DEFAULT, bare words, variables, and pure functions or parenthesised SELECTs
    /// without FROM over those.
    pub replayable: bool,
    /// Mentions a user variable.
    pub user_vars: bool,
}

/// Where a SET puts its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// This session: SESSION, LOCAL or no word.
    Session,
    /// GLOBAL.
    Global,
    /// PERSIST, PERSIST_ONLY.
    Persist,
    /// The next transaction only (SET TRANSACTION without SESSION and GLOBAL, `SET @@transaction_isolation`).
    OneShot,
}

/// A KILL statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// Only the running statement ends, the connection stays.
    pub query: bool,
    /// The connection to end (or, with `KILL QUERY ID`, never given here).
    pub id: u64,
}
