//! The words that the classifier acts on, each by what it is for it (several words may mean the same).
//!
//! Not here: names of functions, and words that only the cold paths (SHOW, SET, effects) look at.

macro_rules! keywords {
    ($($(#[$doc:meta])* $kw:ident: $($text:literal)+;)*) => {
        /// A word that means something to the classifier.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Kw {
            /// Any other word.
            Name,
            $($(#[$doc])* $kw,)*
        }

        /// Every spelling, in lower case.
        pub(super) const KEYWORDS: &[(&str, Kw)] = &[$($(($text, Kw::$kw),)+)*];
    };
}

keywords! {
    // First words.
    Select: "select";
    With: "with";
    Values: "values";
    Table: "table";
    Insert: "insert";
    Replace: "replace";
    Update: "update";
    Delete: "delete";
    /// Writes whose text has no other meaning for routing.
    OtherWrite: "do" "signal" "resignal";
    Load: "load";
    Call: "call";
    Handler: "handler";
    Get: "get";
    Create: "create";
    Alter: "alter";
    Drop: "drop";
    Rename: "rename";
    Truncate: "truncate";
    Privilege: "grant" "revoke";
    Begin: "begin";
    Start: "start";
    Commit: "commit";
    Rollback: "rollback";
    Savepoint: "savepoint";
    Release: "release";
    Xa: "xa";
    Set: "set";
    Use: "use";
    Show: "show";
    Explain: "explain";
    Describe: "describe" "desc";
    Analyze: "analyze" "analyse";
    Prepare: "prepare";
    Execute: "execute";
    Deallocate: "deallocate";
    Lock: "lock";
    Unlock: "unlock";
    Backup: "backup";
    Kill: "kill";
    Flush: "flush";
    /// Administration that changes no session state.
    Admin: "optimize" "check" "checksum" "repair" "purge" "reset" "change" "stop" "install" "uninstall" "shutdown"
        "restart" "clone" "import" "cache" "help";
    Binlog: "binlog";
    // Compound statements.
    If: "if";
    Case: "case";
    Loop: "loop";
    While: "while";
    Repeat: "repeat";
    For: "for";
    Declare: "declare";
    Then: "then";
    End: "end";
    // Second words.
    Transaction: "transaction";
    Temporary: "temporary";
    /// Objects with a body of statements.
    Routine: "procedure" "function" "trigger" "event";
    Package: "package";
    /// Objects without.
    Object: "view" "database" "schema" "index" "user" "role" "server" "sequence" "tablespace" "library" "logfile";
    Work: "work";
    To: "to";
    Statement: "statement";
    Format: "format";
    ExplainOption: "extended" "partitions";
    Route: "route";
    Connection: "connection";
    Tables: "tables" "no_write_to_binlog" "local";
    // Inside queries.
    Share: "share";
    In: "in";
    Into: "into";
    From: "from" "join" "straight_join";
    Using: "using";
    JsonTable: "json_table";
    As: "as";
    Next: "next" "previous";
    Value: "value";
    SequenceColumn: "nextval" "currval";
    CalcFoundRows: "sql_calc_found_rows";
    Recursive: "recursive";
    Limit: "limit";
    Offset: "offset" "fetch";
    Union: "union" "except" "intersect";
    // System variables.
    LastIdVariable: "identity";
    DiagnosticsVariable: "warning_count" "error_count";
    ConnectionVariable: "pseudo_thread_id";
    ServerVariable: "read_only" "super_read_only" "innodb_read_only" "gtid_executed" "gtid_purged" "gtid_owned"
        "gtid_binlog_pos" "gtid_binlog_state" "gtid_current_pos" "gtid_slave_pos" "last_gtid" "gtid_seq_no";
}

impl Kw {
    /// True if a statement can start with this word.
    pub(super) fn starts_statement(self) -> bool {
        let first_words = Self::Select as u8..=Self::Declare as u8;
        first_words.contains(&(self as u8))
    }
}
