//! What a client learns of an answer, in a form in which two can be compared.

use atlas::wire::OkPacket;

use super::statements::Rows;
use crate::common::{Packet, Part, Reply};

/// The columns and the rows; numbers, warnings and the line of information; or the whole of an error. `schema` is put for `there`. Of
/// odd statements the number of warnings is left out.
pub(super) fn told(
    reply: &Reply,
    is_binary: bool,
    (rows, is_odd): (Rows, bool),
    there: &str,
    schema: &str,
) -> String {
    let text = match reply.error() {
        Some(error) => format!("{error:?}"),
        None if reply.results().len() == 1 && reply.results()[0].len() == 1 => {
            let ok = OkPacket::parse(&reply.last().payload, reply.capabilities).unwrap();
            let info = String::from_utf8_lossy(ok.info).into_owned();
            let numbers = format!("affected {} id {}", ok.affected, ok.insert_id);
            match info.split_once("Warnings:") {
                Some((info, _)) if is_odd => format!("{numbers} {info}"),
                _ if is_odd => format!("{numbers} {info}"),
                _ => format!("{numbers} warnings {} {info}", ok.warnings),
            }
        }
        None => {
            let columns: Vec<String> = of(reply, Part::Column).map(column).collect();
            let mut lines = lines(reply, is_binary);
            if rows != Rows::InOrder {
                lines.sort();
            }
            format!("{}\n{}", columns.join("\n"), lines.join("\n"))
        }
    };
    text.replace(there, schema)
}

/// Each row as a line.
pub(super) fn lines(reply: &Reply, is_binary: bool) -> Vec<String> {
    if is_binary {
        let rows = reply.binary_rows();
        rows.iter().map(|row| format!("{row:?}")).collect()
    } else {
        reply.rows().iter().map(|row| format!("{row:?}")).collect()
    }
}

fn of(reply: &Reply, part: Part) -> impl Iterator<Item = &Packet> {
    reply
        .packets
        .iter()
        .filter(move |packet| packet.part == part)
}

/// Catalog, schema, table, its own name, the column, its own name; and the numbers behind.
fn column(packet: &Packet) -> String {
    let payload = &packet.payload;
    let mut at = 0;
    let mut names = Vec::new();
    for _ in 0..6 {
        let length = usize::from(payload[at]);
        assert!(length < 0xfb, "names are short");
        let name = &payload[at + 1..at + 1 + length];
        names.push(String::from_utf8_lossy(name).into_owned());
        at += 1 + length;
    }
    format!("{} {:02x?}", names.join("|"), &payload[at..])
}
