//! Reports about framing, sequence ids, errors behind rows, long replies, and commands that are no statements. `Wire` looks at every
//! sequence id: a reply that starts or counts otherwise than the protocol says fails the test that reads it.

use std::time::{Duration, Instant};

use ::atlas::wire::{Capabilities, Status};

use super::common::{
    Ended, Expect, Kind, Login, Node, Param, Part, Seen, Wire, assert_same, eventually, frame,
};
use super::stage::{Stage, outcome, play, table};

#[test]
fn b148_sequence_ids_in_a_batch() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let reply = client.query("DO 1; DO 2; DO 3; SELECT 1; BOGUS; SELECT 2");
        let ids: Vec<u8> = reply.packets.iter().map(|packet| packet.seq).collect();
        let expected: Vec<u8> = (1..).take(ids.len()).collect();
        assert_eq!(ids, expected);
        assert_eq!(
            (reply.error_code(), table_of(&reply)),
            (1064, vec!["1".to_owned()])
        );
        assert_eq!(client.query("SELECT 7").cell(), "7");
    }
}

fn table_of(reply: &super::common::Reply) -> Vec<String> {
    reply
        .rows()
        .into_iter()
        .map(|row| row[0].clone().unwrap_or_default())
        .collect()
}

#[test]
fn b150_b164_several_statements_follow_the_clients_capability() {
    for stage in Stage::both() {
        let single = stage.login().without(Capabilities::MULTI_STATEMENTS);
        let mut a = stage.client_as(&single);
        let mut b = stage.client();
        assert_eq!(a.query("SELECT 1").cell(), "1");
        let reply = b.query("INSERT INTO t(v) VALUES(1);SELECT LAST_INSERT_ID() AS newid;");
        assert_eq!(table(&reply), ["4"]);
        assert_eq!(a.query("SELECT 1; SELECT 2").error_code(), 1064);
        // COM_SET_OPTION turns it on and off, on both connections.
        for _ in 0..2 {
            assert_eq!(a.command(&[0x1b, 0, 0]).last().part, Part::Eof);
            assert_eq!(table(&a.query("SELECT 1; SELECT 2")), ["1", "2"]);
            assert_eq!(
                table(&a.query("DO 1; SELECT 3 FROM t WHERE id=1 FOR UPDATE")),
                ["3"]
            );
            assert_eq!(a.command(&[0x1b, 1, 0]).last().part, Part::Eof);
            assert_eq!(a.query("SELECT 1; SELECT 2").error_code(), 1064);
            assert_eq!(a.query("DO 1; DO 2").error_code(), 1064);
        }
        // An option that there is not.
        assert_eq!(a.command(&[0x1b, 9, 0]).error_code(), 1047);
        assert_eq!(a.query("SELECT 1").cell(), "1");
    }
}

/// The lengths around a frame's; all of them are in the tests of transparency.
const AROUND: [usize; 4] = [16_777_205, 16_777_214, 16_777_215, 16_777_216];

#[test]
fn b151_b153_statements_around_a_full_frame() {
    let stage = Stage::mariadb();
    let mut client = stage.client();
    for len in AROUND.into_iter().chain([33_554_430, 33_554_431]) {
        let (head, tail) = ("SELECT LENGTH('", "')");
        // The command's byte counts too.
        let text = len - 1 - head.len() - tail.len();
        let reply = client.query(&format!("{head}{}{tail}", "a".repeat(text)));
        assert_eq!(reply.cell(), text.to_string(), "{len}");
        assert_eq!(client.query("SELECT 1").cell(), "1", "behind {len}");
    }
}

#[test]
fn b152_rows_around_a_full_frame() {
    let stage = Stage::mariadb();
    let mut client = stage.client();
    for (repeat, frames, payload) in [
        (16_777_210, 1, 16_777_214),
        (16_777_211, 2, 16_777_215),
        (16_777_212, 2, 16_777_216),
    ] {
        let reply = client.query(&format!("SELECT REPEAT('a',{repeat})"));
        let row = reply
            .packets
            .iter()
            .find(|packet| packet.part == Part::Row)
            .expect("a row");
        assert_eq!((row.frames, row.payload.len()), (frames, payload));
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
}

#[test]
fn b154_files_are_not_commands() {
    for stage in Stage::both_with("CREATE TABLE bl1(b LONGBLOB)") {
        let mut client = stage.client();
        let sql = "LOAD DATA LOCAL INFILE 'x.bin' INTO TABLE bl1 CHARACTER SET binary FIELDS TERMINATED BY 'NEVER' ESCAPED BY '' LINES TERMINATED BY 'END'";
        for first in [0x01, 0x03, 0x0e, 0x11, 0x16, 0x17, 0x19, 0x1f] {
            let mut file = vec![first];
            file.extend_from_slice(b"SELECT 'from a file'");
            file.extend_from_slice(b"END");
            // Each packet starts with a byte that is a command's; pieces of one byte too.
            for piece in [7, 1000, 1] {
                stage.trail();
                let reply = client.query_with_file(sql, &file, piece);
                assert_eq!(
                    reply.affected_and_insert_id().0,
                    1,
                    "{first:#04x} in pieces of {piece}"
                );
                let trail = stage.trail();
                // A new connection is set up first; of the file nothing is a command.
                let ran = trail.iter().filter(|seen| seen.is(sql)).count();
                let of_file = |seen: &&Seen| seen.entry.text.contains("from a file");
                assert_eq!(ran, 1, "{trail:?}");
                assert_eq!(trail.iter().find(of_file), None, "{trail:?}");
            }
            let stored = format!(
                "SELECT HEX(b), COUNT(*) FROM bl1 WHERE b LIKE '_SELECT%' AND ORD(b)={first} GROUP BY 1 LOCK IN SHARE MODE"
            );
            let hex: String = file[..file.len() - 3]
                .iter()
                .map(|byte| format!("{byte:02X}"))
                .collect();
            assert_eq!(table(&client.query(&stored)), [format!("{hex},3")]);
        }
        // A piece that fills its frame is followed by an empty one, which is no end of the file.
        let mut file = vec![b'z'; 16_777_215];
        file.extend_from_slice(b"END");
        let reply = client.query_with_file(sql, &file, 16_777_215);
        assert_eq!(reply.affected_and_insert_id().0, 1);
        let longest = client.query("SELECT MAX(LENGTH(b)) FROM bl1 LOCK IN SHARE MODE");
        assert_eq!(longest.cell(), "16777215");
        // A client that has no such file says so by an empty one; the session goes on.
        client.query_with_file(sql, b"", 1).assert_ok();
        // An error of the server behind the file.
        let nowhere =
            client.query_with_file("LOAD DATA LOCAL INFILE 'x' INTO TABLE nosuch", b"1\n", 5);
        assert_eq!(nowhere.error_code(), 1146);
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
}

#[test]
fn b156_an_error_behind_rows_ends_the_result() {
    for stage in
        Stage::both_with("CREATE TABLE n3(i INT PRIMARY KEY); INSERT INTO n3 VALUES (1),(2),(3)")
    {
        for login in [
            stage.login(),
            stage.login().without(Capabilities::DEPRECATE_EOF),
        ] {
            let mut client = stage.client_as(&login);
            let sql = "SELECT i, IF(i=2,(SELECT 1 UNION SELECT 2),0) FROM n3";
            let direct = Wire::connect(stage.bed.address(Node::Primary), &login).query(sql);
            let reply = client.query(sql);
            assert_eq!(reply.error_code(), 1242);
            assert_eq!(reply.rows(), direct.rows());
            assert_eq!(client.query("SELECT 7").cell(), "7");
        }
    }
}

#[test]
fn b157_an_error_behind_a_result_keeps_its_number() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let reply = client.query("SELECT 1; SELECT * FROM nosuch");
        assert_eq!(
            (reply.error_code(), table_of(&reply)),
            (1146, vec!["1".to_owned()])
        );
        assert_eq!(client.query("SELECT 2").cell(), "2");
    }
}

#[test]
fn b160_b176_texts_and_tracked_state_are_the_servers() {
    for stage in Stage::both() {
        for tracks in [true, false] {
            let less = if tracks {
                Capabilities::NONE
            } else {
                Capabilities::SESSION_TRACK
            };
            let login = stage.login().without(less);
            let mut direct = Wire::connect(stage.bed.address(Node::Primary), &login);
            let mut client = stage.client_as(&login);
            let schema = stage.schema.name();
            for sql in [
                "INSERT INTO u VALUES(1),(2)",
                "UPDATE t SET v=v",
                "DELETE FROM u",
                &format!("USE {schema}"),
                "SET autocommit=0",
                "SET autocommit=1",
                "SET NAMES utf8mb4",
                "SET NAMES latin1",
                "SET @@sql_mode=''",
                "BEGIN",
                "COMMIT",
                "SELECT 1",
            ] {
                let one = direct.query(sql);
                match sql.split_whitespace().next() {
                    Some("INSERT") => {
                        direct.ok("DELETE FROM u");
                    }
                    Some("DELETE") => {
                        direct.ok("INSERT INTO u VALUES(1),(2)");
                    }
                    _ => {}
                }
                let two = client.query(sql);
                assert_same(&format!("{sql}, tracking {tracks}"), &one, &two, &[]);
                let tracked = two.status().contains(Status::SESSION_STATE_CHANGED);
                assert!(tracks || !tracked, "{sql}");
            }
            let insert = client.query("INSERT INTO u VALUES(1),(2)");
            let text = String::from_utf8_lossy(&insert.last().payload).into_owned();
            assert!(text.contains("Records: 2  Duplicates: 0"), "{text}");
            client.ok("DELETE FROM u");
        }
    }
}

#[test]
fn b165_packets_of_no_length() {
    for stage in Stage::both() {
        let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
        wire.send_bytes(&[0, 0, 0, 1]);
        let packet = wire.try_packet().expect("a refusal");
        assert_eq!(packet.payload[..3], [0xff, 0x13, 0x04], "1043");
        assert!(wire.read_to_close().is_empty());
        let mut client = stage.client();
        let mut direct = stage.direct();
        let said = client.try_command(&[]);
        let expected = direct.try_command(&[]);
        match (&said, &expected) {
            (Ok(said), Ok(expected)) => assert_eq!(said.error(), expected.error()),
            _ => assert_eq!(said.is_err(), expected.is_err(), "{said:?} {expected:?}"),
        }
        assert_eq!(stage.client().query("SELECT 1").cell(), "1");
    }
}

#[test]
fn b168_a_session_command_with_a_long_reply() {
    for stage in Stage::both() {
        let mut client = stage.client();
        if stage.is_mariadb() {
            let long = client
                .query("SET STATEMENT max_statement_time=25 FOR SELECT seq FROM seq_1_to_70000");
            assert_eq!(long.rows().len(), 70_000);
            assert_eq!(client.query("SELECT 1").cell(), "1");
        }
        assert!(client.query("SHOW VARIABLES").rows().len() > 300);
        assert_eq!(client.query("SELECT 1").cell(), "1");
        client.ok(&format!("SET @x='{}'", "x".repeat(5_000_000)));
        assert_eq!(client.query("SELECT LENGTH(@x)").cell(), "5000000");
        assert_eq!(
            client.query("SELECT LENGTH(@x) FROM t WHERE id=1").cell(),
            "5000000"
        );
    }
}

#[test]
fn b170_a_client_that_offers_compression_is_answered_plainly() {
    let stage = Stage::mariadb();
    let login = stage.login().with(Capabilities::COMPRESS);
    let mut client = stage.client_as(&login);
    assert!(!client.capabilities.contains(Capabilities::COMPRESS));
    for len in [0, 49, 50, 51, 16_777_215] {
        assert_eq!(
            client
                .query(&format!("SELECT REPEAT('a',{len})"))
                .cell()
                .len(),
            len
        );
    }
}

#[test]
fn b175_replies_start_at_one_whatever_was_opened_for_them() {
    for stage in Stage::both() {
        // Each command is the first one of its session, so the connection is opened while it waits.
        let lone = Login::plain();
        for payload in [
            &[0x1f][..],
            &[0x0e],
            b"\x03SELECT 1",
            b"\x02mysql",
            b"\x16SELECT 1",
            &[0x1b, 0, 0],
            &[0x09],
        ] {
            let mut client = Wire::connect(stage.atlas.address(), &lone);
            let reply = client.command(payload);
            assert!(reply.error().is_none(), "{reply:?}");
        }
        // And of one that lost its connections meanwhile.
        for payload in [&[0x1f][..], &[0x0e], b"\x03SELECT 1", b"\x03DO 1"] {
            stage.trail();
            let mut client = stage.client();
            client.ok("DO 1");
            client.query("SELECT 1").assert_ok();
            let mut connections: Vec<_> = stage.trail().iter().map(Seen::connection).collect();
            connections.sort_unstable();
            connections.dedup();
            assert_eq!(connections.len(), 2, "{connections:?}");
            for (node, id) in connections {
                let mut root = stage.bed.root(node);
                root.ok(&format!("KILL {id}"));
                eventually("it is gone", || {
                    let id = id.to_string();
                    !root
                        .query("SHOW PROCESSLIST")
                        .rows()
                        .iter()
                        .any(|row| row[0].as_deref() == Some(&id))
                });
            }
            let reply = client.command(payload);
            assert!(reply.error().is_none(), "{reply:?}");
        }
        // COM_CHANGE_USER: 1 is the switch, 3 what follows it.
        let mut client = stage.client();
        let packets = client.change_user(&stage.login()).expect("the same user");
        let ids: Vec<u8> = packets.iter().map(|packet| packet.seq).collect();
        assert_eq!(ids[..2], [1, 3], "{packets:?}");
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
}

#[test]
fn b177_every_command_is_numbered_anew() {
    for stage in Stage::both_with(
        "CREATE TABLE n300(n INT); INSERT INTO n300 SELECT a.id*100+b.id*10+c.id FROM t a, t b, t c",
    ) {
        // By a way with a switch of plugins: the log-in's numbers go to 4.
        let login = stage.login().plugin("mysql_native_password");
        let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
        wire = wire.log_in(&login).expect("a log-in");
        let many = "SELECT 1 FROM n300 a, n300 b LIMIT 300";
        let select = wire.prepare("SELECT ?");
        for round in 0..60 {
            assert_eq!(wire.query("SELECT 1").cell(), "1");
            assert!(wire.query("SELECT id FROM t WHERE id=99").rows().is_empty());
            assert_eq!(wire.query("BOGUS").error_code(), 1064);
            wire.command(&[0x0e]).assert_ok();
            let prepared = wire.prepare("SELECT 1");
            wire.close_statement(&prepared);
            wire.execute(&select, &[Param::Int(round)]).assert_ok();
            if round % 20 == 0 {
                let rows = wire.query(many);
                assert_eq!(rows.rows().len(), 300);
                assert!(
                    rows.packets.iter().any(|packet| packet.seq == 255)
                        && rows.packets.iter().any(|packet| packet.seq == 0)
                );
            }
        }
    }
}

/// The kind that B053 and B165 stand for: many commands in one write, replies in order.
#[test]
fn commands_sent_together_are_answered_one_by_one() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let mut bytes = Vec::new();
        for n in 0..50 {
            bytes.extend(frame(
                0,
                &client.query_payload(format!("SELECT {n}").as_bytes()),
            ));
            bytes.extend(frame(0, &[0x0e]));
            bytes.extend(frame(
                0,
                &client.query_payload(format!("INSERT INTO u VALUES({n})").as_bytes()),
            ));
            bytes.extend(frame(0, &client.query_payload(b"BOGUS")));
        }
        client.send_bytes(&bytes);
        for n in 0..50 {
            assert_eq!(client.reply(Expect::Text).cell(), n.to_string());
            client.reply(Expect::Single).assert_ok();
            assert_eq!(client.reply(Expect::Text).affected_and_insert_id().0, 1);
            assert_eq!(client.reply(Expect::Text).error_code(), 1064);
        }
        assert_eq!(stage.count("u"), 50);
    }
}

/// Small things that a server answers at once.
#[test]
fn empty_statements() {
    for stage in Stage::both() {
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for sql in [
            "",
            ";",
            "  ",
            "/* only a comment */",
            "-- x",
            "#",
            ";;",
            "/* a */;",
            "SELECT 1;",
            "SELECT 1; ",
        ] {
            let (one, two) = (direct.query(sql), client.query(sql));
            assert_eq!(outcome(&two), outcome(&one), "{sql:?}");
        }
    }
}

#[test]
fn b186_a_statement_larger_than_the_server_takes() {
    let stage = Stage::new(Kind::MariaDb);
    // The servers take 64 MiB.
    let mut client = stage.client();
    let head = b"\x03SELECT LENGTH('".to_vec();
    let payload = [head, vec![b'x'; 65 << 20], b"')".to_vec()].concat();
    let started = Instant::now();
    let reply = client.try_command(&payload);
    match &reply {
        Ok(reply) => assert_eq!(reply.error_code(), 1153),
        // The server closes while the client still sends.
        Err(ended) => assert!(
            matches!(ended, Ended::Closed { .. } | Ended::Reset),
            "{ended:?}"
        ),
    }
    assert!(started.elapsed() < Duration::from_secs(15));
    play(&mut stage.client(), "SELECT 1 => 0002 1");
}
