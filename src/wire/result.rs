//! Whole replies that Atlas makes itself: a result set of strings, and the reply to the prepare of a statement that will give one.

use super::{Capabilities, ColumnCount, ColumnDef, EofPacket, PrepareOk, RowFormat, Status};

/// Writes a result set whose columns are all VAR_STRING in utf8mb4, framed as the connection's capabilities have it.
#[derive(Debug)]
#[must_use = "finish() writes the end"]
pub struct ResultSetWriter<'a> {
    out: &'a mut Vec<u8>,
    seq: u8,
    caps: Capabilities,
    status: Status,
    format: RowFormat,
}

impl<'a> ResultSetWriter<'a> {
    /// Writes the column count and the definitions; `seq` is the first packet's sequence id (1 in a reply to a command). Of the status
    /// the flags that tell of the session are written.
    pub fn begin(
        out: &'a mut Vec<u8>,
        seq: u8,
        caps: Capabilities,
        status: Status,
        format: RowFormat,
        columns: &[&[u8]],
    ) -> Self {
        let columns: Vec<ColumnDef<'_>> = columns.iter().copied().map(ColumnDef::text).collect();
        Self::begin_with(out, seq, caps, status, format, &columns)
    }

    /// The same with definitions of the caller's. In binary rows values are written as texts, so columns of texts are right there.
    pub fn begin_with(
        out: &'a mut Vec<u8>,
        seq: u8,
        caps: Capabilities,
        status: Status,
        format: RowFormat,
        columns: &[ColumnDef<'_>],
    ) -> Self {
        let status = status & Status::OF_SESSION;
        let count = ColumnCount {
            columns: columns.len() as u64,
            has_definitions: true,
        };
        let seq = count.write(out, seq, caps);
        let seq = write_columns(out, seq, caps, status, columns);
        Self {
            out,
            seq,
            caps,
            status,
            format,
        }
    }

    /// Writes one row, with a value for each column; `None` is NULL.
    pub fn row(&mut self, values: &[Option<&[u8]>]) {
        self.seq = self.format.write_row(self.out, self.seq, values);
    }

    /// Writes the end; gives the next sequence id.
    pub fn finish(self) -> u8 {
        let end = EofPacket {
            warnings: 0,
            status: self.status,
        };
        end.write_end(self.out, self.seq, self.caps)
    }
}

/// Writes the reply to the prepare of a statement without parameters whose result [`ResultSetWriter`] will write; gives the next
/// sequence id.
pub fn write_prepared(
    out: &mut Vec<u8>,
    seq: u8,
    caps: Capabilities,
    status: Status,
    statement_id: u32,
    columns: &[&[u8]],
) -> u8 {
    let ok = PrepareOk {
        statement_id,
        columns: u16::try_from(columns.len()).unwrap_or(u16::MAX),
        params: 0,
        warnings: 0,
        metadata: caps
            .contains(Capabilities::OPTIONAL_RESULTSET_METADATA)
            .then_some(1),
    };
    let seq = ok.write(out, seq);
    let columns: Vec<ColumnDef<'_>> = columns.iter().copied().map(ColumnDef::text).collect();
    write_columns(out, seq, caps, status & Status::OF_SESSION, &columns)
}

/// Writes the definitions, and the EOF behind them where the client wants one.
fn write_columns(
    out: &mut Vec<u8>,
    mut seq: u8,
    caps: Capabilities,
    status: Status,
    columns: &[ColumnDef<'_>],
) -> u8 {
    for column in columns {
        seq = column.write(out, seq, caps);
    }
    if caps.contains(Capabilities::DEPRECATE_EOF) {
        seq
    } else {
        write_eof(out, seq, status)
    }
}

fn write_eof(out: &mut Vec<u8>, seq: u8, status: Status) -> u8 {
    let eof = EofPacket {
        warnings: 0,
        status,
    };
    eof.write(out, seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Packets, TextRow};

    const EOF: Capabilities = Capabilities::PROTOCOL_41;
    const NO_EOF: Capabilities = EOF.union(Capabilities::DEPRECATE_EOF);
    const COLUMNS: [&[u8]; 2] = [b"step", b"detail"];

    fn result_set(caps: Capabilities, format: RowFormat) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        // What the reply before it left behind tells nothing of this one.
        let status = Status::AUTOCOMMIT | Status::CURSOR_EXISTS | Status::MORE_RESULTS;
        let mut writer = ResultSetWriter::begin(&mut out, 1, caps, status, format, &COLUMNS);
        writer.row(&[Some(b"route"), Some(b"replica")]);
        writer.row(&[Some(b"rule"), None]);
        let next = writer.finish();
        packets(&out, next)
    }

    /// The payloads; checks that the sequence ids go from 1 up to `next`.
    fn packets(out: &[u8], next: u8) -> Vec<Vec<u8>> {
        let mut packets = Packets::new(out);
        let payloads: Vec<_> = packets
            .by_ref()
            .zip(1..)
            .map(|((header, payload), seq)| {
                assert_eq!(header.seq, seq);
                payload.to_vec()
            })
            .collect();
        assert_eq!(packets.rest(), b"");
        assert_eq!(usize::from(next), payloads.len() + 1);
        payloads
    }

    #[test]
    fn text_in_both_framings() {
        let with_eof = result_set(EOF, RowFormat::Text);
        assert_eq!(with_eof.len(), 7);
        assert_eq!(with_eof[0], b"\x02");
        let name = ColumnDef::parse(&with_eof[2], EOF).unwrap().name;
        assert_eq!(name, b"detail");
        assert_eq!(with_eof[3], b"\xfe\0\0\x02\0");
        let row: Vec<_> = TextRow::new(&with_eof[5]).map(Result::unwrap).collect();
        assert_eq!(row, [Some(&b"rule"[..]), None]);
        assert_eq!(with_eof[6], b"\xfe\0\0\x02\0");

        let without = result_set(NO_EOF, RowFormat::Text);
        assert_eq!(without.len(), 6);
        assert_eq!(without[..3], with_eof[..3]);
        assert_eq!(without[3..5], with_eof[4..6]);
        assert_eq!(without[5], b"\xfe\0\0\x02\0\0\0");
    }

    #[test]
    fn binary() {
        let payloads = result_set(NO_EOF, RowFormat::Binary);
        assert_eq!(payloads[3], b"\x00\x00\x05route\x07replica");
        assert_eq!(payloads[4], b"\x00\x08\x04rule");
    }

    #[test]
    fn metadata_of_both_servers() {
        let mysql = result_set(
            NO_EOF | Capabilities::OPTIONAL_RESULTSET_METADATA,
            RowFormat::Text,
        );
        assert_eq!(mysql[0], b"\x02\x01");
        let caps =
            NO_EOF | Capabilities::MARIADB_CACHE_METADATA | Capabilities::MARIADB_EXTENDED_METADATA;
        let mariadb = result_set(caps, RowFormat::Text);
        assert_eq!(mariadb[0], b"\x02\x01");
        assert_eq!(mariadb[1].len(), mysql[1].len() + 1);
    }

    #[test]
    fn prepared() {
        let mysql = NO_EOF | Capabilities::OPTIONAL_RESULTSET_METADATA;
        for (caps, ok, n_packets) in [
            (EOF, &b"\x00\x05\0\0\0\x02\0\0\0\0\0\0"[..], 4),
            (NO_EOF, b"\x00\x05\0\0\0\x02\0\0\0\0\0\0", 3),
            (mysql, b"\x00\x05\0\0\0\x02\0\0\0\0\0\0\x01", 3),
        ] {
            let mut out = Vec::new();
            let next = write_prepared(&mut out, 1, caps, Status::AUTOCOMMIT, 5, &COLUMNS);
            let payloads = packets(&out, next);
            assert_eq!(payloads.len(), n_packets);
            assert_eq!(payloads[0], ok);
            assert_eq!(ColumnDef::parse(&payloads[1], caps).unwrap().name, b"step");
        }
    }
}
