//! What is of one product, or needs another stage: bulk execution, cached column definitions, KILL, commands that an account may not
//! give, and what differs by decision.

use ::atlas::wire::Capabilities;

use crate::common::{Kind, Login, Node, Param, Part, Wire};
use crate::delivery::{Delivery, Outcome};
use crate::differences::Differences;
use crate::prepared::prepared_tour;
use crate::queries::text_tour;
use crate::script::Script;
use crate::stage::Stage;
use crate::{KINDS, TABLES, on_both};

/// COM_STMT_BULK_EXECUTE behind the statement's number: flags, types, then rows of indicators and values.
fn bulk(types: &[u8], rows: &[&[Option<Param>]]) -> Vec<u8> {
    // 128: the types go along.
    let mut out = vec![if types.is_empty() { 0 } else { 128 }, 0];
    for code in types {
        out.extend_from_slice(&[*code, 0]);
    }
    for value in rows.iter().flat_map(|row| row.iter()) {
        match value {
            // No value here but the column's default.
            None => out.push(2),
            Some(Param::Null) => out.push(1),
            Some(value) => {
                out.push(0);
                value.write(&mut out);
            }
        }
    }
    out
}

#[test]
fn bulk_executions() {
    let (int, text) = (0x08, 0xfd);
    let row = |id: i64, name: &str| [Some(Param::Int(id)), Some(Param::from(name))];
    let mut s = Script::new();
    let insert = s.prepare("INSERT INTO pairs VALUES (?, ?)");
    let (one, two, three) = (row(1, "one"), row(2, "two"), row(3, "three"));
    s.statement(0xfa, insert, &bulk(&[int, text], &[&one, &two]));
    s.statement(0xfa, insert, &bulk(&[], &[&three]));
    s.statement(0xfa, insert, &bulk(&[int, text], &[&row(4, "four"), &one]));
    s.query("SHOW WARNINGS")
        .query("SELECT * FROM pairs ORDER BY a /*master*/");
    let odd = [Some(Param::Int(5)), Some(Param::Null)];
    let odder = [Some(Param::Int(6)), None];
    s.statement(0xfa, insert, &bulk(&[int, text], &[&odd, &odder]));
    // A single execution behind it has types of its own, and may leave them out then.
    s.execute(insert, &[Param::Int(7), Param::from("seven")]);
    s.execute_again(insert, &[Param::Int(8), Param::from("eight")]);
    s.statement(0xfa, insert, &bulk(&[int, text], &[])).ping();
    s.statement(0xfa, 0x7000_0001, &bulk(&[int], &[])).ping();
    s.statement(0xfa, u32::MAX, &bulk(&[int, text], &[&row(9, "nine")]));
    let read = s.prepare("SELECT * FROM pairs WHERE a = ?");
    s.statement(0xfa, read, &bulk(&[int], &[&[Some(Param::Int(1))]]))
        .ping();
    s.query("SELECT * FROM pairs ORDER BY a /*master*/");
    let update = s.prepare("UPDATE pairs SET b = ? WHERE a = ?");
    let (x, y) = (
        [Some(Param::from("x")), Some(Param::Int(1))],
        [Some(Param::from("y")), Some(Param::Int(99))],
    );
    s.statement(0xfa, update, &bulk(&[text, int], &[&x, &y]));
    s.query("SELECT * FROM pairs ORDER BY a /*master*/")
        .query("DELETE FROM pairs");

    let mut login = Login::app().without(Capabilities::LONG_PASSWORD);
    let mut differences = Differences::default();
    let tables = ["CREATE TABLE pairs(a INT PRIMARY KEY, b VARCHAR(20) DEFAULT 'none')"];
    let stage = Stage::new(Kind::MariaDb, &tables);
    stage.compare("without the ability", &login, &s, &mut differences);
    login = login.with(Capabilities::MARIADB_STMT_BULK_OPERATIONS);
    stage.compare("bulk", &login, &s, &mut differences);
    differences.report();
}

/// With one server there is one who knows what the client was told, so MariaDB's caching of definitions passes through.
#[test]
fn column_definitions_are_cached_with_one_server() {
    let stage = Stage::with_config(Kind::MariaDb, TABLES, |_, config| {
        config.group("replicas = []")
    });
    let greeting = Wire::greet(stage.atlas.address()).expect("a greeting");
    assert!(
        greeting
            .offered
            .contains(Capabilities::MARIADB_CACHE_METADATA)
    );
    let mut login = Login::app().without(Capabilities::LONG_PASSWORD);
    login = login.with(Capabilities::MARIADB_CACHE_METADATA);
    for eof in [Capabilities::NONE, Capabilities::DEPRECATE_EOF] {
        let login = login.clone().without(eof);
        for mut script in [text_tour(), prepared_tour(Kind::MariaDb)] {
            script.anywhere();
            let direct = stage.run_direct(&login, &script);
            let through = stage.run_through(&login, &script, Delivery::Whole);
            let mut differences = Differences::default();
            stage.diff("one server", &script, &direct, &through, &mut differences);
            differences.report();
        }
    }
    // Where reads are split it does not.
    let split = Stage::new(Kind::MariaDb, &[]);
    let greeting = Wire::greet(split.atlas.address()).expect("a greeting");
    assert!(
        !greeting
            .offered
            .contains(Capabilities::MARIADB_CACHE_METADATA)
    );
}

/// A client kills by the ids that the greetings named, itself or another one.
#[test]
fn kills() {
    on_both(TABLES, |stage, differences| {
        for text in ["KILL {id}", "KILL QUERY {id}", "KILL CONNECTION {id}"] {
            let mut s = Script::of("SELECT 1");
            s.query(text).query("SELECT 2");
            stage.compare(text, &Login::app(), &s, differences);
        }
        let mut s = Script::of("SELECT 1");
        s.command(b"\x0c{id}").ping();
        stage.compare("COM_PROCESS_KILL", &Login::app(), &s, differences);

        for address in [stage.bed.address(Node::Primary), stage.atlas.address()] {
            let mut victim = Wire::connect(address, &Login::app());
            let mut killer = Wire::connect(address, &Login::app());
            assert_eq!(victim.query("SELECT 1").cell(), "1");
            let killed = killer.query(&format!("KILL {}", victim.id));
            assert_eq!(killed.last().part, Part::Ok);
            assert!(victim.try_query("SELECT 1").is_err(), "{address}");
        }
    });
}

/// COM_SHUTDOWN from an account that may not: refused by the server in its own words.
#[test]
fn commands_that_the_account_may_not_give() {
    on_both(TABLES, |stage, differences| {
        let mut plain = Wire::connect(stage.bed.address(Node::Primary), &Login::plain());
        let grants = format!("{:?}", plain.query("SHOW GRANTS").rows());
        assert!(
            !grants.contains("SHUTDOWN")
                && !grants.contains("ALL PRIV")
                && !grants.contains("SUPER")
        );
        let mut s = Script::new();
        s.command(&[0x08]).command(&[0x08, 0]).ping();
        s.lines(
            "SHUTDOWN
             KILL 1
             SET GLOBAL max_connections = 5
             SELECT * FROM mysql.user
             SELECT i FROM n3",
        );
        stage.compare("plain", &Login::plain(), &s, differences);
    });
}

/// By decision: replication does not go through a proxy, so these are refused as to an account without the right.
#[test]
fn replication_is_refused() {
    for kind in KINDS {
        let stage = Stage::new(kind, TABLES);
        let mut s = Script::new();
        for command in [0x12, 0x15, 0x1e] {
            s.command(&[command, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        }
        s.query("SELECT 1");
        let outcomes = stage.run_through(&Login::app(), &s, Delivery::Whole);
        let codes: Vec<u16> = outcomes
            .iter()
            .map(|outcome| match outcome {
                Outcome::Reply(reply) => reply.error_code(),
                Outcome::Ended => 0xffff,
            })
            .collect();
        assert_eq!(codes, [1227, 1227, 1227, 0], "{kind:?}");
    }
}

/// The greeting is the primary's, but for the connection's id, the nonce, and the abilities that Atlas leaves out.
#[test]
fn greetings() {
    for kind in KINDS {
        let stage = Stage::new(kind, &[]);
        let masked = |address| {
            let wire = Wire::greet(address).expect("a greeting");
            let mut greeting = wire.greeting.clone();
            let at = 1 + wire.version.len() + 1;
            let payload = &mut greeting.payload;
            // The id and the first part of the nonce; the low capabilities; the high ones; MariaDB's own; the rest of the nonce.
            for (from, len) in [(0, 12), (13, 2), (18, 2), (27, 4), (31, 12)] {
                payload[at + from..at + from + len].fill(0);
            }
            greeting
        };
        let direct = masked(stage.bed.address(Node::Primary));
        assert_eq!(masked(stage.atlas.address()), direct, "{kind:?}");
    }
}
