//! What is said to a server connection so that it has the session's state, and how the pieces of such texts are read.

use std::time::Duration;

/// Something to say to a connection before it is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Replay {
    /// A statement.
    Query(Vec<u8>),
    /// An assignment without its SET, so that several can be said in one statement.
    Assign(Vec<u8>),
    /// COM_INIT_DB.
    InitDb(Vec<u8>),
    /// COM_RESET_CONNECTION, because the session was reset and MySQL then forgets the log-in's character set.
    Reset,
}

impl Replay {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Query(text) | Self::Assign(text) | Self::InitDb(text) => text.len(),
            Self::Reset => 1,
        }
    }

    /// The schema that it goes to.
    pub(super) fn schema(&self) -> Option<&[u8]> {
        match self {
            Self::InitDb(name) => Some(name),
            Self::Query(_) | Self::Assign(_) | Self::Reset => None,
        }
    }
}

/// State of this key decides how texts are read.
pub(super) fn is_reading(key: &[u8]) -> bool {
    matches!(key, b"names" | b"character set" | b"sql_mode") || key.starts_with(b"character_set")
}

/// A text that reads the same under every character set and sql_mode.
pub(super) fn neutral(text: &[u8]) -> bool {
    text.is_ascii() && !text.iter().any(|b| matches!(b, b'"' | b'\\' | b'|'))
}

/// A literal number of seconds, of which servers take 1 at least and a year at most.
pub(super) fn seconds(text: &[u8]) -> Option<Duration> {
    let word = literal_word(text)?;
    let seconds: u64 = std::str::from_utf8(&word).ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds.clamp(1, 31_536_000)))
}

/// The content of a plain quoted string or of a bare word; `None` for anything more.
pub(super) fn literal_word(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii();
    let inner = match text {
        [b'\'', inner @ .., b'\''] | [b'"', inner @ .., b'"'] | [b'`', inner @ .., b'`'] => inner,
        bare => {
            if !bare.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_') {
                return None;
            }
            bare
        }
    };
    if inner
        .iter()
        .any(|b| matches!(b, b'\'' | b'"' | b'\\' | b'`'))
    {
        return None;
    }
    Some(inner.to_vec())
}

/// A value that turns a switch off; what a switch is by default is taken for off.
pub(super) fn is_off(text: &[u8]) -> bool {
    let word = literal_word(text).map(|word| word.to_ascii_lowercase());
    let offs: [&[u8]; 4] = [b"0", b"off", b"false", b"default"];
    word.is_some_and(|word| offs.contains(&word.as_slice()))
}

/// What a value for sql_mode says of ANSI_QUOTES; `None` where only the server can tell.
pub(super) fn mode_has_ansi_quotes(text: &[u8], default: Option<bool>) -> Option<bool> {
    // Modes that contain ANSI_QUOTES; all but ANSI are MariaDB's.
    const WITH: [&[u8]; 7] = [
        b"ansi",
        b"ansi_quotes",
        b"db2",
        b"maxdb",
        b"mssql",
        b"oracle",
        b"postgresql",
    ];
    mode_has(&WITH, text, default)
}

/// What it says of whether values are refused that a column cannot hold.
pub(super) fn mode_is_strict(text: &[u8], default: Option<bool>) -> Option<bool> {
    const WITH: [&[u8]; 3] = [b"strict_trans_tables", b"strict_all_tables", b"traditional"];
    mode_has(&WITH, text, default)
}

fn mode_has(with: &[&[u8]], text: &[u8], default: Option<bool>) -> Option<bool> {
    let word = literal_word(text)?;
    if word.eq_ignore_ascii_case(b"default") && !text.starts_with(b"'") {
        return default;
    }
    if word.iter().all(u8::is_ascii_digit) && !word.is_empty() {
        return None;
    }
    Some(word.split(|b| *b == b',').any(|m| {
        let mode = m.trim_ascii().to_ascii_lowercase();
        with.contains(&mode.as_slice())
    }))
}
