//! Reports about which server a statement went to.

use ::atlas::wire::Status;

use super::common::{Login, Node, Part};
use super::stage::{Stage, outcome, table};

#[test]
fn b003_locking_reads_go_to_the_primary() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let read = "SELECT id FROM t WHERE id=1";
        for tail in [
            " FOR UPDATE;",
            " FOR UPDATE SKIP LOCKED",
            " FOR UPDATE NOWAIT",
            " LOCK IN SHARE MODE",
            "\nFOR UPDATE",
        ] {
            let reply = stage.on_primary(&mut client, &format!("{read}{tail}"));
            assert_eq!(reply.cell(), "1", "{tail}");
        }
        for tail in [" FOR SHARE", " FOR UPDATE OF t"] {
            let reply = stage.on_primary(&mut client, &format!("{read}{tail}"));
            let code = if stage.is_mariadb() { 1064 } else { 0 };
            assert_eq!(reply.error_code(), code, "{tail}");
        }
    }
}

#[test]
fn b004_the_words_of_a_lock_elsewhere_do_not_count() {
    for stage in Stage::both() {
        let mut client = stage.client();
        stage.on_primary(
            &mut client,
            "SELECT id FROM t WHERE id=1 LIMIT 1 FOR UPDATE",
        );
        for sql in [
            "SELECT 'x for update' AS c FROM t",
            "SELECT id AS 'for update' FROM t",
            "SELECT id FROM t WHERE s='lock in share mode'",
            "SELECT id FROM t -- for update",
        ] {
            stage.on_replica(&mut client, sql).assert_ok();
        }
    }
}

#[test]
fn b005_a_lock_is_seen_through_comments_and_blanks() {
    for stage in Stage::both() {
        let mut client = stage.client();
        for sql in [
            "select id from t where id=1 for/**/update",
            "select id from t where id=1 for -- x\n update",
            "SeLeCt id FROM t WHERE id=1\tFOR\tUPDATE",
        ] {
            assert_eq!(stage.on_primary(&mut client, sql).cell(), "1");
        }
    }
}

#[test]
fn b008_leading_comments_of_several_lines() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let read = "/* criteria\n   query */ select this_.id as y0_ from t this_";
        assert_eq!(table(&stage.on_replica(&mut client, read)).len(), 3);
        let write = "/* a\nb */ INSERT INTO t(v) VALUES(1)";
        let reply = stage.on_primary(&mut client, write);
        assert_eq!(reply.affected_and_insert_id().0, 1);
    }
}

#[test]
fn b009_two_dashes_are_a_comment_only_before_a_blank() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("SET @s = --4");
        assert_eq!(client.query("SELECT @s").cell(), "4");
        assert_eq!(stage.on_replica(&mut client, "SELECT 5--1").cell(), "6");
        assert_eq!(stage.on_replica(&mut client, "SELECT 5-- 1").cell(), "5");
    }
}

#[test]
fn b012_executable_comments_are_code() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let delete = "/*!50000 DELETE FROM t WHERE id=3 */";
        let reply = stage.on_primary(&mut client, delete);
        assert_eq!(reply.affected_and_insert_id().0, 1);
        let locking = "SELECT id FROM t WHERE id=1 /*!50000 FOR UPDATE */";
        assert_eq!(stage.on_primary(&mut client, locking).cell(), "1");
        assert_eq!(client.query("SELECT 1 /*!50000 + 1 */").cell(), "2");
        let product = if stage.is_mariadb() { "2" } else { "1" };
        assert_eq!(client.query("SELECT 1 /*M! + 1 */").cell(), product);
        if stage.is_mariadb() {
            let delete = "/*M!100000 DELETE FROM t WHERE id=99 */";
            assert_eq!(
                stage
                    .on_primary(&mut client, delete)
                    .affected_and_insert_id()
                    .0,
                0
            );
        }
        client.ok("/*!40101 SET NAMES latin1 */");
        let charset = "SELECT @@character_set_client";
        assert_eq!(
            client.query(&format!("{charset} FROM t LIMIT 1")).cell(),
            "latin1"
        );
        assert_eq!(
            stage
                .on_replica(
                    &mut client,
                    "SELECT @@character_set_results, 'é' FROM t LIMIT 1"
                )
                .rows()[0][0]
                .as_deref(),
            Some("latin1")
        );
        client.ok("/*!40101 SET NAMES utf8mb4 */");
        let both = stage.on_replica(
            &mut client,
            "SELECT @@character_set_results, HEX('é') FROM t LIMIT 1",
        );
        assert_eq!(table(&both), ["utf8mb4,C3A9"]);
    }
}

#[test]
fn b015_set_statement_for_a_write_is_a_write() {
    let stage = Stage::mariadb();
    let mut client = stage.client();
    client.query("SELECT v FROM t WHERE id=2");
    let write = "SET STATEMENT max_statement_time=25 FOR UPDATE t SET v=v+1 WHERE id=1";
    let reply = stage.on_primary(&mut client, write);
    assert_eq!(reply.affected_and_insert_id().0, 1);
    let read = "SET STATEMENT max_statement_time=25 FOR SELECT v FROM t";
    assert_eq!(table(&client.query(read)).len(), 3);
    // Nothing of it is said again: not to the replica's connection, not to a new one.
    client.query("SELECT v FROM t WHERE id=3");
    client.command(&[0x1f]).assert_ok();
    client.query("SELECT v FROM t WHERE id=3");
    assert_eq!(
        client.query("SELECT v FROM t WHERE id=1 FOR UPDATE").cell(),
        "11"
    );
    assert!(
        !stage
            .trail()
            .iter()
            .any(|seen| seen.entry.text.contains("UPDATE t SET"))
    );
}

#[test]
fn b016_functions_of_sequences_run_on_the_primary() {
    let stage = Stage::with(super::common::Kind::MariaDb, "CREATE SEQUENCE sq", |c| c);
    let mut client = stage.client();
    assert_eq!(
        stage.on_primary(&mut client, "SELECT NEXTVAL(sq)").cell(),
        "1"
    );
    assert_eq!(
        stage
            .on_primary(&mut client, "SELECT NEXT VALUE FOR sq")
            .cell(),
        "2"
    );
    assert_eq!(
        stage.on_primary(&mut client, "SELECT LASTVAL(sq)").cell(),
        "2"
    );
    assert_eq!(
        stage
            .on_primary(&mut client, "SELECT PREVIOUS VALUE FOR sq")
            .cell(),
        "2"
    );
    assert_eq!(
        stage.on_primary(&mut client, "SELECT SETVAL(sq, 9)").cell(),
        "9"
    );
}

#[test]
fn b017_stored_functions_may_write() {
    let function = "CREATE FUNCTION ff() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO t(v) VALUES(77); RETURN 5; END; CREATE TABLE n SELECT 1 AS id";
    for stage in Stage::both_with(function) {
        let mut client = stage.client();
        assert_eq!(stage.on_primary(&mut client, "SELECT ff()").cell(), "5");
        let spaced = "SELECT id, ff ( ) FROM n WHERE id=1";
        assert_eq!(table(&stage.on_primary(&mut client, spaced)), ["1,5"]);
        let named = format!("SELECT {}.ff()", stage.schema);
        assert_eq!(stage.on_primary(&mut client, &named).cell(), "5");
        let quoted = format!("SELECT `{}` . `ff`()", stage.schema);
        assert_eq!(stage.on_primary(&mut client, &quoted).cell(), "5");
        assert_eq!(stage.count("t WHERE v=77"), 4);
    }
}

#[test]
fn b018_select_into_writes() {
    for stage in Stage::both() {
        let mut client = stage.client_as(&Login::app().schema(&stage.schema));
        let file = stage.atlas.dir().join("x1.csv");
        let into = format!("SELECT * FROM t INTO OUTFILE '{}'", file.display());
        let first = stage.on_primary(&mut client, &into);
        assert_eq!(first.affected_and_insert_id().0, 3);
        assert_eq!(stage.on_primary(&mut client, &into).error_code(), 1086);
        for sql in [
            "SELECT id INTO @z FROM t WHERE id=1",
            "SELECT id FROM t WHERE id=1 INTO @y",
        ] {
            assert_eq!(stage.on_primary(&mut client, sql).last().part, Part::Ok);
        }
        assert_eq!(
            table(&stage.on_primary(&mut client, "SELECT @z,@y")),
            ["1,1"]
        );
    }
}

#[test]
fn b019_reading_a_system_variable_pins_nothing() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.query("SELECT @@max_allowed_packet").assert_ok();
        stage
            .on_primary(&mut client, "INSERT INTO t(v) VALUES(5)")
            .assert_ok();
        stage.bed.wait_replicas();
        let found = stage.on_replica(&mut client, "SELECT @@server_id, v FROM t WHERE v=5");
        assert!(table(&found)[0].ends_with(",5"));
    }
}

#[test]
fn b020_explain_of_a_write_changes_nothing() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("EXPLAIN INSERT INTO t(id,v) VALUES(900,1)");
        client.ok("EXPLAIN UPDATE t SET v=0 WHERE id=1");
        client.ok("DESC SELECT 1");
        assert_eq!(stage.count("t WHERE id=900 OR v=0"), 0);
        if stage.is_mariadb() {
            stage
                .on_primary(&mut client, "ANALYZE UPDATE t SET v=12 WHERE id=1")
                .assert_ok();
            assert_eq!(stage.count("t WHERE v=12"), 1);
        } else {
            stage.on_primary(&mut client, "EXPLAIN ANALYZE DELETE FROM t WHERE id=1");
        }
    }
}

#[test]
fn b021_an_anonymous_block_is_no_transaction() {
    let stage = Stage::mariadb();
    let mut client = stage.client();
    let block = "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END";
    let reply = stage.on_primary(&mut client, block);
    assert_eq!(reply.results().len(), 3);
    assert_eq!(table(&reply), ["1", "2"]);
    assert_eq!(reply.last().part, Part::Ok);
    assert_eq!(outcome(&reply), "0002 1;2");
    // It may hold anything, so what follows may stay on the primary; it need not be in a transaction for that.
    assert_eq!(client.query("SELECT v FROM t WHERE id=1").cell(), "10");
}

#[test]
fn b023_the_word_set_does_not_make_a_batch_a_set() {
    let table = "CREATE TABLE app_settings(name VARCHAR(10), val VARCHAR(10)); INSERT INTO app_settings VALUES('bar','1')";
    for stage in Stage::both_with(table) {
        let mut client = stage.client();
        let batch = "UPDATE `app_settings` SET `val`='2' WHERE `name`='bar'; SELECT ROW_COUNT();";
        let reply = stage.on_primary(&mut client, batch);
        assert_eq!(reply.packets[0].part, Part::Ok);
        assert_eq!(reply.packets[0].payload[1], 1, "affected");
        assert!(
            Status(u16::from_le_bytes([
                reply.packets[0].payload[3],
                reply.packets[0].payload[4]
            ]))
            .contains(Status::MORE_RESULTS)
        );
        assert_eq!(super::stage::table(&reply), ["1"]);
        stage.on_replica(&mut client, "SELECT 'not pinned' FROM t");
    }
}

#[test]
fn b024_a_batch_is_forwarded_byte_for_byte() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let batch =
            "update t set v=1, s=null where id=1;\n\n   update t set v=2, s=null where id=2";
        let reply = stage.on_primary(&mut client, batch);
        let affected: Vec<u8> = reply
            .packets
            .iter()
            .map(|packet| packet.payload[1])
            .collect();
        assert_eq!(affected, [1, 1]);
        assert_eq!(stage.count("t WHERE v=id AND s IS NULL"), 2);
    }
}

#[test]
fn b027_user_locks_live_on_one_connection_of_the_primary() {
    for stage in Stage::both() {
        // Locks are known by name to the whole server.
        let lock = format!("m{}", stage.schema);
        let mut client = stage.client();
        let mut other = stage.client();
        let mut connections = Vec::new();
        let mut run = |client: &mut super::common::Wire, sql: &str| {
            let (reply, seen) = stage.run(client, sql);
            connections.push((sql.to_owned(), seen.connection()));
            reply
        };
        assert_eq!(
            run(&mut client, &format!("SELECT GET_LOCK('{lock}',0)")).cell(),
            "1"
        );
        client.query("SELECT id FROM t LIMIT 1").assert_ok();
        for sql in ["BEGIN", "INSERT INTO t(v) VALUES(1)", "COMMIT"] {
            run(&mut client, sql).assert_ok();
        }
        let mine = format!("SELECT IS_USED_LOCK('{lock}') = CONNECTION_ID()");
        assert_eq!(run(&mut client, &mine).cell(), "1");
        let free = format!("SELECT IS_FREE_LOCK('{lock}')");
        assert_eq!(stage.on_primary(&mut other, &free).cell(), "0");
        assert_eq!(
            run(&mut client, &format!("SELECT RELEASE_LOCK('{lock}')")).cell(),
            "1"
        );
        assert_eq!(run(&mut client, "SELECT RELEASE_ALL_LOCKS()").cell(), "0");
        assert!(
            connections
                .iter()
                .all(|(_, c)| *c == connections[0].1 && c.0 == Node::Primary),
            "{connections:?}"
        );
    }
}

#[test]
fn b029_texts_are_whole_whatever_else_the_worker_reads() {
    const ROUNDS: usize = 3000;
    let stage = Stage::with(
        super::common::Kind::MariaDb,
        "CREATE TABLE w(n INT PRIMARY KEY, s VARCHAR(500))",
        |c| c.server("workers = 1"),
    );
    let text = |n: usize| format!("{{5f96-ab}}-{n}-{}", "x".repeat(60 + n * 7 % 340));
    let others: Vec<_> = (0..2)
        .map(|number| {
            let mut other = stage.client();
            std::thread::spawn(move || {
                for n in 0..ROUNDS {
                    let length = n * 13 % 5000;
                    let reply = other.query(&format!(
                        "SELECT LENGTH('{}') -- {number}",
                        "y".repeat(length)
                    ));
                    assert_eq!(reply.cell(), length.to_string());
                }
            })
        })
        .collect();
    let mut client = stage.client();
    // Several on their way at a time, so that one read holds the ends and beginnings of commands.
    for start in (0..ROUNDS).step_by(8) {
        let mut bytes = Vec::new();
        for n in start..start + 8 {
            let sql = format!("INSERT INTO w VALUES({n}, '{}')", text(n));
            bytes.extend(super::common::frame(
                0,
                &client.query_payload(sql.as_bytes()),
            ));
        }
        client.send_bytes(&bytes);
        for _ in 0..8 {
            client.reply(super::common::Expect::Text).assert_ok();
        }
    }
    for other in others {
        other.join().expect("the other clients");
    }
    let rows = client
        .query("SELECT n, s FROM w ORDER BY n LOCK IN SHARE MODE")
        .rows();
    assert_eq!(rows.len(), ROUNDS);
    for (n, row) in rows.iter().enumerate() {
        assert_eq!(row[1].as_deref(), Some(text(n).as_str()));
    }
}
