//! What a byte starts outside strings and comments.

/// The classes of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Class {
    // The first four are the bytes of a word.
    Letter,
    High,
    Dollar,
    Digit,
    Space,
    Quote,
    DoubleQuote,
    Backquote,
    Dot,
    Open,
    Close,
    Comma,
    Equal,
    Semicolon,
    Slash,
    Star,
    Dash,
    Hash,
    At,
    Colon,
    Backslash,
    Nul,
    Other,
}

impl Class {
    #[inline]
    /// True for the bytes of unquoted names.
    pub(super) const fn is_word(self) -> bool {
        self as u8 <= Self::Digit as u8
    }
}

/// The class of each byte.
pub(super) const CLASS: [Class; 256] = {
    let mut table = [Class::Other; 256];
    let mut b = 0;
    while b < 256 {
        // The index is below 256, so the cast loses nothing.
        #[expect(clippy::cast_possible_truncation, reason = "b < 256")]
        let byte = b as u8;
        table[b] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Class::Letter,
            0x80.. => Class::High,
            b'$' => Class::Dollar,
            b'0'..=b'9' => Class::Digit,
            b'\t'..=b'\r' | b' ' => Class::Space,
            b'\'' => Class::Quote,
            b'"' => Class::DoubleQuote,
            b'`' => Class::Backquote,
            b'.' => Class::Dot,
            b'(' => Class::Open,
            b')' => Class::Close,
            b',' => Class::Comma,
            b'=' => Class::Equal,
            b';' => Class::Semicolon,
            b'/' => Class::Slash,
            b'*' => Class::Star,
            b'-' => Class::Dash,
            b'#' => Class::Hash,
            b'@' => Class::At,
            b':' => Class::Colon,
            b'\\' => Class::Backslash,
            0 => Class::Nul,
            _ => Class::Other,
        };
        b += 1;
    }
    table
};
