//! What is said to a server connection so that it has the session's state, and how the pieces of such texts are read.

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
