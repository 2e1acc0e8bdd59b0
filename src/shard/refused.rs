//! Why a statement is not run.

use std::borrow::Cow;
use std::fmt;

/// See the module's words: what follows `Proxy Warning - Sharing Hit Multi Dbgroup Not Support SQL: `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(Cow<'static, str>);

impl Refused {
    /// With this reason, and a hint where there is one.
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self(Cow::Owned(reason.into()))
    }

    /// The same with a hint, where it has none: to say which rows of a table with this shard key are meant.
    pub(super) fn with_key(&self, key: &str) -> Self {
        if self.0.contains(": ") {
            self.clone()
        } else {
            Self::new(format!("{}: say which with {key} = ...", self.0))
        }
    }

    /// A text is prepared or executed by SQL.
    pub const PREPARE: Self = Self(Cow::Borrowed(
        "PREPARE and EXECUTE of a text that names a sharded table: let the client library prepare it",
    ));

    /// It names tables that no group has all of.
    pub const UNSHARDED: Self = Self(Cow::Borrowed(
        "a sharded and an unsharded table that are not in the same group: ask them apart, or have the one in every group and list it in `global_tables`",
    ));

    /// It is not known how the text is read.
    pub const QUOTES: Self = Self(Cow::Borrowed(
        "it is not known whether \"...\" is a name or a string in this session: write '...' or `...`, or SET sql_mode",
    ));

    /// It is not known what an unqualified name means.
    pub const SCHEMA: Self = Self(Cow::Borrowed(
        "it is not known which schema this session is in: say USE",
    ));

    /// The text is too long.
    pub const LONG: Self = Self(Cow::Borrowed("it is longer than 1 MiB: split it"));

    /// The configuration has changed.
    pub const GONE: Self = Self(Cow::Borrowed(
        "its table is not sharded any more: prepare the statement again",
    ));

    /// The configuration, or what was found on the servers, has changed.
    pub const NEW: Self = Self(Cow::Borrowed(
        "a table that it names may be sharded or in every group now: prepare the statement again",
    ));

    /// COM_FIELD_LIST.
    pub const FIELDS: Self = Self(Cow::Borrowed(
        "the columns of a sharded table by COM_FIELD_LIST: say SHOW COLUMNS FROM",
    ));

    /// Long data.
    pub const LONG_DATA: Self = Self(Cow::Borrowed(
        "parameters sent ahead of the execution: the shard is known with all of them only",
    ));

    /// Several executions at once.
    pub const BULK: Self = Self(Cow::Borrowed(
        "many executions in one command: execute the statement for one row after the other",
    ));

    /// An execution for several shards.
    pub const SEVERAL: Self = Self(Cow::Borrowed(
        "a prepared statement whose rows are on several shards, in a session that needs its own connection for it: say which with the shard key, or send it as a text",
    ));

    /// A write to several physical tables where there is one connection only.
    pub const PARTS: Self = Self(Cow::Borrowed(
        "a write to several physical tables: send it for the rows of one after the other",
    ));

    /// A write over several groups in a session whose state others cannot have.
    pub const ACROSS: Self = Self(Cow::Borrowed(
        "a write over several groups in a session that needs its own connection for it, or that does more than change rows: say which with the shard key, or send it in a session of its own",
    ));

    /// There is nobody to write decisions down.
    pub const NO_LOG: Self = Self(Cow::Borrowed(
        "a write over several groups, whose decision cannot be written down: see the log of Atlas for what is wrong with `decision_log` in [sharding]",
    ));

    /// An INSERT whose columns are not known.
    pub const UNLISTED: Self = Self(Cow::Borrowed(
        "INSERT without the names of the columns, of a table whose columns are not known yet: name them",
    ));

    /// No ids can be generated.
    pub const NO_NODE: Self = Self(Cow::Borrowed(
        "no key can be generated now: this instance has no node number that the primary of the table's first group confirms, or its clock has stepped back; try again, or give the key",
    ));

    /// Ids are needed where none are generated.
    pub const IDS: Self = Self(Cow::Borrowed(
        "a key is to be generated for it, which is known when it is run only",
    ));

    /// What a query asks belongs to one server.
    pub const ONE_SERVER: Self = Self(Cow::Borrowed(
        "what it asks belongs to one server (a variable that it sets, a lock, a function that is not built in), and its rows are on several shards",
    ));

    /// Answers that do not fit together.
    pub const UNLIKE: Self = Self(Cow::Borrowed(
        "the shards answer with other columns: their tables are not defined alike",
    ));

    /// Too much to be collected.
    pub const TOO_BIG: Self = Self(Cow::Borrowed(
        "its rows, from several shards, are more than `merge_memory` in [sharding] allows: ask for fewer, or page by key",
    ));

    /// The reason and the hint.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Proxy Warning - Sharing Hit Multi Dbgroup Not Support SQL: {}",
            self.0
        )
    }
}
