//! Bytes of a statement to facts: what kind it is, what it contains, what session state it changes.
//!
//! There is no syntax tree here: a scanner walks tokens, and a few words decide. The statements of
//! MySQL 8 to 9.7 and of MariaDB 10.11 are known. Where a text can be read in two ways, or a word is not
//! known, the answer is the one that sends the statement to the primary:
//!
//! * A batch goes to the primary, even one of reads only.
//! * A call of anything but a built-in function of that server and version may write.
//! * SHOW and `information_schema` may be answered by a replica where they tell of definitions; what
//!   tells of a session, a server or replication may not.
//! * A hint never moves a write.
//!
//! | module | subject |
//! | --- | --- |
//! | `dialect` | what outside the text decides how it is read |
//! | `scan` | tokens, comments, version comments |
//! | `word`, `keyword`, `function` | the known words, found through one table |
//! | `head`, `block` | the kind by the first words; where a statement with a body ends |
//! | `classify` | kind and traits in one pass; `schema`: the servers' own tables |
//! | `counts` | whether FOUND_ROWS() gives another number than that of the rows |
//! | `plain` | the same for the plainest statements, which are the most |
//! | `statement`, `traits`, `reason` | the answer, and the rule that reads it |
//! | `hint` | routing comments |
//! | `effect`, `effects`, `set`, `value` | what changes in the session; a cold path over a `cursor` |
//! | `literal` | strings and names, to bytes and back |
//! | `local` | KILL and EXPLAIN ROUTE |
//! | `locks` | user locks that a statement takes or releases |
//! | `answered` | questions that are answered in the text |
//! | `digest` | the form in which statements of a kind look alike |
//! | `bare` | what rules look at |
//!
//! Not here: anything that needs a schema.

mod answered;
mod area;
mod bare;
mod block;
mod classify;
mod counts;
mod cursor;
mod dialect;
mod digest;
mod effect;
mod effects;
mod function;
mod head;
mod hint;
mod keyword;
mod literal;
mod local;
mod locks;
mod plain;
mod reason;
mod same;
mod scan;
mod schema;
mod set;
mod statement;
mod traits;
mod value;
mod word;

#[cfg(test)]
mod tests;

pub use answered::{Answered, Answers, answered};
pub use area::{
    AreaQuestion, CONDITION_ITEMS, ConditionItem, ConditionNumber, StatementItem, area_question,
};
pub use bare::{Texts, bare, calls_sleep, lacks_where, pieces, prepared_text, prepared_texts};
pub(crate) use classify::readings_agree;
pub use classify::{classify, classify_prefix};
pub use dialect::{Charset, Dialect, Server};
pub use digest::{digest, normalise};
pub use effect::{Effect, Kill, Scope, Source, TableName, Value};
pub use effects::effects;
pub use literal::{decode, push_name, push_string};
pub use local::{
    asks_schema, explain_route_target, kill_target, kills_query, names_release,
    releases_connection, uses_tables,
};
pub use locks::{LockName, LockUse, lock_use};
pub use reason::Reason;
pub use same::gives_the_same;
pub use scan::{Tok, Token, Tokens};
pub use statement::{Hint, Kind, Statement};
pub use traits::Traits;
