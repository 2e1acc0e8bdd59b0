//! Reports about what SET does: each member arrives, on both connections of the session, and for nobody else.

use std::time::{Duration, Instant};

use super::common::{Kind, Login, Node, Param, Wire};
use super::session::{on_both, same_on_both};
use super::stage::{Stage, flags, table};

#[test]
fn b058_a_long_list_with_an_expression() {
    for stage in Stage::both() {
        let mut one = stage.client();
        one.ok(
            "SET NAMES utf8mb4, @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode,',STRICT_ALL_TABLES'),',NO_AUTO_VALUE_ON_ZERO'), \
             @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 600",
        );
        one.ok("INSERT INTO t(id,v) VALUES(0,1)");
        assert_eq!(stage.count("t WHERE id=0"), 1);
        let question =
            "SELECT @@wait_timeout, @@sql_auto_is_null, @@sql_mode LIKE '%NO_AUTO_VALUE_ON_ZERO%'";
        assert_eq!(table(&one.query(question)), ["600,0,1"]);
        let mut two = stage.client();
        two.ok("INSERT INTO t(id,v) VALUES(0,2)");
        two.ok("INSERT INTO t(id,v) VALUES(0,2)");
        assert_eq!(stage.count("t WHERE v=2 AND id>3"), 2);
        let default = stage.direct().query("SELECT @@wait_timeout").cell();
        assert_eq!(two.query("SELECT @@wait_timeout").cell(), default);
    }
}

#[test]
fn b059_variables_of_one_client_are_not_anothers() {
    for stage in Stage::both() {
        let (mut one, mut two) = (stage.client(), stage.client());
        one.ok("SET SESSION sql_safe_updates=1");
        let shown = two.query("SHOW SESSION VARIABLES LIKE 'sql_safe_updates'");
        assert_eq!(table(&shown), ["sql_safe_updates,OFF"]);
        two.ok("DELETE FROM u");
        assert_eq!(
            stage.on_primary(&mut one, "DELETE FROM t").error_code(),
            1175
        );
        assert_eq!(stage.count("t"), 3);
        let shown = one.query("SHOW SESSION VARIABLES LIKE 'sql_safe_updates'");
        assert_eq!(table(&shown), ["sql_safe_updates,ON"]);
    }
}

#[test]
fn b061_every_member_of_a_list_arrives() {
    for stage in Stage::both() {
        let members = [
            "@@SESSION.sql_mode = ''",
            "@@SESSION.auto_increment_increment = 5",
            "@@SESSION.auto_increment_offset = 3",
            "@@SESSION.sql_auto_is_null = 0",
            "@@SESSION.wait_timeout = 27000",
        ];
        let mut turned = members;
        turned.reverse();
        for list in [members, turned] {
            // MySQL wants a right for two of them.
            let mut client = stage.client_as(&Login::app().schema(&stage.schema));
            client.query("SELECT v FROM t WHERE id=1").assert_ok();
            client.ok(&format!("SET {}", list.join(", ")));
            let question = "SELECT @@sql_mode, @@auto_increment_increment, @@auto_increment_offset, @@sql_auto_is_null, @@wait_timeout";
            same_on_both(&stage, &mut client, question, ",5,3,0,27000");
        }
    }
}

#[test]
fn b063_the_first_statement_of_sqlx() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("SET sql_mode=(SELECT CONCAT(@@sql_mode, ',PIPES_AS_CONCAT,NO_ZERO_DATE')),time_zone='+01:00',NAMES utf8mb4 COLLATE utf8mb4_unicode_520_ci;");
        let question = "SELECT 'a'||'b', @@time_zone, @@collation_connection";
        same_on_both(
            &stage,
            &mut client,
            question,
            "ab,+01:00,utf8mb4_unicode_520_ci",
        );
    }
}

#[test]
fn b064_names_in_the_middle_of_a_list() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.ok("SET SESSION SQL_MODE='STRICT_ALL_TABLES,ANSI_QUOTES', NAMES utf8mb4, time_zone='+02:00';");
        let question = "SELECT @@sql_mode,@@character_set_client,@@time_zone";
        let (replica, primary) = on_both(&stage, &mut client, question);
        assert_eq!(replica, primary);
        assert!(
            primary[0].contains("ANSI_QUOTES") && primary[0].contains("STRICT_ALL_TABLES"),
            "{primary:?}"
        );
        assert!(primary[0].ends_with(",utf8mb4,+02:00"), "{primary:?}");
        assert_eq!(
            stage
                .on_replica(&mut client, "SELECT \"v\" FROM \"t\" WHERE \"id\"=1")
                .cell(),
            "10"
        );
    }
}

#[test]
fn b066_a_set_holds_for_what_follows() {
    for stage in Stage::both() {
        let (mut holder, mut waiter) = (stage.client(), stage.client());
        waiter.ok("SET @@innodb_lock_wait_timeout = 1");
        same_on_both(
            &stage,
            &mut waiter,
            "SELECT @@innodb_lock_wait_timeout",
            "1",
        );
        holder.ok("BEGIN");
        holder.ok("UPDATE t SET v=0 WHERE id=1");
        waiter.ok("BEGIN");
        let started = Instant::now();
        assert_eq!(
            waiter.query("UPDATE t SET v=1 WHERE id=1").error_code(),
            1205
        );
        assert!(started.elapsed() < Duration::from_secs(10));
        holder.ok("ROLLBACK");
        waiter.ok("ROLLBACK");
    }
}

#[test]
fn b067_names_of_character_sets_in_every_quote() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let database = stage
            .direct()
            .query("SELECT @@character_set_database")
            .cell();
        client.ok("SET CHARACTER SET 'cp1251'");
        let question =
            "SELECT @@character_set_client, @@character_set_results, @@character_set_connection";
        same_on_both(
            &stage,
            &mut client,
            question,
            &format!("cp1251,cp1251,{database}"),
        );
        client.ok("SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'");
        let question = "SELECT @@character_set_client, @@collation_connection";
        same_on_both(
            &stage,
            &mut client,
            question,
            "utf8mb4,utf8mb4_unicode_520_ci",
        );
        client.ok("SET NAMES latin1");
        client.ok("SET NAMES `utf8mb4`");
        let direct = {
            let mut direct = stage.direct();
            direct.ok("SET NAMES utf8mb4");
            direct.query(question)
        };
        same_on_both(&stage, &mut client, question, &table(&direct)[0]);
        client.ok("SET NAMES DEFAULT");
        let mut direct = stage.direct();
        direct.ok("SET NAMES DEFAULT");
        same_on_both(
            &stage,
            &mut client,
            question,
            &table(&direct.query(question))[0],
        );
        client.ok("SET CHARSET latin1");
        same_on_both(
            &stage,
            &mut client,
            "SELECT @@character_set_client",
            "latin1",
        );
    }
}

#[test]
fn b068_what_stands_behind_the_semicolon_is_another_statement() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let reply = client.ok("SET NAMES utf8mb4;SET character_set_results=NULL");
        assert_eq!(reply.results().len(), 2);
        same_on_both(
            &stage,
            &mut client,
            "SELECT @@character_set_results",
            "NULL",
        );
        assert_eq!(
            client.query("SELECT @@character_set_client").cell(),
            "utf8mb4"
        );
    }
}

#[test]
fn b069_collations_beyond_one_byte() {
    for stage in Stage::both() {
        // 1069 and 305.
        let collation = if stage.is_mariadb() {
            "utf8mb4_general_nopad_ci"
        } else {
            "utf8mb4_0900_as_ci"
        };
        let mut client = stage.client();
        client.ok(&format!("SET NAMES utf8mb4 COLLATE {collation}"));
        // Neither connection but the primary's is open yet.
        let question = "SELECT @@collation_connection, @@character_set_client";
        same_on_both(
            &stage,
            &mut client,
            question,
            &format!("{collation},utf8mb4"),
        );
        // A log-in says one byte; what it means is the same on both.
        for id in [8, 33, 45, 46, 224, 255] {
            let login = stage.login().charset(id);
            let mut client = stage.client_as(&login);
            let direct = Wire::connect(stage.bed.address(Node::Primary), &login).query(question);
            same_on_both(&stage, &mut client, question, &table(&direct)[0]);
        }
    }
}

#[test]
fn b071_four_byte_characters_of_clients_with_different_sets() {
    for stage in Stage::both() {
        let mut one = stage.client_as(&stage.login().charset(8));
        one.query("SELECT 1").assert_ok();
        one.quit();
        let mut two = stage.client();
        let insert = two.ok("INSERT INTO t(s) VALUES('😀')");
        assert_eq!(insert.last().payload[5..7], [0, 0], "warnings");
        stage.bed.wait_replicas();
        same_on_both(
            &stage,
            &mut two,
            "SELECT HEX(s) FROM t ORDER BY id DESC LIMIT 1",
            "F09F9880",
        );
    }
}

#[test]
fn b097_b131_set_as_a_prepared_statement() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.query("SELECT v FROM t WHERE id=1").assert_ok();
        let a = client.prepare("SET @a = ?");
        let b = client.prepare("SET @b = 2");
        let _never = client.prepare("SET @c = 3");
        client.execute(&a, &[Param::Int(1)]).assert_ok();
        client.execute(&b, &[]).assert_ok();
        // The bound value is on the primary only, so that is where the question goes.
        assert_eq!(table(&client.query("SELECT @a, @b, @c")), ["1,2,NULL"]);
        let mut client = stage.client();
        for (sql, question, before, after) in [
            (
                "set session sql_mode=''",
                "SELECT @@sql_mode = ''",
                "0",
                "1",
            ),
            (
                "SET NAMES latin1",
                "SELECT @@character_set_client",
                "utf8mb4",
                "latin1",
            ),
            (
                "SET time_zone='+03:00'",
                "SELECT @@time_zone",
                "SYSTEM",
                "+03:00",
            ),
        ] {
            let set = client.prepare(sql);
            assert_eq!(set.reply.packets[0].payload.len(), 12);
            same_on_both(&stage, &mut client, question, before);
            client.execute(&set, &[]).assert_ok();
            same_on_both(&stage, &mut client, question, after);
        }
        let off = client.prepare("SET autocommit=0");
        assert_eq!(flags(&client.query("SELECT 1")), 2);
        assert_eq!(flags(&client.execute(&off, &[])), 0);
        stage.on_primary(&mut client, "SELECT v FROM t");
    }
}

#[test]
fn b099_a_batch_that_begins_with_set_runs_once() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.query("SELECT v FROM t WHERE id=1").assert_ok();
        let batch = "SET @p0='x'; INSERT INTO t(s) VALUES(@p0); SELECT id FROM t WHERE ROW_COUNT() = 1 AND id = LAST_INSERT_ID();";
        let reply = stage.on_primary(&mut client, batch);
        assert_eq!(reply.results().len(), 3);
        assert_eq!(reply.rows().len(), 1);
        assert_eq!(stage.count("t WHERE s='x'"), 1);
        stage.bed.wait_replicas();
        assert_eq!(
            table(&client.query("SELECT @p0, COUNT(*) FROM t WHERE s='x'")),
            ["x,1"]
        );
        let trail = stage.trail();
        assert!(
            !trail
                .iter()
                .any(|seen| seen.entry.text.contains("INSERT INTO")),
            "{trail:?}"
        );
    }
}

#[test]
fn b100_values_with_commas() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.query("SELECT v FROM t WHERE id=1").assert_ok();
        client.ok("SET @@optimizer_switch='index_merge=on,index_merge_union=off'");
        client.ok("SET session_track_system_variables='time_zone,autocommit'");
        let question = "SELECT @@session_track_system_variables, @@optimizer_switch LIKE '%index_merge_union=off%'";
        let mut direct = stage.direct();
        direct.ok("SET @@optimizer_switch='index_merge=on,index_merge_union=off'");
        direct.ok("SET session_track_system_variables='time_zone,autocommit'");
        same_on_both(
            &stage,
            &mut client,
            question,
            &table(&direct.query(question))[0],
        );
        stage.client().query("SHOW TABLES").assert_ok();
    }
}

#[test]
fn b101_the_first_question_of_a_driver() {
    for stage in Stage::both() {
        let isolation = if stage.is_mariadb() {
            "tx_isolation"
        } else {
            "transaction_isolation"
        };
        let sql = format!(
            "/* drv */SELECT @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, \
             @@wait_timeout AS wait_timeout, @@{isolation} AS transaction_isolation"
        );
        let mut client = stage.client_as(&Login::app().schema(&stage.schema));
        let mut direct = stage.direct();
        assert_eq!(client.query(&sql).packets, direct.query(&sql).packets);
        client.ok("SET SESSION auto_increment_increment=2");
        let row = table(&client.query(&sql));
        assert!(row[0].starts_with("2,"), "{row:?}");
    }
}

#[test]
fn b105_three_sets_in_a_batch() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let batch = "SET sql_mode=(SELECT CONCAT(@@sql_mode,',PIPES_AS_CONCAT'));\nSET time_zone='+01:00';\nSET NAMES utf8mb4 COLLATE utf8mb4_unicode_520_ci;";
        assert_eq!(client.ok(batch).results().len(), 3);
        client.set_timeout(Duration::from_secs(5));
        let question = "SELECT 'a'||'b', @@time_zone, @@collation_connection";
        let prepared = client.prepare(question);
        let expected = "ab,+01:00,utf8mb4_unicode_520_ci";
        for round in 0..10 {
            same_on_both(&stage, &mut client, question, expected);
            let row = client.execute(&prepared, &[]).binary_rows().remove(0);
            let row: Vec<u8> = row.into_iter().flatten().flatten().collect();
            assert_eq!(row, b"\x02ab\x06+01:00\x16utf8mb4_unicode_520_ci");
            client.ok(&format!("INSERT INTO t(v) VALUES({round})"));
        }
    }
}

/// What sessions begin with changes for those that begin later, also on connections that others have used before.
#[test]
fn global_settings_reach_the_sessions_that_begin_after_them() {
    const QUESTION: &str = "SELECT @@net_retry_count /*master*/";
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, "", |config| config.user("root", "", &[]));
        let mut admin = stage.client_as(&Login::root());
        let before = admin.query(QUESTION).cell();
        for _ in 0..4 {
            assert_eq!(stage.client().query(QUESTION).cell(), before);
        }
        admin.ok("SET GLOBAL net_retry_count = 23");
        let seen = stage.client().query(QUESTION).cell();
        let own = admin.query(QUESTION).cell();
        admin.ok(&format!("SET GLOBAL net_retry_count = {before}"));
        assert_eq!(seen, "23");
        assert_eq!(own, before);
        assert_eq!(stage.client().query(QUESTION).cell(), before);
    }
}

/// A statement that left nothing to be asked about has given its connection back; prepared questions about it are answered all the same.
#[test]
fn prepared_questions_about_a_statement_that_left_nothing() {
    // MySQL prepares no SHOW WARNINGS.
    let stage = Stage::with(Kind::MariaDb, "", |config| config);
    let mut client = stage.client();
    let insert = client.prepare("INSERT INTO u VALUES (77)");
    client.execute(&insert, &[]).assert_ok();
    let show = client.prepare("SHOW WARNINGS");
    // Another one comes by the connection.
    stage
        .client()
        .query("SELECT CAST('x' AS SIGNED) /*master*/")
        .assert_ok();
    let shown = client.execute(&show, &[]);
    shown.assert_ok();
    assert_eq!(shown.binary_rows().len(), 0, "{shown:?}");
}

#[test]
fn b131_a_set_is_prepared_and_holds_when_it_is_executed() {
    for stage in Stage::both() {
        for (set, question, value) in [
            ("set session sql_mode=''", "SELECT @@sql_mode", ""),
            (
                "SET NAMES latin1",
                "SELECT @@character_set_client",
                "latin1",
            ),
            ("SET autocommit=0", "SELECT @@autocommit", "0"),
        ] {
            let (mut client, mut other, mut direct) =
                (stage.client(), stage.client(), stage.direct());
            let before = client.query(question).cell();
            assert_ne!(before, value);
            let (one, two) = (client.prepare(set), direct.prepare(set));
            assert_eq!(one.reply.packets[0].payload.len(), 12, "{set}");
            assert_eq!(client.query(question).cell(), before, "{set}");
            let (reply, expected) = (client.execute(&one, &[]), direct.execute(&two, &[]));
            assert_eq!(
                reply.packets[0].payload, expected.packets[0].payload,
                "{set}"
            );
            for _ in 0..2 {
                assert_eq!(client.query(question).cell(), value, "{set}");
                assert_eq!(other.query(question).cell(), before, "{set}");
            }
        }
    }
}
