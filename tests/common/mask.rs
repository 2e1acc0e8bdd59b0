//! Comparing what came directly from a server with what came through Atlas.
//!
//! Both replies are made comparable by the same masks, then compared packet by packet: part, sequence id, number of frames, bytes.
//! A mask names what may differ for a reason; all else must be the same.

use std::fmt::Write as _;

use ::atlas::wire::Capabilities;

use super::binary::{
    column_type, join_row, lenenc, lenenc_bytes, put_bytes, put_lenenc, split_binary_row, split_row,
};
use super::packet::{Packet, Part};
use super::reply::Reply;

/// What may differ between two replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mask {
    /// The values of that column (0 is the first) in all rows of all result sets; NULL stays NULL.
    Column(usize),
    /// Runs of digits in the texts of errors and in the answer to COM_STATISTICS.
    Digits,
    /// Decimal points, in the same places as digits: MariaDB leaves out those of whole numbers.
    Points,
    /// The value of that system variable in session-state blocks.
    Variable(&'static str),
    /// GTIDs in session-state blocks.
    Gtids,
    /// The id of a prepared statement in the answer to its preparation.
    StatementId,
    /// These bytes, wherever they stand, for those of the same length: one run's schema name for the other's.
    Bytes(Vec<u8>, Vec<u8>),
}

/// Panics, and shows the first difference, unless the replies are the same but for what the masks allow.
pub fn assert_same(what: &str, direct: &Reply, through: &Reply, masks: &[Mask]) {
    if let Some(difference) = difference(direct, through, masks) {
        panic!("{what}: {difference}");
    }
}

/// The first difference between the replies, in words; None when they are the same but for what the masks allow.
pub fn difference(direct: &Reply, through: &Reply, masks: &[Mask]) -> Option<String> {
    let (left, right) = (masked(direct, masks), masked(through, masks));
    let differs = left.iter().zip(&right).position(|(l, r)| l != r);
    let at = match differs {
        Some(at) => at,
        None if left.len() == right.len() => return None,
        None => left.len().min(right.len()),
    };
    let show = |packets: &[Packet]| packets.get(at).map_or_else(|| "nothing".to_owned(), dump);
    Some(format!(
        "packet {at} of {} direct and {} through Atlas differs\ndirect:  {}\nthrough: {}",
        left.len(),
        right.len(),
        show(&left),
        show(&right)
    ))
}

/// The packets of a reply with all that the masks name made equal.
pub fn masked(reply: &Reply, masks: &[Mask]) -> Vec<Packet> {
    let columns: Vec<usize> = masks
        .iter()
        .filter_map(|mask| match mask {
            Mask::Column(column) => Some(*column),
            _ => None,
        })
        .collect();
    let mut types = Vec::new();
    let mut packets = reply.packets.clone();
    for packet in &mut packets {
        match packet.part {
            Part::Count => types.clear(),
            Part::Column => types.push(column_type(&packet.payload, reply.capabilities)),
            _ => {}
        }
        if packet.part == Part::Row && !columns.is_empty() {
            // All at once: a row with a masked cell has no longer the types of its columns.
            mask_columns(packet, &columns, &types);
        }
        for mask in masks {
            apply(mask, packet, reply.capabilities);
        }
    }
    packets
}

fn apply(mask: &Mask, packet: &mut Packet, caps: Capabilities) {
    match (mask, packet.part) {
        (Mask::Digits, Part::Err | Part::Text) => {
            let from = if packet.part == Part::Err {
                9.min(packet.payload.len())
            } else {
                0
            };
            let tail = mask_digits(&packet.payload[from..]);
            packet.payload.truncate(from);
            packet.payload.extend(tail);
        }
        (Mask::Points, Part::Err | Part::Text) => packet.payload.retain(|byte| *byte != b'.'),
        (Mask::Variable(_) | Mask::Gtids, Part::Ok | Part::End) => mask_state(packet, mask, caps),
        (Mask::StatementId, Part::Prepared) => packet.payload[1..5].fill(b'#'),
        (Mask::Bytes(from, to), _) => replace(&mut packet.payload, from, to),
        _ => {}
    }
}

fn mask_columns(packet: &mut Packet, columns: &[usize], types: &[u8]) {
    let hide = |cells: &mut Vec<Option<Vec<u8>>>| {
        for column in columns {
            if let Some(Some(cell)) = cells.get_mut(*column) {
                *cell = b"masked".to_vec();
            }
        }
    };
    // A text row starts with 00 only when its first cell is an empty string, and then its cells fill it; a binary row does not
    // parse as such but by chance, so the binary reading is tried where the types are known and fit.
    let binary =
        packet.first() == 0 && !types.is_empty() && !is_text_row(&packet.payload, types.len());
    if binary {
        let mut cells = split_binary_row(&packet.payload, types);
        hide(&mut cells);
        let map = 1 + (types.len() + 2).div_ceil(8);
        packet.payload.truncate(map);
        for cell in cells.into_iter().flatten() {
            packet.payload.extend(cell);
        }
    } else {
        let mut cells = split_row(&packet.payload);
        hide(&mut cells);
        packet.payload = join_row(&cells);
    }
}

fn is_text_row(row: &[u8], columns: usize) -> bool {
    let mut at = 0;
    for _ in 0..columns {
        match row.get(at) {
            None | Some(0xff) => return false,
            Some(0xfb) => at += 1,
            Some(0xfc..=0xfe) => return false,
            Some(len) => at += 1 + usize::from(*len),
        }
    }
    at == row.len()
}

fn mask_digits(text: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text {
        if !byte.is_ascii_digit() {
            out.push(*byte);
        } else if out.last() != Some(&b'#') {
            out.push(b'#');
        }
    }
    out
}

/// Rewrites the session-state block of an OK packet: a list of (type, length-encoded body).
fn mask_state(packet: &mut Packet, mask: &Mask, caps: Capabilities) {
    let payload = &packet.payload;
    let is_ok = payload[0] == 0 || caps.contains(Capabilities::DEPRECATE_EOF);
    if !is_ok || !caps.contains(Capabilities::SESSION_TRACK) {
        return;
    }
    let mut at = 1;
    lenenc(payload, &mut at);
    lenenc(payload, &mut at);
    let state_changed = payload[at + 1] & 0x40 != 0;
    // Status and warnings.
    at += 4;
    if !state_changed || at >= payload.len() {
        return;
    }
    lenenc_bytes(payload, &mut at);
    let head = payload[..at].to_vec();
    let block = lenenc_bytes(payload, &mut at);
    let mut out = Vec::new();
    let mut from = 0;
    while from < block.len() {
        let kind = block[from];
        from += 1;
        let body = lenenc_bytes(block, &mut from);
        out.push(kind);
        match (mask, kind) {
            (Mask::Gtids, 3) => put_bytes(&mut out, b"masked"),
            (Mask::Variable(name), 0) => put_bytes(&mut out, &mask_variable(body, name)),
            _ => put_bytes(&mut out, body),
        }
    }
    let mut payload = head;
    put_lenenc(&mut payload, out.len() as u64);
    payload.extend(out);
    packet.payload = payload;
}

fn mask_variable(body: &[u8], masked: &str) -> Vec<u8> {
    let mut at = 0;
    let name = lenenc_bytes(body, &mut at);
    if name != masked.as_bytes() {
        return body.to_vec();
    }
    let mut out = Vec::new();
    put_bytes(&mut out, name);
    put_bytes(&mut out, b"masked");
    out
}

fn replace(payload: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len(), "lengths would have to be rewritten");
    let mut at = 0;
    while at + from.len() <= payload.len() {
        if payload[at..].starts_with(from) {
            payload[at..at + to.len()].copy_from_slice(to);
            at += to.len();
        } else {
            at += 1;
        }
    }
}

fn dump(packet: &Packet) -> String {
    let mut out = format!(
        "{:?} seq {} frames {} len {}",
        packet.part,
        packet.seq,
        packet.frames,
        packet.payload.len()
    );
    for line in packet.payload.chunks(32).take(8) {
        out.push_str("\n    ");
        for byte in line {
            let _ = write!(out, "{byte:02x} ");
        }
        let _ = write!(out, " {}", line.escape_ascii());
    }
    out
}
