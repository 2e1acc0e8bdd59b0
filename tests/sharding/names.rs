//! Names in answers: a client sees those that it knows, as one server with unsplit tables would have them.

use atlas::wire::ColumnDef;

use crate::Stage;
use crate::common::{Bed, Node, Packet, Param, Part, Reply};

/// All that a reply says of names: definitions, errors, and rows of texts.
fn told(reply: &Reply, rows: bool) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let definition = |packet: &&Packet| matches!(packet.part, Part::Column | Part::Param);
    let mut told: Vec<String> = reply
        .packets
        .iter()
        .filter(definition)
        .filter_map(|packet| ColumnDef::parse(&packet.payload, reply.capabilities).ok())
        .map(|column| {
            let names = [
                column.schema,
                column.table,
                column.org_table,
                column.name,
                column.org_name,
            ];
            names.map(text).join(".")
        })
        .collect();
    match reply.error() {
        Some((code, state, message)) => told.push(format!("{code} {state} {message}")),
        None if rows => {
            let mut rows = reply.rows();
            rows.sort();
            told.push(format!("{rows:?}"));
        }
        None => {}
    }
    told
}

#[test]
fn physical_names_do_not_leak() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut servers = [bed.root(Node::Primary), bed.root(Node::Second)];
        let (schema, whole) = (stage.schema.to_string(), stage.whole.to_string());
        // A constraint that is named by the server, and rows to collide with.
        for (server, tables) in [
            (
                0,
                vec![
                    format!("{whole}.log"),
                    format!("{schema}.log_0"),
                    format!("{schema}.log_1"),
                ],
            ),
            (
                1,
                vec![format!("{schema}_b.log_2"), format!("{schema}_b.log_3")],
            ),
        ] {
            for table in tables {
                servers[server].ok(&format!(
                    "ALTER TABLE {table} ADD CHECK (id < 900), ADD KEY by_s (s)"
                ));
            }
        }
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for wire in [&mut client, &mut direct] {
            wire.ok("INSERT INTO log (id, s) VALUES (2, 'log_2')");
        }
        let named = |told: Vec<String>| -> Vec<String> {
            told.iter()
                .map(|line| line.replace(&whole, &schema))
                .collect()
        };
        for sql in [
            "SELECT * FROM log WHERE id = 2",
            "SELECT l.s, {s}.l.id FROM {s}.log l WHERE l.id = 2",
            "SELECT * FROM log JOIN zone WHERE log.id = 2",
            "SELECT * FROM ord WHERE uid = 3",
            "SELECT * FROM ord WHERE uid > 2 AND uid < 6",
            "SELECT id, s FROM log WHERE id IN (2, 1)",
            "SELECT nope FROM log WHERE id = 2",
            "SHOW WARNINGS",
            "SELECT nope FROM log WHERE id > 0",
            "SELECT log.nope FROM log WHERE id = 2",
            "DELETE FROM log WHERE log.nope = 1 AND id = 2",
            "INSERT INTO log (id, s) VALUES (2, 'log_2')",
            "SHOW WARNINGS",
            "INSERT INTO log (id, nope) VALUES (2, 'log_2')",
            "INSERT INTO log (id, s) VALUES (906, 'log_2')",
            "INSERT IGNORE INTO log (id, s) VALUES (2, 'log_2')",
            "SHOW WARNINGS",
            "SHOW CREATE TABLE log",
            "SHOW CREATE TABLE {s}.log",
            "SHOW COLUMNS FROM log",
            "DESCRIBE log",
            "EXPLAIN DELETE FROM log WHERE id = 2",
            "SELECT s FROM misc",
            "SHOW WARNINGS",
        ] {
            let wanted = direct.query(&sql.replace("{s}", &whole));
            let reply = client.query(&sql.replace("{s}", &schema));
            let rows = !sql.starts_with("EXPLAIN");
            assert_eq!(
                named(told(&reply, rows)),
                named(told(&wanted, rows)),
                "{:?}: {sql}",
                bed.kind
            );
            let all = format!("{:?}", told(&reply, true));
            assert!(!all.contains(&format!("{schema}_b")), "{sql}: {all}");
        }
        // The first columns only: the others are estimates.
        let index = |reply: &Reply| -> Vec<_> {
            reply
                .rows()
                .into_iter()
                .map(|row| row[..5].to_vec())
                .collect()
        };
        let sql = "SHOW INDEX FROM log";
        assert_eq!(index(&client.query(sql)), index(&direct.query(sql)));
        for (sql, param) in [
            ("SELECT * FROM log WHERE id = ?", Param::Int(2)),
            (
                "SELECT l.* FROM log l JOIN zone z ON z.id = l.id WHERE l.id = ?",
                Param::Int(2),
            ),
            ("INSERT INTO log (id, s) VALUES (?, 'x')", Param::Int(2)),
            ("INSERT INTO log (id, s) VALUES (?, 'x')", Param::Int(907)),
        ] {
            let (here, there) = (client.prepare(sql), direct.prepare(sql));
            assert_eq!(
                named(told(&here.reply, false)),
                named(told(&there.reply, false)),
                "{sql}"
            );
            let params = std::slice::from_ref(&param);
            let (reply, wanted) = (
                client.execute(&here, params),
                direct.execute(&there, params),
            );
            assert_eq!(
                named(told(&reply, false)),
                named(told(&wanted, false)),
                "{sql}"
            );
        }
        // A table that is missing on one shard.
        servers[0].ok(&format!("DROP TABLE {whole}.log"));
        servers[1].ok(&format!("DROP TABLE {schema}_b.log_2"));
        for sql in [
            "SELECT * FROM log WHERE id = 2",
            "UPDATE log SET s = '' WHERE id = 2",
        ] {
            let (reply, wanted) = (client.query(sql), direct.query(sql));
            assert_eq!(reply.error_code(), 1146);
            assert_eq!(
                named(told(&reply, true)),
                named(told(&wanted, true)),
                "{sql}"
            );
        }
        // It was prepared by a shard that has the table.
        let statement = client.prepare("SELECT * FROM log WHERE id = ?");
        let reply = client.execute(&statement, &[Param::Int(2)]);
        assert_eq!(
            reply.error().map(|error| error.2),
            Some(format!("Table '{schema}.log' doesn't exist"))
        );
    }
}

/// A global table is described like any other, and DATABASE() is never the physical name.
#[test]
fn what_is_asked_of_schemas_and_global_tables() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let schema = stage.schema.to_string();
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let named = |told: Vec<String>| -> Vec<String> {
            told.iter()
                .map(|line| line.replace(&stage.whole.to_string(), &schema))
                .collect()
        };
        for sql in [
            "DESCRIBE zone",
            "DESC zone name",
            "EXPLAIN zone",
            "SHOW COLUMNS FROM zone",
            "SHOW FULL COLUMNS FROM zone",
            "SHOW CREATE TABLE zone",
            "SHOW INDEX FROM zone",
        ] {
            let (reply, wanted) = (client.query(sql), direct.query(sql));
            reply.assert_ok();
            assert_eq!(
                named(told(&reply, true)),
                named(told(&wanted, true)),
                "{:?}: {sql}",
                bed.kind
            );
        }
        // A row in the group whose schema has another name brings the session there; it is back where the name is the client's.
        for ask in ["SELECT DATABASE()", "SELECT schema ( )"] {
            client.ok("SELECT * FROM ord WHERE uid = 1");
            let reply = client.query(ask);
            if reply.error().is_none() {
                assert_eq!(reply.cell(), schema, "{ask}");
            }
            let statement = client.prepare("SELECT DATABASE() AS a");
            client.ok("SELECT * FROM ord WHERE uid = 1");
            let rows = client.execute(&statement, &[]).assert_ok().binary_rows();
            let value = rows[0][0].clone().unwrap();
            assert_eq!(&value[1..], schema.as_bytes());
        }
        let with = "SELECT DATABASE(), uid FROM ord WHERE uid = ";
        assert_eq!(
            client.query(&format!("{with}2")).rows()[0][0].as_deref(),
            Some(&*schema)
        );
        for sql in [
            format!("{with}1"),
            format!("{with}2 OR uid = 3"),
            "UPDATE ord SET code = SCHEMA() WHERE uid = 1".to_owned(),
        ] {
            let error = client.query(&sql).error().expect(&sql);
            assert!(
                error.0 == 1105 && error.2.contains("DATABASE() or SCHEMA()"),
                "{error:?}"
            );
        }
        client.ok("BEGIN");
        client.ok("UPDATE ord SET amt = 3 WHERE uid = 1");
        assert_eq!(client.query("SELECT DATABASE()").error_code(), 1179);
        client.ok("SELECT * FROM ord WHERE uid = 1");
        client.ok("ROLLBACK");
        // RENAME would have the configuration name nothing.
        for sql in [
            "RENAME TABLE ord TO o",
            "RENAME TABLE misc TO m, zone TO z",
            "ALTER TABLE ord RENAME o",
        ] {
            let error = client.query(sql).error().expect(sql);
            assert!(
                error.0 == 1105 && error.2.contains("by their names there"),
                "{sql}: {error:?}"
            );
        }
    }
}
