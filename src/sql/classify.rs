//! The bytes of a statement to its kind and traits.

use super::{Dialect, Hint, Kind, Statement, Traits};

/// Kind, traits and hint of a statement text.
#[must_use]
pub fn classify<'a>(sql: &'a [u8], d: &Dialect) -> Statement<'a> {
    let _ = d;
    let lower = sql.to_ascii_lowercase();
    let has = |s: &str| memchr::memmem::find(&lower, s.as_bytes()).is_some();
    let body = skip_comments(&lower);
    let word_len = body.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let mut traits = Traits::NONE;
    let kind = match body.get(..word_len).unwrap_or_default() {
        b"select" | b"table" | b"values" => Kind::Read,
        b"with" if !has("insert") && !has("update") && !has("delete") && !has("replace") => {
            Kind::Read
        }
        b"insert" | b"update" | b"delete" | b"replace" | b"load" | b"call" | b"do" | b"handler" => {
            Kind::Write
        }
        b"create" | b"alter" | b"drop" | b"truncate" | b"rename" | b"grant" | b"revoke" => {
            Kind::Ddl
        }
        b"begin" | b"start" => Kind::Begin,
        b"commit" => Kind::Commit,
        b"rollback" => Kind::Rollback,
        b"savepoint" | b"release" => Kind::Savepoint,
        b"xa" => Kind::Xa,
        b"set" => Kind::Set,
        b"use" => Kind::Use,
        b"show" => Kind::Show,
        b"explain" | b"desc" | b"describe" => Kind::Explain,
        b"prepare" => Kind::Prepare,
        b"execute" => Kind::Execute,
        b"deallocate" => Kind::Deallocate,
        b"lock" => Kind::Lock,
        b"unlock" => Kind::Unlock,
        b"kill" => Kind::Kill,
        b"" if body.is_empty() => Kind::Empty,
        _ => Kind::Unknown,
    };
    for (text, t) in [
        ("for update", Traits::LOCKING),
        ("for share", Traits::LOCKING),
        ("lock in share", Traits::LOCKING),
        ("into", Traits::INTO),
        ("last_insert_id", Traits::LAST_INSERT_ID),
        ("_lock", Traits::LOCK_FUNCTION),
        ("connection_id", Traits::CONNECTION_ID),
        ("row_count", Traits::DIAGNOSTICS),
        ("found_rows", Traits::DIAGNOSTICS),
        ("@", Traits::USER_VAR_READ),
        (":=", Traits::USER_VAR_WRITE),
        ("/*!", Traits::DOUBTFUL),
    ] {
        if has(text) {
            traits |= t;
        }
    }
    if body.strip_suffix(b";").unwrap_or(body).contains(&b';') {
        traits |= Traits::MULTI;
    }
    let has_effects = matches!(
        kind,
        Kind::Set | Kind::Use | Kind::Ddl | Kind::Prepare | Kind::Lock | Kind::Unlock | Kind::Write
    );
    if has_effects {
        traits |= Traits::EFFECTS;
    }
    let hint = if has("/*master*/") || has("/*primary*/") {
        Some(Hint::Primary)
    } else if has("/*slave*/") || has("/*replica*/") {
        Some(Hint::Replica)
    } else {
        None
    };
    Statement { kind, traits, hint }
}

/// The kind of a statement by its first word only, for a text of which only the first bytes are
/// here. [`Kind::Unknown`] when that is not enough.
#[must_use]
pub fn classify_prefix(first_bytes: &[u8], d: &Dialect) -> Kind {
    match classify(first_bytes, d).kind {
        kind @ (Kind::Write | Kind::Set) => kind,
        _ => Kind::Unknown,
    }
}

fn skip_comments(mut sql: &[u8]) -> &[u8] {
    loop {
        sql = sql.trim_ascii_start();
        sql = if let Some(rest) = sql.strip_prefix(b"(") {
            rest
        } else if let Some(rest) = sql.strip_prefix(b"/*") {
            memchr::memmem::find(rest, b"*/")
                .and_then(|at| rest.get(at + 2..))
                .unwrap_or_default()
        } else if sql.starts_with(b"#") || sql.starts_with(b"-- ") {
            memchr::memchr(b'\n', sql)
                .and_then(|at| sql.get(at..))
                .unwrap_or_default()
        } else {
            return sql;
        };
    }
}
