//! Version comments: whose `/*! … */` text runs as code.
//!
//! MySQL 9.7 and MariaDB 10.11 were asked for every rule here; the change to six digits in MySQL 8.1
//! is told in the manual's "Comments" page.

use super::{Dialect, Server};

/// A comment that starts with `!` or `M!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// The text behind the marker is code on this server; if not it is a comment.
    pub(super) runs: bool,
    /// How long `!`, `M!` and the version number are.
    pub(super) marker_len: usize,
    /// The server's version is not known and decides.
    pub(super) doubtful: bool,
}

/// Every server that is spoken to today runs comments up to this version.
const OLDEST: u32 = 5_00_00;
/// MariaDB takes what is for these versions of MySQL for a comment: MySQL's newer syntax is not its own.
const NOT_FOR_MARIADB: std::ops::RangeInclusive<u32> = 5_07_00..=9_99_99;
/// From here on MySQL reads six digits as one number, if a blank follows them.
const SIX_DIGITS_SINCE: u32 = 8_01_00;

/// What the comment is whose text (behind `/*`) starts here; `None` for a plain comment.
pub(super) fn version(text: &[u8], d: &Dialect) -> Option<Version> {
    let (for_mariadb, digits) = match text {
        [b'!', rest @ ..] => (false, rest),
        [b'M', b'!', rest @ ..] if d.server == Server::MariaDb => (true, rest),
        _ => return None,
    };
    let mark_len = text.len() - digits.len();
    let len = number_len(digits, d);
    let number = digits
        .get(..len)?
        .iter()
        .fold(0, |n, b| n * 10 + u32::from(b - b'0'));
    let excluded = d.server == Server::MariaDb && !for_mariadb && NOT_FOR_MARIADB.contains(&number);
    let undecided = d.version == 0 && number > OLDEST && !excluded;
    Some(Version {
        runs: !excluded && (number <= d.version || number <= OLDEST || undecided),
        marker_len: mark_len + len,
        doubtful: undecided,
    })
}

/// How many digits make the version number: none, five or six.
fn number_len(text: &[u8], d: &Dialect) -> usize {
    let digits = text
        .iter()
        .take(6)
        .take_while(|b| b.is_ascii_digit())
        .count();
    let blank_follows = matches!(text.get(6), Some(b'\t'..=b'\r' | b' '));
    match (digits, d.server) {
        (0..=4, _) => 0,
        (6, Server::MariaDb) => 6,
        (6, Server::MySql)
            if blank_follows && (d.version == 0 || d.version >= SIX_DIGITS_SINCE) =>
        {
            6
        }
        _ => 5,
    }
}
