//! Taking session-state changes out of OK packets, in place.

use std::ops::Range;

use super::{Header, Reader, StateChange, StateChanges, Status};

/// Where the parts of an OK packet lie, counted from its header.
struct Parts {
    status: usize,
    /// Behind the warnings: where the packet ends that has neither text nor changes.
    head_end: usize,
    has_info: bool,
    info_end: usize,
    block: Range<usize>,
}

impl Parts {
    fn of(packet: &[u8]) -> Option<Self> {
        let payload = packet.get(4..)?;
        let mut r = Reader::new("OK", payload);
        let at = |r: &Reader<'_>| packet.len().saturating_sub(r.remaining());
        r.u8("header").ok()?;
        r.lenenc("affected rows").ok()?;
        r.lenenc("insert id").ok()?;
        let status = at(&r);
        r.u16("status").ok()?;
        r.u16("warnings").ok()?;
        let head_end = at(&r);
        let has_info = !r.lenenc_bytes("info").ok()?.is_empty();
        let info_end = at(&r);
        let len = r.lenenc_bytes("session state").ok()?.len();
        let end = at(&r);
        Some(Self {
            status,
            head_end,
            has_info,
            info_end,
            block: end.saturating_sub(len)..end,
        })
    }
}

/// Keeps those changes of an OK packet (with its header) for which `place` gives one, in the order of their places, and gives the
/// packet's new length. What cannot be read is left as it is. Some packets say that something changed and then name nothing: they do
/// so still if `keeps_empty`.
pub fn keep_changes(
    packet: &mut [u8],
    keeps_empty: bool,
    place: &mut dyn FnMut(StateChange<'_>) -> Option<u8>,
) -> usize {
    let Some(parts) = Parts::of(packet) else {
        return packet.len();
    };
    // Nothing is allocated when none is kept, which is the way of all that only Atlas asked for.
    let mut kept: Vec<(u8, Range<usize>)> = Vec::new();
    let mut at = parts.block.start;
    while at < parts.block.end {
        let Some(entry) = packet.get(at..parts.block.end) else {
            break;
        };
        let Some(len) = entry_len(entry) else {
            return packet.len();
        };
        let Some(Ok(change)) = StateChanges::new(entry.get(..len).unwrap_or_default()).next()
        else {
            return packet.len();
        };
        let end = at.saturating_add(len);
        if let Some(place) = place(change) {
            kept.push((place, at..end));
        }
        at = end;
    }
    let is_sorted = kept.is_sorted_by_key(|(place, _)| *place);
    let kept_len: usize = kept.iter().map(|(_, range)| range.len()).sum();
    let is_kept_empty = keeps_empty || !parts.block.is_empty();
    if is_sorted && kept_len == parts.block.len() && is_kept_empty {
        return packet.len();
    }
    kept.sort_by_key(|(place, _)| *place);
    let end = if kept_len == 0 {
        clear_status(packet, parts.status);
        if parts.has_info {
            parts.info_end
        } else {
            parts.head_end
        }
    } else {
        let mut tail = Vec::with_capacity(kept_len.saturating_add(9));
        write_lenenc(&mut tail, kept_len);
        for (_, range) in kept {
            tail.extend_from_slice(packet.get(range).unwrap_or_default());
        }
        let end = parts.info_end.saturating_add(tail.len());
        if let Some(place) = packet.get_mut(parts.info_end..end) {
            place.copy_from_slice(&tail);
        }
        end
    };
    set_len(packet, end.saturating_sub(4));
    end
}

/// Takes out of an EOF packet (with its header) that something changed: what, it has no room to say. False if it is none.
pub fn hide_change(packet: &mut [u8]) -> bool {
    let is_eof = matches!(packet, [_, _, _, _, 0xfe, _, _, _, _]);
    if is_eof {
        clear_status(packet, 7);
    }
    is_eof
}

/// Length of the entry at the front: its kind, the length of its data, and these.
fn entry_len(entry: &[u8]) -> Option<usize> {
    let mut r = Reader::new("session state", entry);
    r.u8("type").ok()?;
    r.lenenc_bytes("data").ok()?;
    Some(entry.len().saturating_sub(r.remaining()))
}

fn write_lenenc(out: &mut Vec<u8>, len: usize) {
    match u16::try_from(len) {
        Ok(len @ 0..=0xfa) => out.push(len.to_le_bytes()[0]),
        Ok(len) => {
            out.push(0xfc);
            out.extend_from_slice(&len.to_le_bytes());
        }
        // A packet is no longer than that.
        Err(_) => {
            out.push(0xfd);
            out.extend_from_slice(len.to_le_bytes().get(..3).unwrap_or_default());
        }
    }
}

fn clear_status(packet: &mut [u8], at: usize) {
    let Some([low, high]) = packet.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<2>) else {
        return;
    };
    let status = Status(u16::from_le_bytes([*low, *high]));
    [*low, *high] = status
        .without(Status::SESSION_STATE_CHANGED)
        .0
        .to_le_bytes();
}

fn set_len(packet: &mut [u8], len: usize) {
    debug_assert!(Header::parse(packet).is_none_or(|header| len <= header.len));
    if let (Some(place), Some(bytes)) = (packet.get_mut(..3), len.to_le_bytes().get(..3)) {
        place.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Capabilities, OkPacket};

    const TRACK: Capabilities = Capabilities::PROTOCOL_41.union(Capabilities::SESSION_TRACK);
    /// time_zone, the schema, and that something changed.
    const BLOCK: &[u8] = b"\x00\x11\x09time_zone\x06+01:00\x01\x02\x01x\x02\x02\x011";

    fn packet(info: &[u8], state: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        OkPacket {
            affected: 300,
            status: Status::AUTOCOMMIT,
            warnings: 2,
            info,
            state,
            ..OkPacket::default()
        }
        .write(&mut bytes, 1, TRACK);
        bytes
    }

    fn kept(info: &[u8], mut place: impl FnMut(StateChange<'_>) -> Option<u8>) -> Vec<u8> {
        let mut bytes = packet(info, BLOCK);
        let len = keep_changes(&mut bytes, true, &mut place);
        bytes.truncate(len);
        bytes
    }

    #[test]
    fn a_packet_without_its_changes_is_as_one_that_never_had_them() {
        assert_eq!(kept(b"", |_| None), packet(b"", b""));
        assert_eq!(kept(b"Records: 1", |_| None), packet(b"Records: 1", b""));
    }

    #[test]
    fn a_packet_that_names_nothing_keeps_or_loses_its_flag() {
        // As MySQL answers ROLLBACK AND CHAIN.
        let told = b"\x09\0\0\x01\0\0\0\x03\x40\0\0\0\0";
        let mut kept = told.to_vec();
        assert_eq!(keep_changes(&mut kept, true, &mut |_| None), told.len());
        assert_eq!(kept, told);
        let len = keep_changes(&mut kept, false, &mut |_| None);
        assert_eq!(kept[..len], *b"\x07\0\0\x01\0\0\0\x03\0\0\0");
    }

    #[test]
    fn an_eof_packet_loses_its_flag() {
        let mut eof = *b"\x05\0\0\x09\xfe\x01\0\x22\x40";
        assert!(hide_change(&mut eof));
        assert_eq!(eof, *b"\x05\0\0\x09\xfe\x01\0\x22\0");
        let mut ok = packet(b"", BLOCK);
        assert!(!hide_change(&mut ok) && ok == packet(b"", BLOCK));
    }

    #[test]
    fn those_that_are_kept_are_as_if_there_were_no_others() {
        let is_schema = |change: StateChange<'_>| matches!(change, StateChange::Schema(_));
        for info in [&b""[..], b"Records: 1"] {
            let schema = b"\x01\x02\x01x";
            assert_eq!(
                kept(info, |c| is_schema(c).then_some(0)),
                packet(info, schema)
            );
            assert_eq!(kept(info, |_| Some(0)), packet(info, BLOCK));
        }
        let swapped = b"\x01\x02\x01x\x02\x02\x011\x00\x11\x09time_zone\x06+01:00";
        let last = |change: StateChange<'_>| {
            Some(u8::from(matches!(change, StateChange::Variable { .. })))
        };
        assert_eq!(kept(b"", last), packet(b"", swapped));
    }

    #[test]
    fn what_cannot_be_read_stays() {
        let mut bytes = packet(b"", b"\x00\x11\x09time_zone");
        let before = bytes.clone();
        assert_eq!(keep_changes(&mut bytes, false, &mut |_| None), before.len());
        assert_eq!(bytes, before);
        for end in 0..bytes.len() {
            let mut cut = packet(b"x", BLOCK);
            cut.truncate(end);
            assert_eq!(keep_changes(&mut cut, false, &mut |_| None), end);
        }
    }
}
