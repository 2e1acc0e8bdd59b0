//! What a mio token stands for: kind and key in one number.

use mio::Token;

use super::slots::Key;

/// Whose event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Another thread has put something into the mailbox.
    Mailbox,
    /// A listener, by its place in the worker's list.
    Listener(usize),
    /// A client.
    Client(Key),
    /// A server connection.
    Backend(Key),
    /// A deadline has come.
    Wakeup,
}

const KIND_SHIFT: u32 = 60;

impl Target {
    /// As a token.
    #[must_use]
    pub fn token(self) -> Token {
        let (kind, bits) = match self {
            Self::Mailbox => (0, 0),
            Self::Listener(index) => (1, index as u64),
            Self::Client(key) => (2, key.to_bits()),
            Self::Backend(key) => (3, key.to_bits()),
            Self::Wakeup => (4, 0),
        };
        Token(usize::try_from(kind << KIND_SHIFT | bits).unwrap_or(0))
    }

    /// From a token.
    #[must_use]
    pub fn from_token(token: Token) -> Self {
        let bits = token.0 as u64;
        let low = bits & ((1 << KIND_SHIFT) - 1);
        match bits >> KIND_SHIFT {
            1 => Self::Listener(usize::try_from(low).unwrap_or(usize::MAX)),
            2 => Self::Client(Key::from_bits(low)),
            3 => Self::Backend(Key::from_bits(low)),
            4 => Self::Wakeup,
            _ => Self::Mailbox,
        }
    }
}
