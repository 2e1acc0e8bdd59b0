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
    /// True for the sets in which a byte below 0x80 may belong to a longer character.
    pub(super) const fn is_wide(self) -> bool {
        !matches!(self, Self::Plain | Self::SingleByte { .. })
    }

    /// The set with this name, as in `SET NAMES name`; unknown names are [`Charset::Plain`].
    #[must_use]
    pub fn from_name(name: &[u8]) -> Self {
        let found = SETS
            .iter()
            .find(|(known, ..)| known.as_bytes().eq_ignore_ascii_case(name));
        found.map_or(Self::Plain, |(_, set, _)| *set)
    }

    /// The set to which the collation `id` belongs (the byte or the two bytes of a log-in packet).
    #[must_use]
    pub fn from_collation_id(id: u16) -> Self {
        // MariaDB's NOPAD collations are the others and 1024.
        let id = if id > 1024 { id - 1024 } else { id };
        let found = SETS.iter().find(|(.., ids)| ids.contains(&id));
        found.map_or(Self::Plain, |(_, set, _)| *set)
    }

    /// Whether a client may speak in the set of the collation `id`. Servers refuse the sets whose characters have two bytes at
    /// least: `ucs2`, `utf16`, `utf16le`, `utf32`.
    #[must_use]
    pub fn may_be_spoken(id: u16) -> bool {
        let id = if (1025..2048).contains(&id) {
            id - 1024
        } else {
            id
        };
        !WIDE.iter().any(|ids| ids.contains(&id))
    }
}

/// The collations of the sets that no client may speak in. Those from 640 on are MariaDB's alone.
const WIDE: &[std::ops::RangeInclusive<u16>] = &[
    35..=35,
    54..=56,
    60..=62,
    90..=90,
    101..=124,
    128..=151,
    159..=183,
    640..=642,
    672..=674,
    736..=738,
    2560..=u16::MAX,
];

const fn blank(blank: u8) -> Charset {
    Charset::SingleByte { blank }
}

/// Every set that is not plain, with its collations. Which byte separates words in an 8-bit set was
/// asked of MySQL 9.7 and MariaDB 10.11 byte by byte; the last three sets have no such byte, but bytes
/// that may start a comment behind `--`.
const SETS: &[(&str, Charset, &[u16])] = &[
    ("gbk", Charset::Gbk, &[28, 87]),
    ("gb18030", Charset::Gb18030, &[248, 249, 250]),
    ("big5", Charset::Big5, &[1, 84]),
    ("sjis", Charset::Sjis, &[13, 88]),
    ("cp932", Charset::Sjis, &[95, 96]),
    ("armscii8", blank(0xa0), &[32, 64]),
    ("cp1250", blank(0xa0), &[26, 34, 44, 66, 99]),
    ("dec8", blank(0xa0), &[3, 69]),
    ("geostd8", blank(0xa0), &[92, 93]),
    ("greek", blank(0xa0), &[25, 70]),
    ("hebrew", blank(0xa0), &[16, 71]),
    ("latin1", blank(0xa0), &[5, 8, 15, 31, 47, 48, 49, 94]),
    ("latin2", blank(0xa0), &[2, 9, 21, 27, 77]),
    ("latin5", blank(0xa0), &[30, 78]),
    ("latin7", blank(0xa0), &[20, 41, 42, 79]),
    ("cp852", blank(0xff), &[40, 81]),
    ("cp866", blank(0xff), &[36, 68]),
    ("keybcs2", blank(0xff), &[37, 73]),
    ("cp850", blank(b' '), &[4, 80]),
    ("hp8", blank(b' '), &[6, 72]),
    ("macroman", blank(b' '), &[39, 53]),
];
