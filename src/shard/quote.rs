//! What a server quotes of a text that was rewritten, in the words of the client's own: a syntax error tells where in the text it is by
//! what stands there, and by the number of the line.
//!
//! The piece is looked for in what was sent, the place where it begins is found again in the client's text, and what the server would
//! have quoted from there takes its place.

use std::ops::Range;

use super::dress::quoted_end;
use super::plan::Leg;
use super::splice::Put;
use crate::sql::{self, Dialect, Server, Tok};

/// The code of errors that quote the text.
pub const QUOTES: u16 = 1064;

/// The code of the note in which EXPLAIN prints the query.
pub(super) const PRINTED: u16 = 1003;

/// Bytes of a text that servers quote at most.
const MOST: usize = 80;

/// What follows where MariaDB leaves something out, which counts.
const MORE: &[u8] = b"...";

/// A text as its client wrote it, and as it was sent.
#[derive(Debug)]
pub(super) struct Sent {
    client: Box<[u8]>,
    sent: Box<[u8]>,
    put: Box<[Put]>,
    d: Dialect,
}

impl Sent {
    /// Nothing when the client's own text was sent.
    pub(super) fn new(client: &[u8], leg: &Leg, d: &Dialect) -> Option<Self> {
        Some(Self {
            client: without_end(client).into(),
            sent: without_end(leg.text.as_deref()?).into(),
            put: leg.put.as_slice().into(),
            d: *d,
        })
    }

    /// A message about what was sent, as one about the client's text; nothing if it quotes nothing of it.
    pub(super) fn message(&self, message: &[u8]) -> Option<Vec<u8>> {
        let close = message.iter().rposition(|b| matches!(b, b'\'' | b'"'))?;
        let sign = message.get(close)?;
        let before = message.get(..close)?;
        // What is quoted may have quotes in it.
        let opens = before.iter().enumerate().filter(|(_, b)| *b == sign);
        let (open, at) = opens.map(|(open, _)| open).find_map(|open| {
            let quoted = before.get(open + 1..)?;
            Some((open, self.find(quoted)?))
        })?;
        let (there, lines) = self.clients(at);
        let mut out = message.get(..=open)?.to_vec();
        out.extend(self.quoted(self.client.get(there..)?));
        out.extend(with_line(message.get(close..)?, lines));
        Some(out)
    }

    /// Where in the text that was sent this was quoted from.
    fn find(&self, quoted: &[u8]) -> Option<usize> {
        if quoted.is_empty() {
            return Some(self.sent.len());
        }
        // A question mark may stand for something else.
        let is_itself = |b: &&u8| b.is_ascii_graphic() && **b != b'?';
        let first = quoted.first().filter(is_itself);
        (0..=self.sent.len()).find(|at| {
            let rest = self.sent.get(*at..).unwrap_or_default();
            let may_be = first.is_none_or(|first| rest.first() == Some(first));
            may_be && self.quoted(rest) == quoted
        })
    }

    /// What a server quotes where this is the rest of the text.
    fn quoted(&self, rest: &[u8]) -> Vec<u8> {
        // The whole rest may be a megabyte.
        let rest = rest.get(..4 * MOST).unwrap_or(rest);
        let rest = rest.split(|b| *b == 0).next().unwrap_or_default();
        let mut out = Vec::with_capacity(MOST);
        // As much of it as leaves room for the dots.
        let mut short = 0;
        for chunk in rest.utf8_chunks() {
            for c in chunk.valid().chars() {
                let mut room = [0; 4];
                // Characters of four bytes are none to messages.
                let shown = if c.len_utf8() > 3 { '?' } else { c };
                out.extend_from_slice(shown.encode_utf8(&mut room).as_bytes());
                if out.len() + MORE.len() <= MOST {
                    short = out.len();
                }
            }
            out.extend(chunk.invalid().iter().map(|_| b'?'));
        }
        if out.len() > MOST {
            match self.d.server {
                Server::MariaDb => {
                    out.truncate(short);
                    out.extend_from_slice(MORE);
                }
                Server::MySql => out.truncate(MOST),
            }
        }
        out
    }

    /// A place of the text that was sent in the client's, and how many lines more are before it there.
    fn clients(&self, at: usize) -> (usize, usize) {
        // How much longer what was sent is up to here, and how much shorter.
        let (mut more, mut less, mut lines) = (0_usize, 0_usize, 0_usize);
        let client = |at: usize, more: usize, less: usize| (at + less).saturating_sub(more);
        for (place, length) in &self.put {
            let here = client(at, more, less);
            if here < place.start {
                break;
            }
            if here < place.start.saturating_add(*length) {
                return (place.start, lines);
            }
            more += length;
            less += place.len();
            if *length == 0 || place.len() > *length {
                lines += self.lines(place);
            }
        }
        (client(at, more, less), lines)
    }

    /// Ends of lines in a place of the client's text, as a server counts them.
    fn lines(&self, place: &Range<usize>) -> usize {
        let count = |place: &Range<usize>| {
            let text = self.client.get(place.clone()).unwrap_or_default();
            text.iter().filter(|b| **b == b'\n').count()
        };
        let all = count(place);
        if all == 0 || self.d.server == Server::MySql {
            return all;
        }
        // Those in texts and names are none to MariaDB.
        let tokens = sql::Tokens::new(&self.client, &self.d);
        let within = tokens
            .skip_while(|t| t.start < place.start)
            .take_while(|t| t.end <= place.end)
            .filter(|t| matches!(t.tok, Tok::Text | Tok::Name))
            .map(|t| count(&(t.start..t.end)))
            .sum();
        all.saturating_sub(within)
    }
}

/// A text without what servers leave off its end.
fn without_end(text: &[u8]) -> &[u8] {
    let is_kept = |b: &u8| !b.is_ascii_whitespace() && !matches!(b, b';' | 0x0b);
    let end = text.iter().rposition(is_kept).map_or(0, |at| at + 1);
    text.get(..end).unwrap_or_default()
}

/// The end of a message with so many added to its last number.
fn with_line(text: &[u8], more: usize) -> Vec<u8> {
    let end = text.iter().rposition(u8::is_ascii_digit).map(|at| at + 1);
    let Some(end) = end.filter(|_| more > 0) else {
        return text.to_vec();
    };
    let digits = text.get(..end).unwrap_or_default();
    let start = digits
        .iter()
        .rposition(|b| !b.is_ascii_digit())
        .map_or(0, |at| at + 1);
    let number = std::str::from_utf8(digits.get(start..).unwrap_or_default());
    let number = number.ok().and_then(|number| number.parse::<usize>().ok());
    let Some(line) = number.and_then(|number| number.checked_add(more)) else {
        return text.to_vec();
    };
    let (head, tail) = (text.get(..start), text.get(end..));
    [
        head.unwrap_or_default(),
        line.to_string().as_bytes(),
        tail.unwrap_or_default(),
    ]
    .concat()
}

/// A query as a server prints it, with the names that clients know, and without the alias that such a table has because it is called
/// otherwise there; nothing when it has none. Texts in it are values.
pub(super) fn printed<'n>(
    text: &[u8],
    known: impl Fn(&[u8]) -> Option<&'n str>,
) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let (mut at, mut is_changed) = (0, false);
    while let Some(byte) = text.get(at).copied() {
        if !matches!(byte, b'`' | b'\'') {
            out.push(byte);
            at += 1;
            continue;
        }
        let end = quoted_end(text, at);
        let quoted = text.get(at..end).unwrap_or_default();
        at = end;
        let name = quoted.strip_prefix(b"`").and_then(|q| q.strip_suffix(b"`"));
        let Some(name) = name.and_then(&known) else {
            out.extend_from_slice(quoted);
            continue;
        };
        is_changed = true;
        let quoted = format!("`{name}`");
        out.extend_from_slice(quoted.as_bytes());
        let rest = text.get(end..).and_then(|rest| rest.strip_prefix(b" "));
        if rest.is_some_and(|rest| rest.starts_with(quoted.as_bytes())) {
            at += 1 + quoted.len();
        }
    }
    is_changed.then_some(out)
}
