//! Reports about prepared statements of the binary protocol, on one connection and on two.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ::atlas::wire::Status;

use super::common::{Expect, Kind, Login, Node, Param, Part, Reply, Seen, Wire, eventually, frame};
use super::stage::{Stage, table};

/// The first cell of the first binary row, as the number that its bytes are.
pub(crate) fn number(reply: &Reply) -> i64 {
    reply.assert_ok();
    let cell = reply.binary_rows().remove(0).remove(0).expect("no NULL");
    let mut bytes = [0; 8];
    bytes[..cell.len()].copy_from_slice(&cell);
    i64::from_le_bytes(bytes)
}

/// An execution without the types of its parameters.
fn without_types(client: &mut Wire, id: u32, params: &[Param]) -> Reply {
    let payload = client.execute_payload(id, 0, params, false);
    client.command(&payload)
}

/// Ends all server connections of the test's clients, and waits until they are gone.
fn cut(stage: &Stage, trail: &[Seen]) {
    let mut connections: Vec<_> = trail.iter().map(Seen::connection).collect();
    connections.sort_unstable();
    connections.dedup();
    for (node, id) in connections {
        let mut root = stage.bed.root(node);
        root.query(&format!("KILL {id}"));
        eventually("it is gone", || {
            let rows = root.query("SHOW PROCESSLIST").rows();
            !rows
                .iter()
                .any(|row| row[0].as_deref() == Some(&id.to_string()))
        });
    }
}

#[test]
fn b114_columns_that_were_added_meanwhile() {
    for stage in Stage::both_with("CREATE TABLE sc(a INT); INSERT INTO sc VALUES(1)") {
        let (mut one, mut two, mut three) = (stage.client(), stage.client(), stage.client());
        let statement = one.prepare("SELECT * FROM sc");
        assert_eq!(one.execute(&statement, &[]).binary_rows()[0].len(), 1);
        two.ok("ALTER TABLE sc ADD b INT DEFAULT 2");
        stage.bed.wait_replicas();
        let reply = one.execute(&statement, &[]);
        let two_and_one = [
            Some(1_i32.to_le_bytes().to_vec()),
            Some(2_i32.to_le_bytes().to_vec()),
        ];
        assert_eq!(reply.binary_rows(), [two_and_one]);
        assert_eq!(three.prepare("SELECT * FROM sc").columns, 2);
    }
}

#[test]
fn b115_views_that_change_all_the_time() {
    for stage in Stage::both_with("CREATE VIEW w AS SELECT id, v FROM t") {
        let mut one = stage.client();
        let read = one.prepare("SELECT COUNT(*) FROM w WHERE v>=?");
        let locking = one.prepare("SELECT v FROM w WHERE id=? FOR UPDATE");
        let write = one.prepare("INSERT INTO u SELECT id FROM w WHERE id<=?");
        let repreparations = || -> u64 {
            let sql = "SHOW GLOBAL STATUS LIKE 'Com_stmt_reprepare'";
            let rows = stage.root().query(sql).rows();
            rows[0][1]
                .as_deref()
                .expect("a value")
                .parse()
                .expect("a number")
        };
        let before = repreparations();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // As many as make the servers give up most often: of three executions on MariaDB one is refused.
            for _ in 0..2 {
                let mut changer = stage.direct();
                let is_over = &is_over;
                scope.spawn(move || {
                    while !is_over.load(Relaxed) {
                        for columns in ["id, v, s", "id, v"] {
                            changer.ok(&format!(
                                "CREATE OR REPLACE VIEW w AS SELECT {columns} FROM t"
                            ));
                        }
                    }
                });
            }
            // Also when an assertion fails, so that the others end.
            let _over = Over(&is_over);
            for _ in 0..40 {
                assert_eq!(number(&one.execute(&read, &[Param::Int(0)])), 3);
                assert_eq!(number(&one.execute(&locking, &[Param::Int(1)])), 10);
                one.execute(&write, &[Param::Int(3)]).assert_ok();
                one.ok("DELETE FROM u");
                one.ok("BEGIN");
                one.ok("INSERT INTO u VALUES (9)");
                let reply = one.execute(&write, &[Param::Int(2)]);
                assert!(reply.assert_ok().status().contains(Status::IN_TRANS));
                one.ok("COMMIT");
                assert_eq!(stage.count("u"), 3, "what the transaction had is there");
                one.ok("DELETE FROM u");
            }
        });
        assert!(repreparations() >= before + 40, "nothing was in the way");
    }
}

/// Says that it is over when it goes.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn b116_executions_without_types() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let statement = client.prepare("SELECT ? + 1");
        let sum = |reply: &Reply| {
            // An integer or a decimal, as the product has it.
            let cell = reply
                .assert_ok()
                .binary_rows()
                .remove(0)
                .remove(0)
                .expect("no NULL");
            if cell.len() == 8 {
                cell[0]
            } else {
                cell.last().expect("digits") - b'0'
            }
        };
        assert_eq!(sum(&client.execute(&statement, &[Param::Int(5)])), 6);
        let second = without_types(&mut client, statement.id, &[Param::Int(8)]);
        assert_eq!(sum(&second), 9);
        client.reset_statement(&statement).assert_ok();
        let third = without_types(&mut client, statement.id, &[Param::Int(3)]);
        assert_eq!(sum(&third), 4);
        // Never typed: what the server says, but that MariaDB itself is not asked, of which some versions end by it.
        let mut direct = stage.direct();
        let (fresh, same) = (
            client.prepare("SELECT ? + 2"),
            direct.prepare("SELECT ? + 2"),
        );
        let said = without_types(&mut client, fresh.id, &[Param::Int(3)]);
        if stage.is_mariadb() {
            let text = "Incorrect arguments to mysqld_stmt_execute".to_owned();
            assert_eq!(said.error(), Some((1210, "HY000".to_owned(), text)));
        } else {
            let expected = without_types(&mut direct, same.id, &[Param::Int(3)]);
            assert_eq!(said.error_code(), expected.error_code());
        }
        // For NULL none are needed.
        let null = [Param::Null];
        let said = without_types(&mut client, fresh.id, &null);
        let expected = without_types(&mut direct, same.id, &null);
        assert_eq!(said.error_code(), expected.error_code());
        assert_eq!(client.execute(&fresh, &[Param::Int(3)]).error(), None);
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
}

#[test]
fn b117_types_are_known_on_both_connections() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let statement = client.prepare("SELECT id FROM t WHERE id >= ? AND id <= ?");
        let params = [Param::Int(0), Param::Int(9)];
        for round in 0..8 {
            client.ok("BEGIN");
            let reply = if round == 0 {
                client.execute(&statement, &params)
            } else {
                without_types(&mut client, statement.id, &params)
            };
            assert_eq!(reply.assert_ok().binary_rows().len(), 3);
            client.ok("COMMIT");
            stage.trail();
            let reply = without_types(&mut client, statement.id, &params);
            assert_eq!(reply.assert_ok().binary_rows().len(), 3, "round {round}");
            let trail = stage.trail();
            assert!(
                trail.iter().all(|seen| seen.node != Node::Primary),
                "{trail:?}"
            );
        }
    }
}

#[test]
fn b119_ids_are_each_sessions_own() {
    for stage in Stage::both() {
        let (mut one, mut two) = (
            stage.client(),
            stage.client_as(&Login::app().schema(&stage.schema)),
        );
        let first = one.prepare("SELECT ? AS a");
        one.execute(&first, &[Param::Int(1)]).assert_ok();
        let other = two.prepare("SELECT ?,?");
        assert_eq!(first.id, other.id);
        let columns = two.execute(&other, &[Param::Int(1), Param::Int(2)]);
        assert_eq!(columns.assert_ok().binary_rows()[0].len(), 2);
        assert_eq!(
            one.execute(&first, &[Param::Int(3)])
                .assert_ok()
                .binary_rows()[0]
                .len(),
            1
        );
        // Behind a change of user the old ids are nobody's.
        one.change_user(&Login::app().schema(&stage.schema))
            .expect("the other user");
        assert_eq!(one.execute(&first, &[Param::Int(3)]).error_code(), 1243);
        let again = one.prepare("SELECT ?,?,?");
        assert_eq!(again.id, 1);
    }
}

#[test]
fn b120_statements_survive_the_loss_of_their_connections() {
    const COUNT: usize = 600;
    for stage in Stage::both() {
        let mut client = stage.client();
        let statements: Vec<_> = (0..COUNT)
            .map(|n| client.prepare(&format!("SELECT {n}, ? + 0")))
            .collect();
        let writes: Vec<_> = (0..20)
            .map(|n| client.prepare(&format!("INSERT INTO t(id,v) VALUES({}, ?)", n + 1000)))
            .collect();
        for statement in statements.iter().step_by(7) {
            client.execute(statement, &[Param::Int(1)]).assert_ok();
        }
        let trail = stage.trail();
        cut(&stage, &trail);
        for (n, statement) in statements.iter().enumerate() {
            let reply = client.execute(statement, &[Param::Int(5)]);
            assert_eq!(number(&reply), i64::try_from(n).expect("small"));
        }
        for statement in &writes {
            client.execute(statement, &[Param::Int(5)]).assert_ok();
        }
        assert_eq!(stage.count("t WHERE v=5"), 20);
        // Closed ones are gone on the servers too.
        for statement in statements.iter().chain(&writes) {
            client.close_statement(statement);
        }
        assert_eq!(
            client
                .execute(&statements[0], &[Param::Int(1)])
                .error_code(),
            1243
        );
    }
}

#[test]
fn b121_cursors_are_fetched_from() {
    for stage in Stage::both_with("CREATE TABLE n3(i INT); INSERT INTO n3 VALUES (1),(2),(3)") {
        let mut client = stage.client();
        let select = client.prepare("SELECT i FROM n3 ORDER BY i");
        let open = client.execute_cursor(&select, &[]);
        assert!(open.status().contains(Status::CURSOR_EXISTS), "{open:?}");
        let parts = |reply: &Reply| {
            reply
                .packets
                .iter()
                .map(|packet| packet.part)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            parts(&client.fetch(&select, 2)),
            [Part::Row, Part::Row, Part::End]
        );
        // Reads of a replica in between.
        client.query("SELECT v FROM t WHERE id=1").assert_ok();
        let last = client.fetch(&select, 5);
        assert_eq!(parts(&last), [Part::Row, Part::End]);
        assert!(last.status().contains(Status::LAST_ROW_SENT));
        let mut direct = stage.direct();
        let same = direct.prepare("SELECT i FROM n3 ORDER BY i");
        direct.execute_cursor(&same, &[]);
        direct.fetch(&same, 2);
        direct.fetch(&same, 5);
        let (third, expected) = (client.fetch(&select, 5), direct.fetch(&same, 5));
        assert_eq!(third.error_code(), expected.error_code());
        client.reset_statement(&select).assert_ok();
        assert_eq!(
            client.execute(&select, &[]).assert_ok().binary_rows().len(),
            3
        );
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
}

#[test]
fn b123_statements_are_reset() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let statement = client.prepare("SELECT LENGTH(?)");
        client.reset_statement(&statement).assert_ok();
        assert_eq!(
            client
                .command(&[&[0x1a][..], &777_u32.to_le_bytes()].concat())
                .error_code(),
            1243
        );
        client.long_data(&statement, 0, &[b'x'; 500]);
        client.reset_statement(&statement).assert_ok();
        assert_eq!(
            number(&client.execute(&statement, &[Param::from("abc")])),
            3
        );
        client.long_data(&statement, 0, &[b'x'; 500]);
        assert_eq!(number(&client.execute(&statement, &[Param::Long])), 500);
    }
}

#[test]
fn b128_bound_values_are_the_ones_that_were_bound() {
    const CLIENTS: usize = 5;
    const ROUNDS: usize = 120;
    let stage = Stage::with(
        Kind::MariaDb,
        "CREATE TABLE t2(n INT, a VARBINARY(40), b VARBINARY(40))",
        |c| c.server("workers = 1"),
    );
    let value = |client: usize, round: usize, which: usize| -> Vec<u8> {
        (0..20)
            .map(|byte| {
                u8::try_from((client * 31 + round * 7 + which * 101 + byte * 13) % 256)
                    .expect("a byte")
            })
            .collect()
    };
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut client = stage.client();
            scope.spawn(move || {
                let insert = client.prepare("INSERT INTO t2(n,a,b) VALUES(?,?,?),(?,?,?)");
                for round in 0..ROUNDS {
                    let n = i64::try_from(number * ROUNDS + round).expect("small");
                    let bytes = |which| Param::Bytes(value(number, round, which));
                    let params = [
                        Param::Int(n),
                        bytes(0),
                        bytes(1),
                        Param::Int(n),
                        bytes(2),
                        bytes(3),
                    ];
                    client.execute(&insert, &params).assert_ok();
                    if round % 10 == 0 {
                        assert_eq!(
                            client.query("SELECT REPEAT('z', 300000)").cell().len(),
                            300_000
                        );
                    }
                }
            });
        }
    });
    let mut rows = stage
        .client()
        .query("SELECT n, HEX(a), HEX(b) FROM t2 LOCK IN SHARE MODE")
        .rows();
    assert_eq!(rows.len(), 2 * CLIENTS * ROUNDS);
    rows.sort();
    let hex = |bytes: Vec<u8>| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect::<String>()
    };
    for row in rows {
        let n: usize = row[0]
            .as_deref()
            .expect("a number")
            .parse()
            .expect("a number");
        let (client, round) = (n / ROUNDS, n % ROUNDS);
        let pair = (
            row[1].clone().expect("bytes"),
            row[2].clone().expect("bytes"),
        );
        let right = |a, b| pair == (hex(value(client, round, a)), hex(value(client, round, b)));
        assert!(right(0, 1) || right(2, 3), "{n}: {pair:?}");
    }
}

#[test]
fn b129_procedures_with_several_results() {
    let procedures = "CREATE PROCEDURE pp() BEGIN SELECT 1; SELECT 2; END; CREATE PROCEDURE po(OUT x INT) BEGIN SELECT 7; SET x = 8; END";
    for stage in Stage::both_with(procedures) {
        let mut client = stage.client();
        let text = client.query("CALL pp()");
        assert_eq!(
            (text.results().len(), table(&text)),
            (3, vec!["1".to_owned(), "2".to_owned()])
        );
        let call = client.prepare("CALL pp()");
        let reply = client.execute(&call, &[]);
        assert_eq!(reply.assert_ok().results().len(), 3);
        let out = client.prepare("CALL po(?)");
        let reply = client.execute(&out, &[Param::Null]);
        let mut direct = stage.direct();
        let same = direct.prepare("CALL po(?)");
        let expected = direct.execute(&same, &[Param::Null]);
        assert_eq!(reply.assert_ok().packets, expected.packets);
        // The set of OUT parameters is announced by a flag.
        let flag = reply
            .packets
            .iter()
            .filter(|packet| packet.part == Part::End);
        let has_flag = |packet: &super::common::Packet| {
            let at = 3;
            u16::from_le_bytes([packet.payload[at], packet.payload[at + 1]]) & 0x1000 != 0
        };
        assert!(flag.clone().any(has_flag), "{reply:?}");
        assert_eq!(client.query("SELECT 1").cell(), "1");
    }
}

#[test]
fn b130_what_atlas_answers_itself_can_be_prepared() {
    for stage in Stage::both() {
        let (mut client, mut direct) = (stage.client(), stage.direct());
        client.ok("INSERT INTO t(v) VALUES(1)");
        for sql in [
            "SELECT CONNECTION_ID()",
            "SELECT LAST_INSERT_ID()",
            "SELECT @@version_comment LIMIT 1",
            "SHOW WARNINGS",
            "KILL 0",
            "SELECT ROW_COUNT()",
            "SHOW VARIABLES LIKE 'autocommit'",
        ] {
            // MySQL does not prepare every SHOW.
            let payload = [b"\x16", sql.as_bytes()].concat();
            let (told, expected) = (client.command(&payload), direct.command(&payload));
            assert_eq!(told.error(), expected.error(), "{sql}");
            if told.error().is_some() {
                continue;
            }
            let (one, two) = (client.prepare(sql), direct.prepare(sql));
            assert_eq!(
                (one.columns, one.params),
                (two.columns, two.params),
                "{sql}"
            );
            assert_eq!(one.reply.packets[0].payload.len(), 12, "{sql}");
            let (reply, expected) = (client.execute(&one, &[]), direct.execute(&two, &[]));
            assert_eq!(reply.error_code(), expected.error_code(), "{sql}");
            if sql == "KILL 0" {
                assert_eq!(reply.error_code(), 1094);
            } else {
                assert_eq!(reply.packets.len(), expected.packets.len(), "{sql}");
            }
        }
    }
}

#[test]
fn b132_the_statement_prepared_last_has_a_second_name() {
    let stage = Stage::mariadb();
    let mut client = stage.client();
    let last = 0xffff_ffff_u32;
    let prepare = |sql: &str| [b"\x16", sql.as_bytes()].concat();
    for sql in ["SELECT ?", "INSERT INTO u VALUES (?)"] {
        let execute = client.execute_payload(last, 0, &[Param::Int(5)], true);
        client.send_bytes(&[frame(0, &prepare(sql)), frame(0, &execute)].concat());
        client.reply(Expect::Prepare).assert_ok();
        client.reply(Expect::Binary).assert_ok();
    }
    assert_eq!(stage.count("u WHERE id=5"), 1);
    // Where the preparation fails both get an error.
    let mut direct = stage.direct();
    let outcome = |wire: &mut Wire| {
        let execute = wire.execute_payload(last, 0, &[], true);
        wire.send_bytes(&[frame(0, &prepare("BOGUS")), frame(0, &execute)].concat());
        let (first, second) = (wire.reply(Expect::Prepare), wire.reply(Expect::Binary));
        assert_eq!(first.error_code(), 1064);
        second.error_code()
    };
    let expected = outcome(&mut direct);
    let code = outcome(&mut client);
    assert!(
        code != 0 && (code == expected || code == 1243),
        "{code} {expected}"
    );
    assert_eq!(client.query("SELECT 1").cell(), "1");
}
