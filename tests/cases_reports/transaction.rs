//! Reports about what is in a transaction, what ends one, and on which connection it runs.

use super::common::{Kind, Login, Node};
use super::stage::{Stage, flags, play};

#[test]
fn b033_every_spelling_of_set_autocommit() {
    for stage in Stage::both() {
        let mut client = stage.client_as(&Login::app().schema(&stage.schema));
        play(
            &mut client,
            "SET autocommit=0; => 0000
             SELECT @@autocommit => 0000 0
             set session autocommit=1 => 0002
             SELECT @@autocommit => 0002 1
             SET @@autocommit=off => 0000
             SELECT @@autocommit => 0000 0
             SET @@session.autocommit='ON' => 0002
             SELECT @@autocommit => 0002 1
             SET LOCAL autocommit = FALSE => 0000
             SELECT @@autocommit => 0000 0
             SET autocommit:=1 => 0002
             SELECT @@autocommit => 0002 1
             /*!40101 SET autocommit=0 */ => 0000
             SELECT @@autocommit => 0000 0
             SET autocommit=DEFAULT => 0002
             SELECT @@autocommit => 0002 1
             SET @x=1, autocommit=0 => 0000
             SELECT @@autocommit, @x => 0000 0,1
             SET autocommit=1 => 0002
             SET autocommit=0, sql_mode='bogus' => E1231
             SELECT @@autocommit => 0002 1
             SET autocommit=0 => 0000
             SET GLOBAL autocommit=1 => 0000
             SELECT @@autocommit => 0000 0",
        );
        // With autocommit off a read of a table opens a transaction, so it belongs to the primary.
        stage
            .on_primary(&mut client, "SELECT v FROM t WHERE id=1")
            .assert_ok();
        client.ok("COMMIT");
        client.ok("SET autocommit=1");
        stage
            .on_replica(&mut client, "SELECT v FROM t WHERE id=1")
            .assert_ok();
    }
}

#[test]
fn b035_turning_autocommit_on_commits_when_it_was_off() {
    for stage in Stage::both() {
        let mut client = stage.client();
        play(
            &mut client,
            "SET autocommit=0 => 0000
             INSERT INTO t(v) VALUES(101) => 0001
             SET autocommit=1 => 0002
             ROLLBACK => 0002",
        );
        assert_eq!(stage.count("t WHERE v=101"), 1);
        play(
            &mut client,
            "BEGIN => 0003
             INSERT INTO t(v) VALUES(102) => 0003
             SET autocommit=1 => 0003
             ROLLBACK => 0002",
        );
        assert_eq!(stage.count("t WHERE v=102"), 0);
        play(
            &mut client,
            "BEGIN => 0003
             INSERT INTO t(v) VALUES(102) => 0003
             SET autocommit=0 => 0001
             SET autocommit=1 => 0002
             ROLLBACK => 0002",
        );
        assert_eq!(stage.count("t WHERE v=102"), 1);
        let trail = stage.trail();
        let first = trail[0].connection();
        assert!(
            trail.iter().all(|seen| seen.connection() == first),
            "{trail:?}"
        );
    }
}

#[test]
fn b036_flags_of_commit_after_a_savepoint() {
    for stage in Stage::both() {
        play(
            &mut stage.client(),
            "START TRANSACTION => 0003
             SAVEPOINT s1 => 0003
             COMMIT => 0002
             COMMIT => 0002",
        );
    }
}

#[test]
fn b038_an_error_with_autocommit_leaves_no_transaction() {
    for stage in Stage::both() {
        play(
            &mut stage.client(),
            "INSERT INTO u VALUES(1) => 0002
             INSERT INTO u VALUES(1) => E1062
             INSERT INTO u VALUES(2) => 0002
             ROLLBACK => 0002",
        );
        assert_eq!(stage.count("u"), 2);
    }
}

#[test]
fn b039_ddl_commits_even_when_it_fails() {
    for stage in Stage::both() {
        let mut client = stage.client();
        play(
            &mut client,
            "BEGIN
             INSERT INTO t(v) VALUES(310) => 0003
             DROP TABLE nonexist => E1051",
        );
        // The error says nothing of it, so the proxy may learn it from the next reply only.
        play(&mut client, "ROLLBACK => 0002");
        assert_eq!(stage.count("t WHERE v=310"), 1);
        play(
            &mut client,
            "BEGIN
             INSERT INTO t(v) VALUES(311) => 0003
             CREATE TEMPORARY TABLE tt(i INT) => 0003
             ROLLBACK => 0002",
        );
        assert_eq!(stage.count("t WHERE v=311"), 0);
    }
}

#[test]
fn b040_administration_commits_and_ends_the_pin() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let mut commits = vec![
            "FLUSH TABLES",
            "LOCK TABLES t WRITE",
            "ANALYZE TABLE t",
            "OPTIMIZE TABLE t",
            "CHECK TABLE t",
            "REPAIR TABLE t",
            "CREATE VIEW w AS SELECT 1",
            "CREATE INDEX i ON t(v)",
            "ALTER TABLE t ADD x INT",
            "RENAME TABLE u TO u9",
            "TRUNCATE u9",
        ];
        if stage.is_mariadb() {
            commits.push("RESET QUERY CACHE");
            commits.push("SET PASSWORD = PASSWORD('plain-pw')");
        } else {
            commits.push("SET PASSWORD = 'plain-pw'");
        }
        for (n, sql) in commits.iter().enumerate() {
            let v = 340 + n;
            client.ok("BEGIN");
            client.ok(&format!("INSERT INTO t(v) VALUES({v})"));
            assert_eq!(flags(&client.ok(sql)), 2, "{sql}");
            if sql.starts_with("LOCK") {
                client.ok("UNLOCK TABLES");
            }
            let read = stage.on_replica(&mut client, &format!("SELECT 'free after {n}'"));
            assert_eq!(flags(&read), 2, "{sql}");
            client.ok("ROLLBACK");
            assert_eq!(stage.count(&format!("t WHERE v={v}")), 1, "{sql}");
        }
    }
}

#[test]
fn b041_begin_commits_the_transaction_before() {
    for stage in Stage::both() {
        let mut client = stage.client();
        play(
            &mut client,
            "BEGIN => 0003
             INSERT INTO t(v) VALUES(200) => 0003
             BEGIN => 0003
             INSERT INTO t(v) VALUES(201) => 0003
             ROLLBACK => 0002",
        );
        assert_eq!(
            (stage.count("t WHERE v=200"), stage.count("t WHERE v=201")),
            (1, 0)
        );
        // The same, cut off: the client is told, and nothing of it is said again.
        play(
            &mut client,
            "BEGIN
             INSERT INTO t(v) VALUES(202) => 0003
             BEGIN
             INSERT INTO t(v) VALUES(203) => 0003",
        );
        let trail = stage.trail();
        let (node, connection) = trail.last().expect("it ran").connection();
        assert_eq!(node, Node::Primary);
        stage.root().ok(&format!("KILL {connection}"));
        let after = client.try_query("INSERT INTO t(v) VALUES(204)");
        assert!(
            after.as_ref().map_or(true, |reply| reply.error().is_some()),
            "{after:?}"
        );
        let count = |v| stage.count(&format!("t WHERE v={v}"));
        assert_eq!((count(202), count(203), count(204)), (1, 0, 0));
        assert!(
            stage
                .trail()
                .iter()
                .all(|seen| !seen.entry.text.contains("INSERT"))
        );
    }
}

#[test]
fn b044_set_transaction_holds_for_the_next_transaction_only() {
    for stage in Stage::both() {
        let mut client = stage.client();
        client.query("SELECT v FROM t WHERE id=1");
        play(
            &mut client,
            "SET TRANSACTION READ ONLY => 0002
             SELECT 1 => 0002 1
             START TRANSACTION => 2003
             INSERT INTO t(v) VALUES(1) => E1792
             ROLLBACK => 0002
             START TRANSACTION => 0003
             INSERT INTO t(v) VALUES(2) => 0003
             SET TRANSACTION READ ONLY => E1568
             COMMIT => 0002",
        );
        assert_eq!(
            (stage.count("t WHERE v=1"), stage.count("t WHERE v=2")),
            (0, 1)
        );
        let told = |seen: &super::common::Seen| seen.entry.text.contains("TRANSACTION READ ONLY");
        let trail = stage.trail();
        assert_eq!(
            trail.iter().filter(|seen| told(seen)).count(),
            2,
            "{trail:?}"
        );
        stage.on_replica(&mut client, "SELECT v FROM t WHERE id=1");
        // A read with autocommit is a transaction too, and uses it up.
        play(
            &mut client,
            "SET TRANSACTION READ ONLY => 0002
             SELECT v FROM t WHERE id=1 => 0002 10
             INSERT INTO t(v) VALUES(3) => 0002",
        );
        let trail = stage.trail();
        assert_eq!(
            trail.iter().filter(|seen| told(seen)).count(),
            1,
            "{trail:?}"
        );
    }
}

#[test]
fn b047_set_session_transaction_reaches_both_connections() {
    for stage in Stage::both() {
        let (mut client, mut other) = (stage.client(), stage.client());
        client.query("SELECT v FROM t WHERE id=1");
        let variable = if stage.is_mariadb() {
            "tx_read_only"
        } else {
            "transaction_read_only"
        };
        let ask = format!("SELECT @@session.{variable}");
        client.ok("SET SESSION TRANSACTION READ ONLY");
        assert_eq!(client.query(&ask).cell(), "1");
        assert_eq!(client.query(&format!("{ask} FROM t LIMIT 1")).cell(), "1");
        assert_eq!(
            client
                .query(&format!("/*master*/ {ask} FROM t LIMIT 1"))
                .cell(),
            "1"
        );
        assert_eq!(
            client.query("INSERT INTO t(v) VALUES(1)").error_code(),
            1792
        );
        assert_eq!(other.query(&ask).cell(), "0");
        other.ok("INSERT INTO t(v) VALUES(2)");
        client.ok("SET SESSION TRANSACTION READ WRITE");
        client.ok("INSERT INTO t(v) VALUES(1)");
        assert_eq!(client.query(&ask).cell(), "0");
    }
}

#[test]
fn b048_savepoints_without_begin() {
    for stage in Stage::both() {
        play(
            &mut stage.client(),
            "SET autocommit=0
             SAVEPOINT x
             INSERT INTO t(v) VALUES(1) => 0001
             SAVEPOINT y => 0001
             INSERT INTO t(v) VALUES(2) => 0001
             ROLLBACK TO SAVEPOINT y => 0001
             RELEASE SAVEPOINT x => 0001
             COMMIT => 0000",
        );
        assert_eq!(
            (stage.count("t WHERE v=1"), stage.count("t WHERE v=2")),
            (1, 0)
        );
    }
}

#[test]
fn b049_savepoints_that_are_not_there() {
    for stage in Stage::both() {
        play(
            &mut stage.client(),
            "BEGIN => 0003
             SAVEPOINT sa_1 => 0003
             RELEASE SAVEPOINT sa_1 => 0003
             COMMIT => 0002
             RELEASE SAVEPOINT zz => E1305
             ROLLBACK TO zz => E1305
             SELECT 1 => 0002 1",
        );
    }
}

#[test]
fn b055_a_rollback_undoes_what_its_own_connection_did() {
    const CLIENTS: usize = 8;
    const LOOPS: usize = 40;
    let stage = Stage::new(Kind::MariaDb);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let mut client = stage.client();
            std::thread::spawn(move || {
                for n in 0..LOOPS {
                    let v = 10_000 + number * LOOPS + n;
                    client.ok("BEGIN");
                    client.ok(&format!("INSERT INTO t(v) VALUES({v})"));
                    let read = client.query(&format!("SELECT v FROM t WHERE v={v}"));
                    assert_eq!(read.cell(), v.to_string());
                    client.ok("ROLLBACK");
                    client.query("SELECT COUNT(*) FROM t").assert_ok();
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("a client");
    }
    assert_eq!(stage.count("t"), 3);
}

#[test]
fn b056_start_transaction_with_comments_and_options() {
    for stage in Stage::both() {
        let mut client = stage.client();
        play(
            &mut client,
            "START TRANSACTION /*!40108 WITH CONSISTENT SNAPSHOT */ => 0003",
        );
        assert_eq!(flags(&stage.on_primary(&mut client, "SELECT v FROM t")), 3);
        play(
            &mut client,
            "COMMIT => 0002
             START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY => 2003
             SELECT v FROM t WHERE id=1 => 2003 10
             INSERT INTO t(v) VALUES(1) => E1792
             COMMIT => 0002
             BEGIN /* x */ WORK => 0003
             COMMIT /*!50000 WORK */ => 0002",
        );
        let trail = stage.trail();
        assert!(
            trail
                .iter()
                .all(|seen| seen.connection() == trail[0].connection()),
            "{trail:?}"
        );
    }
}

/// The kind that B056 and others stand for: chained transactions stay open.
#[test]
fn b056_completion_type_chains() {
    for stage in Stage::both() {
        let mut client = stage.client();
        play(
            &mut client,
            "SET completion_type=1 => 0002
             BEGIN => 0003
             COMMIT => 0003
             ROLLBACK AND NO CHAIN => 0002
             BEGIN => 0003
             COMMIT AND CHAIN => 0003
             INSERT INTO t(v) VALUES(1) => 0003
             ROLLBACK => 0003
             SET completion_type=0 => 0003
             COMMIT => 0002",
        );
        assert_eq!(stage.count("t WHERE v=1"), 0);
    }
}
