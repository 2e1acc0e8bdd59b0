//! Reports about a session's variables, warnings, locks and temporary tables: they are the same on both of its connections, and
//! nobody else's.

use std::time::{Duration, Instant};

use super::common::{Kind, Login, Param, Wire, eventually, unique_name};
use super::stage::{Stage, flags, play, table};

/// The same question to both connections of a session: its answers from a replica and from the primary.
pub(crate) fn on_both(
    stage: &Stage,
    client: &mut Wire,
    question: &str,
) -> (Vec<String>, Vec<String>) {
    let replica = table(&stage.on_replica(client, question));
    let primary = table(&stage.on_primary(client, &format!("/*master*/ {question}")));
    (replica, primary)
}

pub(crate) fn same_on_both(stage: &Stage, client: &mut Wire, question: &str, expected: &str) {
    let (replica, primary) = on_both(stage, client, question);
    assert_eq!(replica, [expected], "{question} on the replica");
    assert_eq!(primary, [expected], "{question} on the primary");
}

#[test]
fn b065_autocommit_does_not_outlive_its_client() {
    for stage in Stage::both() {
        let mut one = stage.client();
        play(
            &mut one,
            "SET autocommit=0 => 0000\nSET sort_buffer_size=262144 => 0000",
        );
        assert_eq!(
            table(&one.query("SELECT @@autocommit, @@sort_buffer_size")),
            ["0,262144"]
        );
        one.quit();
        stage.client().ok("INSERT INTO u VALUES(1)");
        assert_eq!(
            stage
                .client()
                .query("SELECT COUNT(*) FROM u FOR UPDATE")
                .cell(),
            "1"
        );
    }
}

#[test]
fn b073_the_id_of_the_ok_packet_and_the_function() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let first = client
            .ok("INSERT INTO t(v) VALUES(1)")
            .affected_and_insert_id()
            .1;
        let second = client.ok(&format!("INSERT INTO t(id,v) VALUES({}+50,2)", first));
        assert_eq!(second.affected_and_insert_id().1, first + 50);
        // A read of a replica in between changes nothing.
        client.query("SELECT v FROM t WHERE id=1").assert_ok();
        assert_eq!(
            client.query("SELECT LAST_INSERT_ID()").cell(),
            first.to_string()
        );
        assert_eq!(client.query("SELECT LAST_INSERT_ID(42)").cell(), "42");
        assert_eq!(client.query("SELECT LAST_INSERT_ID()").cell(), "42");
        let update = client.ok(&format!(
            "UPDATE t SET v=LAST_INSERT_ID(v+1) WHERE id={first}"
        ));
        assert_eq!(update.affected_and_insert_id(), (1, 2));
        assert_eq!(client.query("SELECT @@last_insert_id").cell(), "2");
        // An explicit negative id is its two's complement in the packet.
        let negative = client
            .ok("INSERT INTO t(id,v) VALUES(-5,1)")
            .affected_and_insert_id()
            .1;
        let direct = stage
            .direct()
            .ok("INSERT INTO t(id,v) VALUES(-6,1)")
            .affected_and_insert_id()
            .1;
        assert_eq!(negative, direct.wrapping_add(u64::from(direct != 0)));
    }
}

#[test]
fn b074_last_insert_id_by_a_prepared_statement() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let (insert, ask) = (
            client.prepare("INSERT INTO t(v) VALUES(?)"),
            client.prepare("SELECT LAST_INSERT_ID()"),
        );
        for round in 0..3 {
            let id = client
                .execute(&insert, &[Param::Int(round)])
                .affected_and_insert_id()
                .1;
            client.query("SELECT v FROM t WHERE id=1").assert_ok();
            let row = client
                .execute(&ask, &[])
                .binary_rows()
                .remove(0)
                .remove(0)
                .expect("an id");
            assert_eq!(row[..4], u32::try_from(id).expect("small").to_le_bytes());
        }
    }
}

#[test]
fn b075_row_count_in_a_condition() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("START TRANSACTION");
        client.ok("INSERT INTO t(v) VALUES(1)");
        let found =
            client.query("SELECT id FROM t WHERE ROW_COUNT() = 1 AND id = LAST_INSERT_ID()");
        assert_eq!(found.rows().len(), 1);
        client.ok("COMMIT");
        // With a read elsewhere before it, and state to be brought over: nothing may slip in between.
        client.query("SELECT v FROM t WHERE id=1").assert_ok();
        client.ok("SET time_zone='+01:00'");
        client.ok("INSERT INTO t(v) VALUES(1),(2)");
        assert_eq!(client.query("SELECT ROW_COUNT()").cell(), "2");
        assert_eq!(client.query("SELECT ROW_COUNT()").cell(), "-1");
    }
}

#[test]
fn b076_warnings_of_nobody_elses_statements() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let sql = "SELECT COUNT(*) FROM t WHERE v='abc'";
        let first = client.query(sql);
        let direct = stage.direct().query(sql);
        assert_eq!(first.cell(), "0");
        assert_eq!(first.last().payload, direct.last().payload, "one warning");
        assert_eq!(client.query("SELECT 1").cell(), "1");
        assert_eq!(client.query("SELECT 2").cell(), "2");
    }
}

#[test]
fn b077_warnings_are_asked_where_they_are() {
    for stage in Stage::both() {
        let mut client = stage.client();
        // Set so that state has to be brought to the replica first.
        client.ok("SET @a = 1");
        client.query("SELECT CAST('abc' AS SIGNED)").assert_ok();
        assert!(table(&client.query("SHOW WARNINGS"))[0].starts_with("Warning,1292,"));
        client.query("SELECT CAST('abc' AS SIGNED)").assert_ok();
        assert_eq!(client.query("SHOW COUNT(*) WARNINGS").cell(), "1");
        assert_eq!(client.query("SELECT @@warning_count").cell(), "1");
        client.ok("INSERT IGNORE INTO u VALUES(1),(1)");
        assert!(table(&client.query("SHOW WARNINGS LIMIT 1"))[0].contains(",1062,"));
        for sql in ["BOGUS", "SELECT BOGUS FROM t"] {
            let code = client.query(sql).error_code();
            let shown = table(&client.query("SHOW ERRORS"));
            assert!(shown[0].starts_with(&format!("Error,{code},")), "{shown:?}");
        }
    }
}

#[test]
fn b078_temporary_tables_by_the_binary_protocol() {
    for stage in Stage::both() {
        let mut client = stage.client();
        for round in 0..10 {
            let create = client.prepare("CREATE TEMPORARY TABLE tt(i INT)");
            client.execute(&create, &[]).assert_ok();
            client.close_statement(&create);
            let insert = client.prepare("INSERT INTO tt VALUES(?)");
            client.execute(&insert, &[Param::Int(round)]).assert_ok();
            client.close_statement(&insert);
            assert_eq!(client.query("SELECT i FROM tt").cell(), round.to_string());
            let drop = client.prepare("DROP TEMPORARY TABLE tt");
            client.execute(&drop, &[]).assert_ok();
            client.close_statement(&drop);
            stage.on_replica(&mut client, "SELECT 'free again'");
        }
    }
}

#[test]
fn b079_temporary_tables_made_by_a_procedure() {
    let procedure = "CREATE PROCEDURE mk() BEGIN CREATE TEMPORARY TABLE tp AS SELECT 1 AS i; SET @made = 5; END";
    for stage in Stage::both_with(procedure) {
        let mut client = stage.client();
        client.query("SELECT v FROM t WHERE id=1").assert_ok();
        client.ok("CALL mk()");
        assert_eq!(client.query("SELECT i FROM tp").cell(), "1");
        assert_eq!(client.query("SELECT @made").cell(), "5");
        let mut client = stage.client();
        let call = client.prepare("CALL mk()");
        client.execute(&call, &[]).assert_ok();
        assert_eq!(client.query("SELECT i FROM tp").cell(), "1");
    }
}

#[test]
fn b080_questions_about_a_temporary_table() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("CREATE TEMPORARY TABLE tt(i INT)");
        for sql in [
            "DESCRIBE tt",
            "SHOW CREATE TABLE tt",
            "EXPLAIN SELECT * FROM tt",
            "SHOW COLUMNS FROM tt",
            "(SELECT * FROM tt)",
            "SHOW INDEX FROM tt",
            "WITH x AS (SELECT * FROM tt) SELECT * FROM x",
        ] {
            stage.on_primary(&mut client, sql).assert_ok();
        }
        let select = client.prepare("SELECT * FROM tt");
        client.execute(&select, &[]).assert_ok();
        client.command(b"\x04tt\0").assert_ok();
    }
}

#[test]
fn b081_a_temporary_table_is_not_replaced_by_an_empty_place() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("CREATE TEMPORARY TABLE tt(i INT)");
        let (node, id) = stage.trail().last().expect("it ran").connection();
        stage.bed.root(node).ok(&format!("KILL {id}"));
        let after = client.try_query("SELECT * FROM tt");
        match &after {
            Ok(reply) => assert_eq!(reply.error_code(), 1927, "{reply:?}"),
            Err(ended) => assert!(!matches!(ended, super::common::Ended::Timeout), "{ended:?}"),
        }
        let later = client.try_query("SELECT 1");
        assert!(later.is_err(), "the session is over: {later:?}");
        assert!(!stage.trail().iter().any(|seen| seen.is("SELECT * FROM tt")));
    }
}

#[test]
fn b083_locks_taken_in_every_way_stay_with_their_connection() {
    for stage in Stage::both() {
        let name = unique_name("L");
        for (n, take) in [
            format!("SELECT GET_LOCK('{name}',0)"),
            format!("DO GET_LOCK('{name}',0)"),
            format!("SELECT 1 FROM t WHERE GET_LOCK('{name}',0) LIMIT 1"),
            format!("SET @got = GET_LOCK('{name}',0)"),
        ]
        .iter()
        .enumerate()
        {
            let (mut client, mut other) = (stage.client(), stage.client());
            client.query(take).assert_ok();
            client.query("SELECT v FROM t WHERE id=1").assert_ok();
            play(
                &mut client,
                &format!("BEGIN => 0003\nINSERT INTO u VALUES({n}) => 0003\nCOMMIT => 0002"),
            );
            assert_eq!(
                other.query(&format!("SELECT GET_LOCK('{name}',0)")).cell(),
                "0",
                "{take}"
            );
            assert_eq!(
                client
                    .query(&format!("SELECT RELEASE_LOCK('{name}')"))
                    .cell(),
                "1",
                "{take}"
            );
        }
        assert_eq!(stage.count("u"), 4);
    }
}

#[test]
fn b086_user_variables_on_both_connections() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("SET @v=41");
        client.ok("INSERT INTO u VALUES(@v)");
        assert_eq!(client.query("SELECT @v").cell(), "41");
        stage.bed.wait_replicas();
        same_on_both(&stage, &mut client, "SELECT id FROM u WHERE id=@v", "41");
        client
            .query("SELECT @n:=@n+1 FROM t, (SELECT @n:=0) z")
            .assert_ok();
        assert_eq!(client.query("SELECT @n").cell(), "3");
        assert_eq!(client.query("SELECT @n, @v").cell(), "3");
        client.ok("SET @`a b`='x''y', @V=7");
        assert_eq!(table(&client.query("SELECT @`a b`, @v")), ["x'y,7"]);
    }
}

#[test]
fn b087_an_at_sign_elsewhere_pins_nothing() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("SET @a := (SELECT COUNT(*) FROM t)");
        for sql in [
            "SELECT 1 AS `@a`",
            "SELECT 'x@y.z' AS mail",
            "SELECT 1 /* @b */",
            "SELECT `id` AS '@c' FROM t",
        ] {
            stage.on_replica(&mut client, sql).assert_ok();
        }
    }
}

#[test]
fn b090_reset_connection() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("SET @x=5");
        client.ok("CREATE TEMPORARY TABLE tt(i INT)");
        let statement = client.prepare("SELECT 1");
        client.ok("BEGIN");
        client.ok("INSERT INTO t(v) VALUES(99)");
        let reset = client.command(&[0x1f]);
        assert_eq!((flags(&reset), reset.last().seq), (2, 1));
        assert_eq!(table(&client.query("SELECT @x")), ["NULL"]);
        assert_eq!(client.query("SELECT * FROM tt").error_code(), 1146);
        assert_eq!(
            client.query("SELECT COUNT(*) FROM t WHERE v=99").cell(),
            "0"
        );
        assert_eq!(client.execute(&statement, &[]).error_code(), 1243);
        assert_eq!(
            client.query("SELECT DATABASE()").cell(),
            stage.schema.name()
        );
        same_on_both(
            &stage,
            &mut client,
            "SELECT DATABASE(), @x IS NULL, @@autocommit",
            &format!("{},1,1", stage.schema),
        );
    }
}

#[test]
fn b091_change_of_user_forgets_everything() {
    for stage in Stage::both() {
        let other = stage.bed.schema();
        let mut client = stage.client();
        let default = stage.direct().query("SELECT @@sql_mode").cell();
        for round in 0..30 {
            client.ok("SET @a=1");
            client.ok("SET sql_mode='ANSI_QUOTES'");
            client.ok("CREATE TEMPORARY TABLE tt(i INT)");
            if round % 2 == 0 {
                client.query("SELECT v FROM t").assert_ok();
            }
            let login = Login {
                schema: Some(other.name().to_owned()),
                ..stage.login()
            };
            client.change_user(&login).expect("the same user");
            let rows = client
                .query("SELECT @a, @@sql_mode, DATABASE(), CURRENT_USER()")
                .rows();
            let row: Vec<&str> = rows[0]
                .iter()
                .map(|cell| cell.as_deref().unwrap_or("NULL"))
                .collect();
            assert_eq!(row, ["NULL", &default, other.name(), "plain@%"]);
            for hint in ["", "/*master*/"] {
                let reply = client.query(&format!("{hint} SELECT @a IS NULL, DATABASE()"));
                assert_eq!(table(&reply), [format!("1,{other}")]);
            }
            client.change_user(&stage.login()).expect("back");
        }
        // Nothing of the sixty changes is left on the servers.
        let mut root = stage.root();
        eventually("only this session's connections", || {
            let rows = root.query("SHOW PROCESSLIST").rows();
            let ours = [stage.schema.name(), other.name()];
            rows.iter()
                .filter(|row| {
                    row[3]
                        .as_deref()
                        .is_some_and(|schema| ours.contains(&schema))
                })
                .count()
                <= 1
        });
        // To another account, with other rights.
        client
            .change_user(&Login::app().schema(&stage.schema))
            .expect("the other user");
        assert_eq!(client.query("SELECT CURRENT_USER()").cell(), "app@%");
        assert_eq!(
            stage
                .on_primary(&mut client, "SELECT CURRENT_USER() FOR UPDATE")
                .cell(),
            "app@%"
        );
    }
}

#[test]
fn b107_reset_commands_work_whatever_version_is_announced() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        for version in ["5.6.40", "8.0.36", "5.5.5-10.11.6-MariaDB"] {
            let stage = Stage::with(kind, "", |config| {
                config.server(&format!("server_version = \"{version}\""))
            });
            let mut client = stage.client();
            assert_eq!(client.version, version);
            for _ in 0..2 {
                client.ok("SET @a=1");
                client.command(&[0x0e]).assert_ok();
                assert_eq!(client.query("SELECT @a").cell(), "1");
                client.command(&[0x1f]).assert_ok();
                assert_eq!(table(&client.query("SELECT @a")), ["NULL"]);
                client.ok("SET @a=1");
                client.change_user(&stage.login()).expect("the same user");
                assert_eq!(table(&client.query("SELECT @a")), ["NULL"]);
            }
        }
    }
}

#[test]
fn b108_a_schema_change_that_watches_its_own_locks() {
    let tables = "CREATE TABLE a LIKE t; CREATE TABLE b LIKE t";
    for stage in Stage::both_with(tables) {
        let lock = unique_name("cut");
        let (mut owner, mut renamer, mut watcher) =
            (stage.client(), stage.client(), stage.client());
        let row = table(&owner.query(&format!("SELECT GET_LOCK('{lock}',0), CONNECTION_ID()")));
        let id = row[0].strip_prefix("1,").expect("the lock").to_owned();
        owner.ok("LOCK TABLES a WRITE, b WRITE");
        renamer.ok("SET SESSION lock_wait_timeout=6");
        let rename = "RENAME TABLE a TO a_old, b TO a";
        let payload = renamer.query_payload(rename.as_bytes());
        renamer.send(&payload);
        let seen = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info='{rename}' AND db='{}' AND id<>{id}",
            stage.schema
        );
        eventually("the rename waits", || {
            watcher.query(&format!("/*master*/ {seen}")).cell() == "1"
        });
        // The id is the server's, so it is found there.
        let owner_seen =
            format!("/*master*/ SELECT COUNT(*) FROM information_schema.processlist WHERE id={id}");
        assert_eq!(watcher.query(&owner_seen).cell(), "1");
        assert_eq!(
            watcher
                .query(&format!("SELECT IS_USED_LOCK('{lock}')"))
                .cell(),
            id
        );
        let started = Instant::now();
        owner.ok("UNLOCK TABLES");
        renamer.reply(super::common::Expect::Text).assert_ok();
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(
            owner
                .query(&format!("SELECT RELEASE_LOCK('{lock}')"))
                .cell(),
            "1"
        );
        let trail = stage.trail();
        let of_owner: Vec<_> = trail
            .iter()
            .filter(|seen| seen.entry.text.contains("LOCK"))
            .map(super::common::Seen::connection)
            .collect();
        assert!(
            of_owner
                .iter()
                .filter(|connection| connection.1.to_string() == id)
                .count()
                >= 4,
            "{trail:?}"
        );
    }
}
