//! LOAD DATA LOCAL INFILE: the file comes from the client, packet by packet, and none of it is a command.

use ::atlas::wire::Capabilities;

use crate::common::Login;
use crate::large::unlogged;
use crate::script::{Execute, Script};
use crate::{on_both, under_every_set};

const TABLES: &[&str] = &[
    "CREATE TABLE blobs(n INT AUTO_INCREMENT PRIMARY KEY, b LONGBLOB)",
    "CREATE TABLE pairs(a INT PRIMARY KEY, b VARCHAR(20))",
];
const BLOBS: &str = "LOAD DATA LOCAL INFILE 'x' INTO TABLE blobs FIELDS TERMINATED BY '' ESCAPED BY '' LINES TERMINATED BY '\\n' (b)";
const PAIRS: &str =
    "LOAD DATA LOCAL INFILE '/no/such/file' INTO TABLE pairs FIELDS TERMINATED BY ','";

/// What is stored, on the primary.
fn stored(s: &mut Script) {
    s.query("SELECT COUNT(*), SUM(LENGTH(b)), MD5(GROUP_CONCAT(MD5(b) ORDER BY n)) FROM blobs /*master*/");
    s.query("SELECT * FROM pairs ORDER BY a /*master*/");
}

fn tour() -> Script {
    let mut s = Script::new();
    // Every packet starts as some command does: quit, init db, query, prepare, execute, close, reset, ping.
    s.file(
        BLOBS,
        &[
            b"\x01\n",
            b"\x02mysql\n",
            b"\x03DELETE FROM pairs\n",
            b"\x16SELECT 1\n",
            b"\x17\x01\0\0\0\n",
            b"\x19\x01\0\0\0\n",
            b"\x1f\n",
            b"\x0e",
        ],
    );
    stored(&mut s);
    s.file(PAIRS, &[b"1,one\n2,t", b"wo\n", b"3,three"]);
    // Duplicates, rows with too little and too much, numbers that are none.
    s.file(PAIRS, &[b"3,again\n4,four\n"])
        .query("SHOW WARNINGS");
    let rows = b"3,again\n5\n6,six,sixty\nseven,7\n";
    s.file(&PAIRS.replace("INTO", "IGNORE INTO"), &[rows]);
    s.query("SHOW WARNINGS");
    s.file(&PAIRS.replace("INTO", "REPLACE INTO"), &[b"1,uno\n"]);
    // An empty file, and one with empty lines.
    s.file(PAIRS, &[])
        .file(PAIRS, &[b"\n\n"])
        .query("SHOW WARNINGS");
    stored(&mut s);
    // Errors before the file is asked for.
    let nowhere = "LOAD DATA LOCAL INFILE 'f' INTO TABLE no_such";
    s.file(nowhere, &[b"1\n"]);
    s.file("LOAD DATA LOCAL INFILE 'f' INTO", &[b"1\n"]).ping();
    // In a transaction, and among other statements.
    s.query("BEGIN")
        .file(PAIRS, &[b"70,seventy\n"])
        .query("ROLLBACK");
    let batch = format!("SELECT 1; {PAIRS}; SELECT COUNT(*) FROM pairs");
    s.file(&batch, &[b"80,eighty\n"]);
    // The second one gets the same rows.
    s.file(&format!("{PAIRS}; {PAIRS}"), &[b"90,ninety\n"])
        .ping();
    let prepared = s.prepare(PAIRS);
    for chunks in [&[&b"100,hundred\n"[..]][..], &[], &[b"101,", b"next\n"]] {
        s.execute_as(Execute {
            id: prepared,
            flags: 0,
            params: Vec::new(),
            types: true,
            attributes: Vec::new(),
            file: chunks.iter().map(|chunk| chunk.to_vec()).collect(),
        });
    }
    s.ping().query("SELECT LAST_INSERT_ID(), ROW_COUNT()");
    s.query("DELETE FROM pairs").query("TRUNCATE blobs");
    s
}

#[test]
fn files_under_every_set() {
    under_every_set(TABLES, |_| tour());
}

#[test]
fn files_cut_at_every_byte() {
    let mut s = Script::of("BEGIN");
    s.file(PAIRS, &[b"1,o", b"ne\n", b"\x03,\x19\n"]);
    s.query("SELECT COUNT(*) FROM pairs").query("ROLLBACK");
    on_both(TABLES, |stage, differences| {
        stage.compare_cut(&Login::app(), &s, differences);
    });
}

/// A packet that fills its frame is followed by an empty frame, which is not the end of the file.
#[test]
fn packets_of_16_mib() {
    on_both(TABLES, |stage, differences| {
        for size in [0xff_ff_fe, 0xff_ff_ff, 0x1_00_00_00] {
            let mut line = vec![b'z'; size];
            line[..4].copy_from_slice(b"\x03DEL");
            line[size - 1] = b'\n';
            let mut s = unlogged();
            s.file(BLOBS, &[b"first\n", &line, b"last\n"]);
            stored(&mut s);
            s.query("TRUNCATE blobs");
            stage.compare(&format!("{size}"), &Login::app(), &s, differences);
        }
    });
}

/// A client that cannot give files is not asked for any.
#[test]
fn files_without_the_ability() {
    let mut s = Script::new();
    s.file(PAIRS, &[b"1,one\n"]).ping();
    s.file(&format!("SELECT 1; {PAIRS}; SELECT 2"), &[b"1,one\n"]);
    s.ping();
    stored(&mut s);
    on_both(TABLES, |stage, differences| {
        let login = Login::app().without(Capabilities::LOCAL_FILES);
        stage.compare("without", &login, &s, differences);
    });
}
