//! Tests of the raw client in `tests/common`, against the servers themselves: it finds the end of every kind of reply, in every shape
//! that capabilities give it, and compares replies as it says.

mod common;

use std::time::Duration;

use ::atlas::wire::{Capabilities, Status};
use common::{Bed, Expect, Kind, Login, Mask, Node, Param, Part, Reply, Wire, assert_same, masked};

const DEPRECATE_EOF: Capabilities = Capabilities::DEPRECATE_EOF;

fn for_each_shape(mut test: impl FnMut(&Bed, &mut Wire)) {
    for bed in Bed::both() {
        let schema = bed.schema();
        for login in Login::app().shapes(bed.kind) {
            let login = login.schema(&schema);
            let mut wire = Wire::connect(bed.address(Node::Primary), &login);
            test(&bed, &mut wire);
            // What is left over would be the next command's trouble.
            assert!(
                !wire.speaks_within(Duration::from_millis(5)),
                "left over, {login:?}"
            );
            wire.quit();
        }
    }
}

fn parts(reply: &Reply) -> Vec<Part> {
    reply.packets.iter().map(|packet| packet.part).collect()
}

#[test]
fn single_replies() {
    for_each_shape(|bed, wire| {
        assert_eq!(parts(&wire.command(&[0x0e])), [Part::Ok], "COM_PING");
        assert_eq!(
            parts(&wire.command(b"\x02mysql")),
            [Part::Ok],
            "COM_INIT_DB"
        );
        assert_eq!(wire.command(b"\x02no_such").error_code(), 1049);
        assert_eq!(
            parts(&wire.command(&[0x1b, 0, 0])),
            [Part::Eof],
            "COM_SET_OPTION"
        );
        assert_eq!(
            parts(&wire.command(&[0x1f])),
            [Part::Ok],
            "COM_RESET_CONNECTION"
        );
        assert_eq!(
            parts(&wire.command(&[0x09])),
            [Part::Text],
            "COM_STATISTICS"
        );
        assert_eq!(wire.command(&[0x7f]).error_code(), 1047, "unknown command");
        let processes = wire.command(&[0x0a]);
        let gone = bed.kind == Kind::MySql;
        assert_eq!(processes.error_code() == 1047, gone, "COM_PROCESS_INFO");
    });
}

#[test]
fn text_results() {
    for_each_shape(|_, wire| {
        let one = wire.query("SELECT 1, NULL, '', REPEAT('x', 300)");
        let row = ["1", "", &"x".repeat(300)].map(|cell| Some(cell.to_owned()));
        assert_eq!(
            one.rows(),
            [vec![row[0].clone(), None, row[1].clone(), row[2].clone()]]
        );
        let none = wire.query("SELECT 1 FROM DUAL WHERE FALSE");
        assert!(none.rows().is_empty());
        assert_eq!(none.last().part, Part::End);

        let error = wire.query("SELECT nothing");
        assert_eq!(error.error_code(), 1054);
        assert_eq!(error.error().expect("an error").1, "42S22");

        wire.ok("CREATE TEMPORARY TABLE t(a INT AUTO_INCREMENT PRIMARY KEY, b TEXT)");
        let insert = wire.ok("INSERT INTO t(b) VALUES ('x'), ('y')");
        assert_eq!(insert.affected_and_insert_id(), (2, 1));
        assert!(insert.status().contains(Status::AUTOCOMMIT));
        let begin = wire.ok("BEGIN");
        assert!(begin.status().contains(Status::IN_TRANS));
        assert!(!wire.ok("ROLLBACK").status().contains(Status::IN_TRANS));
    });
}

#[test]
fn several_results_and_an_error_after_rows() {
    for_each_shape(|_, wire| {
        let many = wire.query("SELECT 1; DO 1; SELECT 2 UNION SELECT 3; SELECT nothing");
        assert_eq!(many.results().len(), 4);
        assert_eq!(many.rows().len(), 3);
        assert_eq!(many.error_code(), 1054);

        // The second row fails: its subquery gives two rows.
        let late = wire.query(
            "SELECT (SELECT b FROM (SELECT 1 AS b UNION ALL SELECT 2) AS u WHERE u.b <= v.a) FROM (SELECT 1 AS a UNION ALL SELECT 2) AS v",
        );
        assert_eq!(late.error_code(), 1242, "{late:?}");

        wire.ok("CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END");
        let call = wire.query("CALL p()");
        assert_eq!(call.results().len(), 3);
        wire.ok("DROP PROCEDURE p");
    });
}

#[test]
fn prepared_statements() {
    for_each_shape(|bed, wire| {
        let select = wire.prepare("SELECT ?, ?, ? IS NULL");
        assert_eq!((select.params, select.columns), (3, 3));
        let params = [Param::Int(-5), Param::from("text"), Param::Null];
        // Twice: MariaDB may leave out the definitions the second time.
        for _ in 0..2 {
            let reply = wire.execute(&select, &params);
            assert_eq!(reply.last().part, Part::End, "{reply:?}");
            let rows: Vec<_> = reply
                .packets
                .iter()
                .filter(|packet| packet.part == Part::Row)
                .collect();
            assert_eq!(rows.len(), 1);
            assert!(rows[0].payload.ends_with(&1i64.to_le_bytes()) || bed.kind == Kind::MariaDb);
        }
        let payload = wire.execute_payload(select.id, 0, &params, false);
        assert_eq!(
            wire.command(&payload).last().part,
            Part::End,
            "without types"
        );
        assert_eq!(parts(&wire.reset_statement(&select)), [Part::Ok]);
        wire.close_statement(&select);
        assert_eq!(wire.execute(&select, &params).error_code(), 1243, "closed");

        let long = wire.prepare("SELECT LENGTH(?)");
        wire.long_data(&long, 0, &[b'a'; 1000]);
        wire.long_data(&long, 0, &[b'b'; 500]);
        let reply = wire.execute(&long, &[Param::Long]);
        let row = reply.packets.iter().find(|packet| packet.part == Part::Row);
        assert_eq!(row.expect("a row").payload[2..4], 1500u16.to_le_bytes());

        let without = wire.prepare("DO 1");
        assert_eq!((without.params, without.columns), (0, 0));
        assert_eq!(parts(&wire.execute(&without, &[])), [Part::Ok]);
        let broken = wire.command(b"\x16SELEC");
        assert_eq!(broken.error_code(), 1064);
    });
}

#[test]
fn cursors() {
    for_each_shape(|_, wire| {
        let select = wire.prepare("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3");
        let open = wire.execute_cursor(&select, &[]);
        assert!(open.status().contains(Status::CURSOR_EXISTS), "{open:?}");
        assert!(!parts(&open).contains(&Part::Row));
        let two = wire.fetch(&select, 2);
        assert_eq!(parts(&two), [Part::Row, Part::Row, Part::End]);
        let rest = wire.fetch(&select, 2);
        assert_eq!(parts(&rest), [Part::Row, Part::End]);
        assert!(rest.status().contains(Status::LAST_ROW_SENT));
    });
}

#[test]
fn metadata_can_be_left_out() {
    let bed = Bed::mysql();
    for less in [Capabilities::NONE, DEPRECATE_EOF] {
        let login = Login::app()
            .with(Capabilities::OPTIONAL_RESULTSET_METADATA)
            .without(less);
        let mut wire = Wire::connect(bed.address(Node::Primary), &login);
        wire.ok("SET resultset_metadata = NONE");
        let reply = wire.query("SELECT 1, 2 UNION SELECT 3, 4");
        assert_eq!(reply.rows().len(), 2, "{reply:?}");
        assert!(!parts(&reply).contains(&Part::Column));
        let statement = wire.prepare("SELECT ?, 2");
        assert!(
            !parts(&statement.reply).contains(&Part::Column),
            "{:?}",
            statement.reply
        );
        let reply = wire.execute(&statement, &[Param::Int(1)]);
        assert_eq!(reply.last().part, Part::End);
        assert_eq!(wire.query("SELECT 5").cell(), "5");
    }
}

#[test]
fn field_lists() {
    for_each_shape(|_, wire| {
        wire.ok("CREATE TABLE IF NOT EXISTS listed(a INT DEFAULT 3, b TEXT)");
        let fields = wire.command(b"\x04listed\0%");
        assert_eq!(parts(&fields), [Part::Column, Part::Column, Part::End]);
        assert_eq!(wire.command(b"\x04no_such\0%").error_code(), 1146);
    });
}

#[test]
fn local_files() {
    for_each_shape(|_, wire| {
        wire.ok("CREATE TABLE IF NOT EXISTS loaded(a INT, b VARCHAR(20))");
        wire.ok("TRUNCATE loaded");
        let sql = "LOAD DATA LOCAL INFILE 'any name' INTO TABLE loaded FIELDS TERMINATED BY ','";
        let reply = wire.query_with_file(sql, b"1,one\n2,two\n3,three\n", 5);
        let mut parts = parts(&reply);
        parts.retain(|part| *part != Part::Progress);
        assert_eq!(parts, [Part::FileRequest, Part::Ok], "{reply:?}");
        assert_eq!(reply.affected_and_insert_id().0, 3);
        assert_eq!(
            wire.query("SELECT b FROM loaded WHERE a = 3").cell(),
            "three"
        );
        let nothing = wire.query_with_file(sql, b"", 5);
        assert_eq!(nothing.affected_and_insert_id().0, 0);
    });
}

#[test]
fn packets_around_16_mib() {
    for bed in Bed::both() {
        for login in Login::app().shapes(bed.kind) {
            let mut wire = Wire::connect(bed.address(Node::Primary), &login);
            // The row is the cell with a length of four or nine bytes in front.
            for row in [0xff_ff_fe, 0xff_ff_ff, 0x1_00_00_00, 2 * 0xff_ff_ff] {
                let cell = if row - 4 <= 0xff_ff_ff {
                    row - 4
                } else {
                    row - 9
                };
                let reply = wire.query(&format!("SELECT REPEAT('y', {cell})"));
                let rows: Vec<_> = reply
                    .packets
                    .iter()
                    .filter(|packet| packet.part == Part::Row)
                    .collect();
                assert_eq!(rows.len(), 1, "{cell}: {reply:?}");
                assert_eq!(rows[0].payload.len(), row);
                assert_eq!(rows[0].frames, row / 0xff_ff_ff + 1);
            }
            let sql = format!("SELECT LENGTH('{}')", "z".repeat(0xff_ff_ff));
            assert_eq!(wire.query(&sql).cell(), 0xff_ff_ff.to_string());
        }
    }
}

#[test]
fn a_command_split_at_every_byte_is_the_same_command() {
    for bed in Bed::both() {
        let mut wire = Wire::connect(bed.address(Node::Primary), &Login::app());
        let payload = b"\x03SELECT 'split'";
        let whole = wire.command(payload);
        let len = isize::try_from(payload.len()).expect("small");
        for cut in -3..len {
            wire.send_split(payload, &[cut], Duration::from_millis(1));
            let reply = wire.reply(Expect::Text);
            assert_same(&format!("cut at {cut}"), &whole, &reply, &[]);
        }
        let every: Vec<isize> = (-3..len).collect();
        wire.send_split(payload, &every, Duration::from_millis(1));
        assert_same("cut everywhere", &whole, &wire.reply(Expect::Text), &[]);
    }
}

#[test]
fn pipelined_commands_are_answered_in_order() {
    for bed in Bed::both() {
        let mut wire = Wire::connect(bed.address(Node::Primary), &Login::app());
        for number in 0..20 {
            wire.send(format!("\x03SELECT {number}").as_bytes());
        }
        for number in 0..20 {
            assert_eq!(wire.reply(Expect::Text).cell(), number.to_string());
        }
    }
}

#[test]
fn large_replies_are_skimmed() {
    for bed in Bed::both() {
        let mut wire = Wire::connect(bed.address(Node::Primary), &Login::app());
        let digits = "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4";
        let sql = format!(
            "SELECT REPEAT('w', 1000000) FROM ({digits}) a JOIN ({digits}) b JOIN ({digits}) c"
        );
        let payload = wire.query_payload(sql.as_bytes());
        wire.send(&payload);
        let (packets, bytes, last) = wire.skim(Expect::Text);
        assert_eq!(packets, 64 + 3);
        assert!(bytes > 64_000_000);
        assert_eq!(last.part, Part::End);
    }
}

#[test]
fn masks_hide_what_they_name_and_nothing_else() {
    for_each_shape(|bed, wire| {
        let mut other = Wire::connect(bed.address(Node::Replica1), &Login::app());
        other.capabilities = wire.capabilities;
        let sql = "SELECT CONNECTION_ID() AS id, 'same' AS s";
        let (left, right) = (wire.query(sql), wire.query(&sql.replace("same", "sane")));
        assert_ne!(
            masked(&left, &[Mask::Column(0)]),
            masked(&right, &[Mask::Column(0)])
        );
        assert_eq!(
            masked(&left, &[Mask::Column(1)]),
            masked(&right, &[Mask::Column(1)])
        );
        let same = [Mask::Bytes(b"sane".to_vec(), b"same".to_vec())];
        assert_same("renamed", &left, &masked_reply(&right, &same), &[]);

        let error = |table: &str| wire_error(bed, table);
        let (left, right) = (error("no_1"), error("no_22"));
        assert_ne!(left.packets, right.packets);
        assert_eq!(
            masked(&left, &[Mask::Digits]),
            masked(&right, &[Mask::Digits])
        );

        let first = wire.prepare("SELECT 1");
        let second = wire.prepare("SELECT 1");
        assert_ne!(first.reply, second.reply);
        assert_same(
            "prepared",
            &first.reply,
            &second.reply,
            &[Mask::StatementId],
        );

        if wire.capabilities.contains(Capabilities::SESSION_TRACK) {
            let (left, right) = (
                wire.ok("SET time_zone = '+01:00'"),
                wire.ok("SET time_zone = '+02:00'"),
            );
            assert_ne!(left, right);
            assert_same("tracked", &left, &right, &[Mask::Variable("time_zone")]);
            let other = [Mask::Variable("autocommit")];
            assert_ne!(masked(&left, &other), masked(&right, &other));
        }
    });
}

fn masked_reply(reply: &Reply, masks: &[Mask]) -> Reply {
    Reply {
        packets: masked(reply, masks),
        capabilities: reply.capabilities,
    }
}

fn wire_error(bed: &Bed, table: &str) -> Reply {
    bed.root(Node::Primary)
        .query(&format!("SELECT 1 FROM bed.{table}"))
}

#[test]
fn binary_rows_can_be_masked() {
    for_each_shape(|_, wire| {
        let statement = wire.prepare("SELECT CAST(? AS SIGNED), ?, NULL, NOW(6)");
        let first = wire.execute(&statement, &[Param::Int(1), Param::from("same")]);
        let second = wire.execute(&statement, &[Param::Int(2), Param::from("same")]);
        if parts(&first).contains(&Part::Column) && parts(&second).contains(&Part::Column) {
            let rows = first.binary_rows();
            assert_eq!(rows[0][0].as_deref(), Some(&1i64.to_le_bytes()[..]));
            assert_eq!(rows[0][2], None);
            assert_same(
                "binary",
                &first,
                &second,
                &[Mask::Column(0), Mask::Column(3)],
            );
            assert_ne!(
                masked(&first, &[Mask::Column(3)]),
                masked(&second, &[Mask::Column(3)])
            );
        }
    });
}
