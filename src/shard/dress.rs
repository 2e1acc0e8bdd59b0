//! Physical names in what servers answer, and the names that clients know in their place: in column definitions, in error messages, and
//! in the rows of statements that show what a table is like.
//!
//! A message is text with names in it, and with values of the client's, which must stay as they are. A name is therefore looked for only
//! where a message has one: behind a quote or a point, before another, and not where this error's message has its value.

use std::sync::Arc;

use super::map::Placement;
use super::plan::Leg;
use super::quote::{PRINTED, QUOTES, Sent, printed};
use crate::sql::Dialect;
use crate::wire::{Capabilities, ErrPacket, PacketWriter, Reader, TextRow};

/// Where the rows of a statement name physical tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shows {
    /// Nowhere: they are data.
    #[default]
    Data,
    /// One of the first columns has a table's name, or the only one is a text in which there are some: SHOW INDEX, EXPLAIN.
    Table,
    /// SHOW CREATE TABLE.
    Create,
    /// SHOW WARNINGS: level, code, message.
    Messages,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A column definition.
    Definition,
    /// A row.
    Row,
    /// An error.
    Error,
}

/// The names of a statement that was rewritten for a shard.
#[derive(Clone, Debug)]
pub struct Dress {
    placement: Arc<Placement>,
    group: usize,
    /// Tables and their shards.
    renamed: Vec<(usize, usize)>,
    shows: Shows,
    quotes: Quotes,
}

/// What is done with a message that quotes the statement.
#[derive(Clone, Debug, Default)]
enum Quotes {
    /// The names in it are put back.
    #[default]
    Names,
    /// It stays: somebody else knows the client's text.
    Left,
    /// The client's text is quoted.
    Of(Arc<Sent>),
}

/// A name as it is on the server, and as clients know it.
type Pair<'a> = (&'a str, &'a str);

impl PartialEq for Dress {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.placement, &other.placement)
            && (self.group, &self.renamed, self.shows) == (other.group, &other.renamed, other.shows)
    }
}

impl Eq for Dress {}

impl Dress {
    /// For the answers to a leg; nothing when no name in them can be another than the client's.
    #[must_use]
    pub fn new(placement: &Arc<Placement>, leg: &Leg) -> Option<Self> {
        let is_plain = leg.renamed.is_empty()
            && leg.text.is_none()
            && placement.schemas_of(leg.group).next().is_none();
        (!is_plain).then(|| Self {
            placement: placement.clone(),
            group: leg.group,
            renamed: leg.renamed.clone(),
            shows: leg.shows,
            quotes: Quotes::Names,
        })
    }

    /// The same for messages that may quote what this leg was sent in the place of the client's text.
    #[must_use]
    pub fn quoting(&self, client: &[u8], leg: &Leg, d: &Dialect) -> Self {
        Self {
            quotes: Sent::new(client, leg, d).map_or(Quotes::Names, |sent| Quotes::Of(sent.into())),
            ..self.clone()
        }
    }

    /// The same where messages that quote the statement are left to who knows the client's text.
    #[must_use]
    pub fn leaving_quotes(self) -> Self {
        Self {
            quotes: Quotes::Left,
            ..self
        }
    }

    /// The same names, for other rows.
    #[must_use]
    pub fn showing(&self, shows: Shows) -> Self {
        Self {
            shows,
            ..self.clone()
        }
    }

    /// Whether rows are to be looked at too.
    #[must_use]
    pub fn reads_rows(&self) -> bool {
        self.shows != Shows::Data
    }

    fn tables(&self) -> impl Iterator<Item = Pair<'_>> {
        self.renamed.iter().filter_map(|(table, shard)| {
            let table = self.placement.tables.get(*table)?;
            Some((table.shards.get(*shard)?.name.as_str(), table.name.as_str()))
        })
    }

    /// All physical tables of the group.
    fn all_tables(&self) -> impl Iterator<Item = Pair<'_>> {
        self.placement.tables.iter().flat_map(|table| {
            let shards = table.shards.iter().filter(|s| s.group == self.group);
            shards.map(|shard| (shard.name.as_str(), table.name.as_str()))
        })
    }

    fn schemas(&self) -> impl Iterator<Item = Pair<'_>> {
        self.placement.schemas_of(self.group)
    }

    /// Writes a packet with the client's names in it; false when it can go as it is.
    pub fn write(
        &self,
        part: Part,
        payload: &[u8],
        seq: u8,
        capabilities: Capabilities,
        out: &mut Vec<u8>,
    ) -> bool {
        match part {
            Part::Definition => self.definition(payload, seq, out).is_some(),
            Part::Row => self.row(payload, seq, out).is_some(),
            Part::Error => {
                let Ok(error) = ErrPacket::parse(payload) else {
                    return false;
                };
                let Some(message) = self.message(error.code, error.message) else {
                    return false;
                };
                let error = ErrPacket {
                    message: &message,
                    ..error
                };
                error.write(out, seq, capabilities);
                true
            }
        }
    }

    fn definition(&self, payload: &[u8], seq: u8, out: &mut Vec<u8>) -> Option<()> {
        let mut r = Reader::new("column definition", payload);
        r.lenenc_bytes("catalog").ok()?;
        let head = payload.get(..r.position())?;
        let schema = r.lenenc_bytes("schema").ok()?;
        let table = r.lenenc_bytes("table").ok()?;
        let original = r.lenenc_bytes("original table").ok()?;
        let known_schema = known(self.schemas(), schema);
        let known_table = known(self.tables(), table);
        let known_original = known(self.tables(), original);
        let name = r.lenenc_bytes("name").ok()?;
        let known_name = self.expression(name, |byte| matches!(byte, b'`' | b'\'' | b'"'));
        let is_known = known_schema.or(known_table).or(known_original).is_some();
        (is_known || known_name.is_some()).then_some(())?;
        let mut w = PacketWriter::begin(out, seq);
        w.bytes(head);
        w.lenenc_bytes(known_schema.map_or(schema, str::as_bytes));
        w.lenenc_bytes(known_table.map_or(table, str::as_bytes));
        w.lenenc_bytes(known_original.map_or(original, str::as_bytes));
        w.lenenc_bytes(known_name.as_deref().unwrap_or(name));
        w.bytes(r.rest());
        w.finish();
        Some(())
    }

    /// The name of a column that has no other than its expression, which was rewritten: as the client wrote it.
    ///
    /// `is_quote` says what begins something that is looked at whole.
    fn expression(&self, name: &[u8], is_quote: impl Fn(u8) -> bool) -> Option<Vec<u8>> {
        memchr::memchr(b'`', name)?;
        let mut out = Vec::with_capacity(name.len());
        let mut at = 0;
        let mut is_changed = false;
        while let Some(byte) = name.get(at).copied() {
            if !is_quote(byte) {
                out.push(byte);
                at += 1;
                continue;
            }
            let end = quoted_end(name, at);
            let inside = name.get(at + 1..end.saturating_sub(1)).unwrap_or_default();
            let is_name = byte == b'`';
            let table = known(self.tables(), inside).filter(|_| is_name);
            let rest = name.get(end..).unwrap_or_default();
            let known_as = table.or_else(|| known(self.schemas(), inside).filter(|_| is_name));
            match known_as {
                // Behind it stands what the client wrote.
                Some(_) if table.is_some() && rest.starts_with(AS) => at = end + AS.len(),
                Some(known) => {
                    out.extend_from_slice(known.as_bytes());
                    at = end;
                }
                None => {
                    out.extend_from_slice(name.get(at..end).unwrap_or_default());
                    at = end;
                }
            }
            is_changed |= known_as.is_some();
        }
        is_changed.then_some(out)
    }

    fn row(&self, payload: &[u8], seq: u8, out: &mut Vec<u8>) -> Option<()> {
        // The first value of these is never an empty text.
        if payload.first() == Some(&0) {
            return self.binary_row(payload, seq, out);
        }
        let values: Vec<Option<&[u8]>> = TextRow::new(payload).collect::<Result<_, _>>().ok()?;
        let mut is_changed = false;
        let code = values.get(1).copied().flatten().and_then(number);
        let is_single = values.len() == 1;
        let values: Vec<Option<Vec<u8>>> = values
            .into_iter()
            .enumerate()
            .map(|(at, value)| {
                let value = value?;
                let new = match (self.shows, at) {
                    (Shows::Table, _) if is_single => self.replaced(value, 0),
                    (Shows::Table, 0..=2) | (Shows::Create, 0) => {
                        known(self.tables(), value).map(|name| name.as_bytes().to_vec())
                    }
                    (Shows::Create, 1) => self.created(value),
                    (Shows::Messages, 2) => code.and_then(|code| self.message(code, value)),
                    _ => None,
                };
                is_changed |= new.is_some();
                Some(new.unwrap_or_else(|| value.to_vec()))
            })
            .collect();
        if !is_changed {
            return None;
        }
        let mut w = PacketWriter::begin(out, seq);
        for value in values {
            match value {
                None => w.u8(0xfb),
                Some(value) => w.lenenc_bytes(&value),
            }
        }
        w.finish();
        Some(())
    }

    /// A row in the binary protocol.
    fn binary_row(&self, payload: &[u8], seq: u8, out: &mut Vec<u8>) -> Option<()> {
        // A mark and the bits of NULL, of no more columns than have room in two bytes.
        let mut r = Reader::new("binary row", payload);
        match self.shows {
            Shows::Create => {
                let head = r.bytes(2, "NULL bits").ok()?;
                let name = r.lenenc_bytes("table").ok()?;
                let text = r.lenenc_bytes("definition").ok()?;
                let known_as = known(self.tables(), name).map(str::as_bytes);
                let created = self.created(text);
                (known_as.is_some() || created.is_some()).then_some(())?;
                let mut w = PacketWriter::begin(out, seq);
                w.bytes(head);
                w.lenenc_bytes(known_as.unwrap_or(name));
                w.lenenc_bytes(created.as_deref().unwrap_or(text));
                w.bytes(r.rest());
                w.finish();
            }
            Shows::Table => {
                // What is in front of the name is numbers and short words: the first text that is one.
                let found = self.tables().find_map(|(there, known)| {
                    let length = u8::try_from(there.len()).ok().filter(|len| *len < 0xfb)?;
                    let value = [&[length], there.as_bytes()].concat();
                    let at = payload.windows(value.len()).position(|w| w == value)?;
                    Some((at, at + value.len(), known))
                });
                let (at, end, known) = found?;
                let mut w = PacketWriter::begin(out, seq);
                w.bytes(payload.get(..at)?);
                w.lenenc_bytes(known.as_bytes());
                w.bytes(payload.get(end..)?);
                w.finish();
            }
            Shows::Data | Shows::Messages => return None,
        }
        Some(())
    }

    /// The message of an error with the client's names in it; nothing when it has none.
    #[must_use]
    pub fn message(&self, code: u16, message: &[u8]) -> Option<Vec<u8>> {
        let behind = |mark: &[u8]| {
            let at = message.windows(mark.len()).rposition(|w| w == mark);
            at.map(|at| at + mark.len())
        };
        if code == QUOTES {
            // What is quoted is within quotes itself, and may be cut off within one.
            let with_names = || self.expression(message, |byte| byte == b'`');
            return match &self.quotes {
                Quotes::Left => None,
                Quotes::Names => with_names(),
                Quotes::Of(sent) => sent.message(message).or_else(with_names),
            };
        }
        if code == PRINTED {
            let of =
                |name: &[u8]| known(self.tables(), name).or_else(|| known(self.schemas(), name));
            return printed(message, of);
        }
        // A value of the client's stands in front of the names, or there is nothing else.
        let from = match code {
            1062 | 1586 | 1859 => behind(b" for key ")?,
            1264 | 1265 | 1292 | 1366 | 1406 => behind(b" for column ")?,
            1300 | 1411 | 1525 | 1644 => return None,
            _ => 0,
        };
        self.replaced(message, from)
    }

    /// A text with other names from some place on.
    fn replaced(&self, text: &[u8], from: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        let mut is_changed = false;
        while let Some(byte) = text.get(at) {
            let before = at.checked_sub(1).and_then(|before| text.get(before));
            if at >= from
                && before.is_some_and(|b| is_edge(*b))
                && let Some((len, name)) = self.name_at(text.get(at..).unwrap_or_default())
            {
                out.extend_from_slice(name.as_bytes());
                at += len;
                is_changed = true;
            } else {
                out.push(*byte);
                at += 1;
            }
        }
        is_changed.then_some(out)
    }

    /// The physical name at the front of a text: its length, and what it is known as.
    fn name_at(&self, text: &[u8]) -> Option<(usize, &str)> {
        let begins = |there: &str| {
            let head = text.get(..there.len())?;
            let rest = text.get(there.len()..)?;
            head.eq_ignore_ascii_case(there.as_bytes()).then_some(rest)
        };
        let ends = |rest: &[u8]| rest.first().is_some_and(|b| is_edge(*b));
        let table = self
            .tables()
            .find(|(there, _)| begins(there).is_some_and(|rest| ends(rest) || is_generated(rest)));
        let schema = || {
            self.schemas()
                .find(|(there, _)| begins(there).is_some_and(ends))
        };
        let (there, name) = table.or_else(schema)?;
        Some((there.len(), name))
    }

    /// The text of SHOW CREATE TABLE with other names where it has some.
    fn created(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        let mut is_changed = false;
        while let Some(byte) = text.get(at).copied() {
            let end = match byte {
                b'\'' | b'`' | b'"' => quoted_end(text, at),
                _ => {
                    out.push(byte);
                    at += 1;
                    continue;
                }
            };
            let inside = text.get(at + 1..end.saturating_sub(1)).unwrap_or_default();
            let name = if byte == b'\'' {
                None
            } else if out.ends_with(b"CREATE TABLE ") {
                known(self.tables(), inside).map(|name| name.as_bytes().to_vec())
            } else if out.ends_with(b"REFERENCES ") {
                known(self.all_tables(), inside).map(|name| name.as_bytes().to_vec())
            } else if out.ends_with(b"CONSTRAINT ") {
                self.constraint(inside)
            } else {
                None
            };
            match name {
                Some(name) => {
                    is_changed = true;
                    out.push(byte);
                    out.extend_from_slice(&name);
                    out.push(byte);
                }
                None => out.extend_from_slice(text.get(at..end).unwrap_or_default()),
            }
            at = end;
        }
        is_changed.then_some(out)
    }

    /// The name that a server made for a constraint.
    fn constraint(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.tables().find_map(|(there, known)| {
            let rest = name.get(there.len()..)?;
            let head = name.get(..there.len())?;
            let is_its = head.eq_ignore_ascii_case(there.as_bytes());
            (is_its && is_generated(rest)).then(|| [known.as_bytes(), rest].concat())
        })
    }
}

/// Between a name that was put in and the client's, by which its columns go on being named.
const AS: &[u8] = b" AS ";

/// What a whole name is known as, where that is another one.
fn known<'a>(mut pairs: impl Iterator<Item = Pair<'a>>, name: &[u8]) -> Option<&'a str> {
    let found = pairs.find(|(there, _)| there.as_bytes().eq_ignore_ascii_case(name));
    found.map(|(_, known)| known)
}

fn number(text: &[u8]) -> Option<u16> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// What stands around names in messages.
fn is_edge(byte: u8) -> bool {
    matches!(byte, b'\'' | b'`' | b'"' | b'.')
}

/// `_ibfk_1`, `_chk_1`: with these servers make a constraint's name of its table's.
fn is_generated(rest: &[u8]) -> bool {
    let number = [&b"_ibfk_"[..], b"_chk_", b"_fk_"]
        .iter()
        .find_map(|mark| rest.strip_prefix(*mark));
    number.is_some_and(|number| number.first().is_some_and(u8::is_ascii_digit))
}

/// Where the quoted thing ends that begins at `at`.
pub(super) fn quoted_end(text: &[u8], at: usize) -> usize {
    let quote = text.get(at).copied().unwrap_or(b'\'');
    let mut end = at + 1;
    while let Some(byte) = text.get(end).copied() {
        let escapes = byte == b'\\' && quote == b'\'';
        if escapes || byte == quote && text.get(end + 1) == Some(&quote) {
            end += 2;
        } else if byte == quote {
            return end + 1;
        } else {
            end += 1;
        }
    }
    text.len()
}
