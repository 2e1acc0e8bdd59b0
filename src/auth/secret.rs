//! A password in memory: wiped when dropped, never printed. Where it came from (file, environment, `enc:v1:`) is not known here.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use zeroize::Zeroizing;

/// A clear-text password. Its bytes are wiped on drop; `Debug` shows nothing of it; comparing takes a time that depends
/// on the lengths only.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the password's bytes as a client would type them (no final NUL).
    pub fn new(password: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(password.into()))
    }

    /// The password itself, for arithmetic only: never log it, never put it into an error.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether the account has no password.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Secret {
    fn from(password: &str) -> Self {
        Self::new(password.as_bytes())
    }
}

impl From<String> for Secret {
    fn from(password: String) -> Self {
        Self::new(password.into_bytes())
    }
}

impl From<Vec<u8>> for Secret {
    fn from(password: Vec<u8>) -> Self {
        Self::new(password)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        verify_slices_are_equal(&self.0, &other.0).is_ok()
    }
}

impl Eq for Secret {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing_not_even_the_length() {
        assert_eq!(
            format!("{:?}", Secret::from("hunter2")),
            format!("{:?}", Secret::from(""))
        );
        assert!(!format!("{:?}", Some(Secret::from("hunter2"))).contains("hunter2"));
    }

    #[test]
    fn equality_is_by_content() {
        assert_eq!(Secret::from("a"), Secret::new(vec![b'a']));
        assert_ne!(Secret::from("a"), Secret::from("b"));
        assert_ne!(Secret::from("a"), Secret::from("ab"));
        assert_eq!(Secret::from(""), Secret::from(String::new()));
    }
}
