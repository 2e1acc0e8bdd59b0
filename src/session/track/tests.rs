//! Replies that once were walked wrongly, and any replies: made at random, cut at random, spoiled at random.

mod any;

use super::*;

fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut seq = 1;
    for payload in payloads {
        seq = crate::wire::write_payload(&mut bytes, seq, payload);
    }
    bytes
}

/// Walks to the end and tells how much was walked.
fn walked(expect: Expect, capabilities: Capabilities, bytes: &[u8]) -> Result<usize, BadReply> {
    let mut tracker = Tracker::new(expect, capabilities);
    let mut at = 0;
    loop {
        let walk = tracker.walk(&bytes[at..])?;
        at += walk.consumed;
        match walk.event {
            Some(TrackEvent::End) => return Ok(at),
            None if walk.consumed == 0 => return Ok(at),
            _ => {}
        }
    }
}

#[test]
fn a_prepare_reply_without_definitions_still_has_its_eofs() {
    // One parameter, one column, metadata flag 0, as MySQL 9.7 answers under resultset_metadata=NONE.
    let ok: &[u8] = &[0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0];
    let eof: &[u8] = &[0xfe, 0, 0, 2, 0];
    let metadata = Capabilities::OPTIONAL_RESULTSET_METADATA;
    let bytes = packets(&[ok, eof, eof]);
    assert_eq!(walked(Expect::Prepare, metadata, &bytes), Ok(bytes.len()));
    let bytes = packets(&[ok]);
    let modern = metadata | Capabilities::DEPRECATE_EOF;
    assert_eq!(walked(Expect::Prepare, modern, &bytes), Ok(bytes.len()));
}

#[test]
fn a_cursor_of_a_stored_program_leaves_no_rows_behind() {
    // One column, with SERVER_STATUS_CURSOR_EXISTS in all of it, as MariaDB answers a SELECT in the loop of a cursor.
    let column: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
    let eof: &[u8] = &[0xfe, 0, 0, 0x42, 0];
    let rows = packets(&[&[1], column, eof, &[1, b'7'], eof]);
    let walk = |expect, bytes: &[u8]| walked(expect, Capabilities::NONE, bytes);
    assert_eq!(walk(Expect::Response, &rows), Ok(rows.len()));
    let head = packets(&[&[1], column, eof]);
    assert_eq!(walk(Expect::Cursor, &head), Ok(head.len()));
    let mut tracker = Tracker::new(Expect::Response, Capabilities::NONE);
    let walk = tracker.walk(&head).expect("sound");
    assert_eq!((walk.consumed, walk.event), (head.len(), None));
}
