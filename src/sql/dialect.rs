//! What the scanner must know about the session that sends a statement: whose grammar it is, which
//! quotes and escapes its sql_mode allows, and which multi-byte characters may hide a quote.
//!
//! Not here: how these are found out (session variables, the server's greeting).

/// The character set of the statement's text (`character_set_client`), as far as it changes where
/// a token ends.
///
/// UTF-8, EUC and most 8-bit sets never use an ASCII byte as part of a longer character, so they
/// are all [`Charset::Plain`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Charset {
    /// No byte below 0x80 is ever part of a longer character.
    #[default]
    Plain,
    /// An 8-bit set in which this byte (0xA0 in latin1, the no-break space) separates words.
    SingleByte {
        /// The byte that the server takes for a blank.
        blank: u8,
    },
    /// `gbk`: a second byte may be `\` or a backquote.
    Gbk,
    /// `gb18030`: two-byte characters as in GBK, and four-byte characters with digits inside.
    Gb18030,
    /// `big5`: a second byte may be `\` or a backquote.
    Big5,
    /// `sjis` and `cp932`: a second byte may be `\` or a backquote.
    Sjis,
}

/// Which server's grammar a statement is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Server {
    /// MySQL (and Percona Server).
    MySql,
    /// MariaDB.
    MariaDb,
}

/// Everything outside a statement's text that decides how the text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// Whose grammar.
    pub server: Server,
    /// The server's version as one number, `major * 10000 + minor * 100 + patch` (101119, 90704);
    /// 0 when it is not known, which makes every decision that depends on it a cautious one.
    pub version: u32,
    /// `character_set_client`.
    pub charset: Charset,
    /// sql_mode holds ANSI_QUOTES: `"x"` is an identifier.
    pub ansi_quotes: bool,
    /// sql_mode holds NO_BACKSLASH_ESCAPES: `\` is an ordinary character in strings.
    pub no_backslash_escapes: bool,
}

impl Dialect {
    /// The defaults of a fresh session on `server`.
    #[must_use]
    pub const fn new(server: Server, version: u32) -> Self {
        Self {
            server,
            version,
            charset: Charset::Plain,
            ansi_quotes: false,
            no_backslash_escapes: false,
        }
    }
}

impl Charset {
    /// The set with this name, as in `SET NAMES name`; unknown names are [`Charset::Plain`].
    #[must_use]
    pub fn from_name(name: &[u8]) -> Self {
        match name.to_ascii_lowercase().as_slice() {
            b"gbk" => Self::Gbk,
            b"gb18030" => Self::Gb18030,
            b"big5" => Self::Big5,
            b"sjis" | b"cp932" => Self::Sjis,
            b"latin1" => Self::SingleByte { blank: 0xa0 },
            _ => Self::Plain,
        }
    }

    /// The set to which the collation `id` belongs (the byte or the two bytes of a log-in packet).
    #[must_use]
    pub const fn from_collation_id(id: u16) -> Self {
        match id {
            1 | 84 => Self::Big5,
            13 | 88 | 95 | 96 => Self::Sjis,
            28 | 87 => Self::Gbk,
            248..=250 => Self::Gb18030,
            5 | 8 | 15 | 31 | 47 | 48 | 49 | 94 => Self::SingleByte { blank: 0xa0 },
            _ => Self::Plain,
        }
    }
}
