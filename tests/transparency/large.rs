//! Packets around 16 MiB, where one more frame begins: commands, rows, parameters, long data.

use crate::common::{Login, Param};
use crate::delivery::Delivery;
use crate::differences::Differences;
use crate::on_both;
use crate::script::Script;
use crate::stage::Stage;

const FRAME: usize = 0xff_ff_ff;

/// COM_QUERY with a payload of exactly that many bytes.
fn query_of(size: usize) -> Vec<u8> {
    let (head, tail) = (b"\x03SELECT LENGTH('", b"')");
    let text = vec![b'z'; size - head.len() - tail.len()];
    [&head[..], &text, tail].concat()
}

/// A script whose statements the servers neither log nor replicate: there would be gigabytes of them.
pub(crate) fn unlogged() -> Script {
    Script::of("SET sql_log_off = 1, sql_log_bin = 0")
}

/// Nothing here names the schema, so all bytes must be the same.
fn compare(stage: &Stage, what: &str, script: &Script, differences: &mut Differences) {
    let direct = stage.run_direct(&Login::app(), script);
    let through = stage.run_through(&Login::app(), script, Delivery::Whole);
    if direct != through {
        let what = format!("{:?}, {what}", stage.bed.kind);
        stage.diff(&what, script, &direct, &through, differences);
    }
}

#[test]
fn commands() {
    let mut sizes: Vec<usize> = (16_777_205..=16_777_220).collect();
    sizes.extend([2 * FRAME, 2 * FRAME + 1]);
    on_both(&[], |stage, differences| {
        for size in &sizes {
            let mut s = unlogged();
            s.command(&query_of(*size)).query("SELECT 1");
            compare(stage, &format!("{size} bytes"), &s, differences);
        }
    });
}

#[test]
fn rows() {
    on_both(&[], |stage, differences| {
        for size in (16_777_210..=16_777_220).chain([2 * FRAME]) {
            // A length of four or nine bytes stands in front of the cell.
            let cell = if size - 4 <= FRAME {
                size - 4
            } else {
                size - 9
            };
            let mut s = Script::new();
            s.query(&format!("SELECT REPEAT('y', {cell})"));
            s.query("SELECT 1");
            compare(stage, &format!("{size} bytes"), &s, differences);
        }
    });
}

#[test]
fn prepared() {
    on_both(&["CREATE TABLE b(b LONGBLOB)"], |stage, differences| {
        // The parameter has 23 bytes in front of it in the packet.
        for size in [FRAME - 23, FRAME - 22, FRAME + 1] {
            let data = vec![b'q'; size];
            let mut s = unlogged();
            let length = s.prepare("SELECT LENGTH(?), ?");
            s.execute(length, &[Param::Bytes(data.clone()), Param::Int(1)]);
            s.execute_again(length, &[Param::Bytes(data.clone()), Param::Int(2)]);
            s.long_data(length, 0, &data).long_data(length, 0, b"more");
            s.execute(length, &[Param::Long, Param::Int(3)]);
            let insert = s.prepare("INSERT INTO b VALUES (?)");
            s.execute(insert, &[Param::Bytes(data)]);
            s.query("SELECT LENGTH(b) FROM b /*master*/");
            s.query("TRUNCATE b");
            compare(stage, &format!("{size} bytes"), &s, differences);
        }
        for size in [FRAME - 1, FRAME, FRAME + 1] {
            let text = String::from_utf8(query_of(size).split_off(1)).expect("ASCII");
            let mut s = unlogged();
            let statement = s.prepare(&text);
            s.execute(statement, &[]).query("SELECT 2");
            compare(
                stage,
                &format!("preparation of {size} bytes"),
                &s,
                differences,
            );
        }
    });
}
