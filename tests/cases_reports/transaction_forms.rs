//! Reports about transactions that are not a BEGIN as text: XA, prepared, pipelined.

use super::common::{Expect, Node, Param, frame};
use super::stage::{Stage, flags, play};

#[test]
fn b043_xa_blocks_are_transactions() {
    for stage in Stage::both() {
        let mut client = stage.client();
        // Known to the whole server, so named after the test.
        let id = format!("'x{}'", stage.schema);
        let read = "SELECT v FROM t WHERE v=500";
        play(
            &mut client,
            &format!("XA START {id} => 0003\nINSERT INTO t(v) VALUES(500) => 0003"),
        );
        assert_eq!(stage.on_primary(&mut client, read).cell(), "500");
        play(
            &mut client,
            &format!(
                "COMMIT => E1399\nXA END {id} => 0003\nCOMMIT => E1399\nXA PREPARE {id}\nXA COMMIT {id} => 0002"
            ),
        );
        assert_eq!(stage.count("t WHERE v=500"), 1);
        let id = format!(
            "0x{:032x},0x02,0x01",
            u128::from_str_radix(&stage.schema.name()[2..], 16).unwrap_or(3)
        );
        play(
            &mut client,
            &format!(
                "XA START {id} => 0003\nINSERT INTO t(v) VALUES(501) => 0003\nXA END {id} => 0003\nXA PREPARE {id}\nXA ROLLBACK {id} => 0002"
            ),
        );
        assert_eq!(stage.count("t WHERE v=501"), 0);
        let trail = stage.trail();
        let connection = trail[0].connection();
        assert!(
            trail.iter().all(|seen| seen.connection() == connection),
            "{trail:?}"
        );
        stage.on_replica(&mut client, "SELECT 'over'");
    }
}

#[test]
fn b043_a_prepared_xa_transaction_outlives_its_client() {
    // MariaDB keeps it with the connection until that is gone; Atlas must close it and not keep it.
    for stage in Stage::both() {
        let id = format!("'y{}'", stage.schema);
        let mut client = stage.client();
        play(
            &mut client,
            &format!("XA START {id}\nINSERT INTO t(v) VALUES(502)\nXA END {id}\nXA PREPARE {id}"),
        );
        client.quit();
        let mut root = stage.root();
        let name = format!("y{}", stage.schema);
        super::common::eventually("the prepared transaction is listed", || {
            root.query("XA RECOVER")
                .rows()
                .iter()
                .any(|row| row[3].as_deref() == Some(&name))
        });
        // Until the server has let go of the connection it answers 1397 or 1402.
        super::common::eventually("another connection can commit it", || {
            root.query(&format!("XA COMMIT {id}")).error().is_none()
        });
        assert_eq!(stage.count("t WHERE v=502"), 1);
    }
}

#[test]
fn b051_transactions_by_prepared_statements() {
    for stage in Stage::both() {
        let mut client = stage.client();
        // MySQL does not prepare START TRANSACTION (1295).
        let start = client.prepare(if stage.is_mariadb() {
            "START TRANSACTION"
        } else {
            "SET autocommit=0"
        });
        let insert = client.prepare("INSERT INTO t(v) VALUES(?)");
        let commit = client.prepare("COMMIT");
        let read = client.prepare("SELECT v FROM t WHERE id=?");
        let (open, closed) = if stage.is_mariadb() { (3, 2) } else { (1, 0) };
        client.execute(&start, &[]).assert_ok();
        assert_eq!(flags(&client.execute(&insert, &[Param::Int(600)])), open);
        stage.trail();
        assert_eq!(
            client.execute(&read, &[Param::Int(1)]).binary_rows().len(),
            1
        );
        assert!(stage.trail().iter().all(|seen| seen.node == Node::Primary));
        assert_eq!(flags(&client.execute(&commit, &[])), closed);
        assert_eq!(stage.count("t WHERE v=600"), 1);
        client.ok("SET autocommit=1");
        assert_eq!(
            stage
                .on_replica(&mut client, "SELECT v FROM t WHERE id=1")
                .cell(),
            "10"
        );
        client.execute(&read, &[Param::Int(1)]).assert_ok();
        let trail = stage.trail();
        assert!(
            Node::REPLICAS.contains(&trail.last().expect("it ran").node),
            "{trail:?}"
        );
    }
}

#[test]
fn b052_begin_prepared_by_text() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let begin = if stage.is_mariadb() {
            "BEGIN"
        } else {
            "START TRANSACTION"
        };
        let prepare = client.query(&format!("PREPARE p FROM '{begin}'"));
        if prepare.error_code() == 1295 {
            // MySQL does not prepare it.
            assert!(!stage.is_mariadb());
            continue;
        }
        prepare.assert_ok();
        play(&mut client, "EXECUTE p => 0003");
        assert_eq!(
            stage
                .on_primary(&mut client, "SELECT v FROM t WHERE id=1")
                .cell(),
            "10"
        );
        play(
            &mut client,
            "INSERT INTO t(v) VALUES(1) => 0003\nROLLBACK => 0002",
        );
        assert_eq!(stage.count("t WHERE v=1"), 0);
        let trail = stage.trail();
        assert!(
            trail
                .iter()
                .all(|seen| seen.connection() == trail[0].connection()),
            "{trail:?}"
        );
    }
}

#[test]
fn b053_a_pipelined_read_only_transaction() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let mut run = |then: &str| {
            let script = [
                "START TRANSACTION READ ONLY",
                "SELECT @@server_id",
                "SELECT @@server_id",
                "SELECT @@server_id",
                "COMMIT",
                then,
            ];
            let bytes: Vec<u8> = script
                .iter()
                .flat_map(|sql| frame(0, &client.query_payload(sql.as_bytes())))
                .collect();
            client.send_bytes(&bytes);
            let replies: Vec<_> = script.iter().map(|_| client.reply(Expect::Text)).collect();
            assert_eq!(flags(&replies[0]), 0x2003);
            assert_eq!(flags(&replies[4]), 2);
            assert_eq!(replies[1].cell(), replies[2].cell());
            assert_eq!(replies[1].cell(), replies[3].cell());
            assert_eq!(replies[5].cell(), "1");
            let trail = stage.trail();
            let of = |text: &str| -> Vec<_> {
                trail
                    .iter()
                    .filter(|seen| seen.entry.text.contains(text))
                    .map(super::common::Seen::connection)
                    .collect()
            };
            let mut all = of("START TRANSACTION READ ONLY");
            all.extend(of("@@server_id"));
            all.extend(of("COMMIT"));
            assert_eq!(all.len(), 5, "{trail:?}");
            all.dedup();
            assert_eq!(all.len(), 1, "one connection: {trail:?}");
            all[0]
        };
        let (node, connection) = run("SELECT 1");
        // MXS-4978: the server connection is cut between transactions.
        stage.bed.root(node).ok(&format!("KILL {connection}"));
        run("SELECT 1 /* after the cut */");
    }
}
