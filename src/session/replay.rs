//! What is said to a server connection so that it has the session's state, and how the pieces of such texts are read.

/// Something to say to a connection before it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// A statement.
    Query(Vec<u8>),
    /// COM_INIT_DB.
    InitDb(Vec<u8>),
    /// COM_SET_OPTION.
    SetOption(u16),
    /// COM_RESET_CONNECTION, because the other connection was reset and MySQL then forgets the log-in's character set.
    Reset,
}

impl Replay {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Query(text) | Self::InitDb(text) => text.len(),
            Self::SetOption(_) | Self::Reset => 2,
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
