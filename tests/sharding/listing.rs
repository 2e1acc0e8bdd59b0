//! Lists of tables, and `information_schema`: sharded tables are there once, by their own names, as they would be on one server; and no
//! statement gives a table another name that the configuration has.

use atlas::wire::{Capabilities, ColumnDef};

use crate::Stage;
use crate::common::{Atlas, Bed, Login, Node, Param, Part, Reply, Schema, Wire, config_for};

/// The names of the columns.
fn titles(reply: &Reply) -> Vec<String> {
    let columns = reply.packets.iter().filter(|p| p.part == Part::Column);
    let parsed = columns.map(|p| ColumnDef::parse(&p.payload, reply.capabilities).unwrap());
    parsed
        .map(|column| String::from_utf8_lossy(column.name).into_owned())
        .collect()
}

/// Titles and rows, or the error.
fn told(reply: &Reply) -> String {
    match reply.error() {
        Some(error) => format!("{error:?}"),
        None => format!("{:?} {:?}", titles(reply), reply.rows()),
    }
}

/// Makes a key and a view on the side of the client and of the server that has all.
fn prepare(stage: &Stage<'_>) {
    let (schema, whole) = (&stage.schema, &stage.whole);
    let mut primary = stage.bed.root(Node::Primary);
    for table in ["log_0", "log_1"] {
        primary.ok(&format!("ALTER TABLE {schema}.{table} ADD KEY by_s (s)"));
    }
    primary.ok(&format!("ALTER TABLE {whole}.log ADD KEY by_s (s)"));
    for of in [schema, whole] {
        primary.ok(&format!(
            "CREATE VIEW {of}.seen AS SELECT id, name FROM {of}.zone"
        ));
        primary.ok(&format!("CREATE TABLE {of}.logs (a INT)"));
        primary.ok(&format!("CREATE TABLE {of}.LOGX (a INT)"));
    }
    stage.bed.wait_replicas();
}

const ASKED: [&str; 24] = [
    "SHOW TABLES",
    "SHOW FULL TABLES",
    "SHOW TABLES LIKE 'l%'",
    "SHOW TABLES LIKE 'LOG%'",
    "SHOW FULL TABLES LIKE 'log\\_%'",
    "SHOW TABLES FROM {s} LIKE 'log'",
    "SHOW TABLES WHERE Tables_in_{s} IN ('log', 'log_0', 'misc')",
    "SHOW FULL TABLES IN {s} WHERE Table_type = 'VIEW'",
    "/* which */ show tables like 'nothing'",
    "SHOW TABLES LIKE 'log' ; ",
    "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = '{s}' ORDER BY BINARY table_name",
    "SELECT Table_Name AS t FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE 'log%' ORDER BY 1",
    "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{s}' AND table_name IN ('log_0', 'log_1')",
    "SELECT t.ENGINE FROM information_schema.TABLES AS t WHERE t.TABLE_SCHEMA = '{s}' AND t.TABLE_NAME = 'log'",
    "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = '{s}' AND table_name = 'log' ORDER BY ordinal_position",
    "SELECT * FROM information_schema.columns WHERE table_schema = '{s}' AND table_name IN ('log', 'misc') ORDER BY table_name, ordinal_position",
    "SELECT index_name, column_name, table_name FROM information_schema.statistics WHERE table_schema = '{s}' AND table_name = 'log' ORDER BY 1, 2",
    "SELECT information_schema.key_column_usage.column_name FROM information_schema.key_column_usage WHERE table_schema = '{s}' AND table_name = 'log'",
    "SELECT * FROM information_schema.table_constraints WHERE table_schema = '{s}' AND table_name = 'log'",
    "SELECT constraint_name FROM information_schema.referential_constraints WHERE constraint_schema = '{s}'",
    "SELECT t.table_name, COUNT(*) FROM information_schema.tables t JOIN information_schema.columns c USING (table_schema, table_name) WHERE t.table_schema = '{s}' GROUP BY t.table_name ORDER BY BINARY t.table_name",
    "SELECT table_name FROM (SELECT * FROM information_schema.tables WHERE table_schema = DATABASE()) _sub WHERE _sub.table_type = 'BASE TABLE' AND table_name = 'log'",
    "SELECT nope FROM information_schema.tables",
    "SHOW FULL COLUMNS FROM log FROM {s}",
];

#[test]
fn b5_lists_have_each_table_once_by_the_name_that_clients_know() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        prepare(&stage);
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let (schema, whole) = (stage.schema.to_string(), stage.whole.to_string());
        let named = |told: String| told.replace(&whole, &schema);
        for sql in ASKED {
            let ours = told(&client.query(&sql.replace("{s}", &schema)));
            let theirs = named(told(&direct.query(&sql.replace("{s}", &whole))));
            assert_eq!(ours, theirs, "{:?}: {sql}", bed.kind);
        }
        // Times and numbers differ.
        for sql in [
            "SHOW TABLE STATUS LIKE 'log'",
            "SHOW TABLE STATUS FROM {s} WHERE Name IN ('log', 'log_1', 'seen')",
            "SELECT * FROM information_schema.tables WHERE table_schema = '{s}' AND table_name = 'log'",
            "SELECT * FROM information_schema.statistics WHERE table_schema = '{s}' AND table_name = 'log' ORDER BY index_name",
        ] {
            let reply = client.query(&sql.replace("{s}", &schema));
            let wanted = direct.query(&sql.replace("{s}", &whole));
            assert_eq!(titles(&reply), titles(&wanted), "{sql}");
            let some = |reply: &Reply| -> Vec<_> {
                let rows = reply.rows().into_iter();
                rows.map(|row| row[..4].to_vec()).collect()
            };
            assert_eq!(
                named(format!("{:?}", some(&reply))),
                named(format!("{:?}", some(&wanted))),
                "{sql}"
            );
        }
        // As many as there are, whatever the session's limit.
        client.ok("SET sql_select_limit = 1");
        assert!(client.query("SHOW TABLES").rows().len() > 5);
    }
}

#[test]
fn b5_prepared_questions_have_the_names_that_clients_know() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        prepare(&stage);
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let (schema, whole) = (stage.schema.to_string(), stage.whole.to_string());
        // As text, names in it of the same length as others.
        let seen = |reply: &Reply| match reply.error() {
            Some(error) => format!("{error:?}"),
            None => {
                let rows = reply.binary_rows().into_iter().map(|row| {
                    let values = row.into_iter().map(|value| {
                        let value = value.unwrap_or_default();
                        String::from_utf8_lossy(&value).into_owned()
                    });
                    values.collect::<Vec<_>>().join("|")
                });
                format!("{:?} {:?}", titles(reply), rows.collect::<Vec<_>>())
            }
        };
        assert_eq!(schema.len(), whole.len());
        let named = |told: String| told.replace(&whole, &schema);
        let more = [
            "SHOW CREATE TABLE log",
            "SHOW CREATE TABLE {s}.log",
            "SHOW COLUMNS FROM log",
            "SHOW FULL COLUMNS FROM {s}.log",
            "DESCRIBE log",
            "DESC log s",
        ];
        for sql in ASKED
            .iter()
            .chain(&more)
            .filter(|sql| !sql.contains("nope"))
        {
            let ours = client.prepare(&sql.replace("{s}", &schema));
            let theirs = direct.prepare(&sql.replace("{s}", &whole));
            for _ in 0..2 {
                let (reply, wanted) = (client.execute(&ours, &[]), direct.execute(&theirs, &[]));
                assert_eq!(seen(&reply), named(seen(&wanted)), "{:?}: {sql}", bed.kind);
            }
        }
        for sql in [
            "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
            "SELECT column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position",
        ] {
            let (ours, theirs) = (client.prepare(sql), direct.prepare(sql));
            for table in ["log", "log_0", "misc"] {
                let of = |schema: &str| [Param::Text(schema.into()), Param::Text(table.into())];
                let reply = client.execute(&ours, &of(&schema));
                let wanted = direct.execute(&theirs, &of(&whole));
                assert_eq!(seen(&reply), named(seen(&wanted)), "{sql}: {table}");
            }
        }
        // The numbers of an index are estimates.
        let index = client.prepare("SHOW INDEX FROM log");
        let rows = client.execute(&index, &[]).assert_ok().binary_rows();
        assert_eq!(rows.len(), 2);
        for row in rows {
            assert_eq!(row[0].as_deref(), Some(&b"\x03log"[..]));
        }
    }
}

/// Among other statements, in one text.
#[test]
fn b5_lists_in_texts_of_several_statements() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        prepare(&stage);
        let (schema, whole) = (stage.schema.to_string(), stage.whole.to_string());
        let several = |node: std::net::SocketAddr, schema: &Schema| {
            let login = Login::plain().schema(schema);
            Wire::connect(node, &login.with(Capabilities::MULTI_STATEMENTS))
        };
        let mut client = several(stage.atlas.address(), &stage.schema);
        let mut direct = several(bed.address(Node::Primary), &stage.whole);
        let told = |reply: &Reply| {
            let payloads = reply.packets.iter().filter(|p| p.part == Part::Row);
            let rows: Vec<_> = payloads
                .map(|p| String::from_utf8_lossy(&p.payload).into_owned())
                .collect();
            format!("{:?} {:?} {rows:?}", reply.error(), titles(reply))
        };
        for sql in [
            "SHOW TABLES; SELECT 1",
            "SELECT 1; SHOW TABLES",
            "SET @a = 1; SHOW TABLES LIKE 'log%'; SELECT @a",
            "SHOW TABLES LIKE 'log%';; ",
            "SHOW FULL TABLES LIKE 'log%'; SHOW TABLES WHERE Tables_in_{s} = 'log'; SHOW TABLES FROM {s} LIKE 'log_0'",
            "SET @a = 1; SELECT table_name FROM information_schema.tables WHERE table_schema = '{s}' ORDER BY BINARY table_name",
            "UPDATE misc SET k = 1 WHERE uid = 9; SELECT column_name FROM information_schema.columns WHERE table_schema = '{s}' AND table_name = 'log' ORDER BY 1; SHOW TABLES LIKE 'log'",
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{s}'; SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = '{s}' AND table_name = 'log'",
            "USE {s}; SHOW TABLES FROM {s} LIKE 'l%'",
            "SHOW TABLES LIKE 'log'; SELECT nope; SHOW TABLES",
        ] {
            let ours = told(&client.query(&sql.replace("{s}", &schema)));
            let theirs = told(&direct.query(&sql.replace("{s}", &whole)));
            assert_eq!(
                ours,
                theirs.replace(&whole, &schema),
                "{:?}: {sql}",
                bed.kind
            );
        }
        for sql in [
            "SHOW TABLES; SELECT * FROM ord WHERE uid = 2",
            "INSERT INTO log VALUES (1, 'a'); SHOW TABLES",
            "USE {s}; SHOW TABLES",
        ] {
            let reply = client.query(&sql.replace("{s}", &schema));
            assert_eq!(reply.error_code(), 1105, "{sql}");
        }
        // The numbers of each are its own.
        let rows = client.query("SHOW TABLE STATUS LIKE 'log'; SHOW TABLES LIKE 'log'");
        let rows = rows.assert_ok().results();
        assert_eq!(rows.len(), 2);
        // What is stored is left as it is.
        client.ok("CREATE PROCEDURE lists() BEGIN SELECT 1; SHOW TABLES LIKE 'log\\_0'; END");
        let reply = client.query("SHOW CREATE PROCEDURE lists");
        assert!(
            reply.rows()[0][2]
                .as_deref()
                .unwrap()
                .contains("SHOW TABLES LIKE 'log")
        );
    }
}

/// A sharded table of which the account's own group has no part is in its lists all the same.
#[test]
fn b5_tables_of_other_groups_are_listed() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let schema = &stage.schema;
        let config = config_for(&bed).all_users("group = \"main\"").append(&format!(
            "[[groups]]\nname = \"s1\"\nprimary = \"{}\"\nschemas = {{ {schema} = \"{schema}_b\" }}\n[[tables]]\nname = \"{schema}.faraway\"\nkey = \"uid\"\nranges = [{{ groups = [\"s1\"] }}]\n",
            bed.address(Node::Second)
        ));
        let atlas = Atlas::start(config);
        let mut client = Wire::connect(atlas.address(), &Login::plain().schema(schema));
        for sql in [
            "SHOW TABLES LIKE 'far%'".to_owned(),
            format!("SHOW FULL TABLES WHERE Tables_in_{schema} = 'faraway'"),
            "SHOW TABLE STATUS LIKE 'faraway'".to_owned(),
            format!(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}' AND table_name = 'faraway'"
            ),
        ] {
            let rows = client.query(&sql).assert_ok().rows();
            assert_eq!(rows.len(), 1, "{:?}: {sql}", bed.kind);
            assert_eq!(rows[0][0].as_deref(), Some("faraway"), "{sql}");
        }
    }
}

/// What no statement may do, each a server refuses to nobody.
#[test]
fn no_statement_changes_a_name_that_the_configuration_has() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (schema, mut client) = (stage.schema.to_string(), stage.client());
        let before = client.query("SHOW TABLES").rows();
        for sql in [
            "RENAME TABLE ord TO o",
            "RENAME TABLE {s}.ord TO {s}.o",
            "RENAME TABLE misc TO m, ord TO misc",
            "RENAME TABLE ord TO x, item TO ord, x TO item",
            "RENAME TABLE misc TO m, zone TO z",
            "RENAME TABLE misc TO ord",
            "RENAME TABLE misc TO log_0",
            "RENAME TABLE misc TO `log_3`",
            "RENAME TABLE misc TO zone",
            "ALTER TABLE ord RENAME o",
            "ALTER TABLE ord RENAME TO o",
            "ALTER TABLE ord RENAME AS o",
            "ALTER TABLE ord ADD extra INT, RENAME o",
            "ALTER TABLE zone RENAME TO z",
            "ALTER TABLE misc RENAME ord",
            "ALTER TABLE misc RENAME TO log",
            "ALTER TABLE misc RENAME AS {s}.log_1",
        ] {
            let sql = sql.replace("{s}", &schema);
            let error = client.query(&sql).error().expect(&sql);
            assert!(
                error.0 == 1105 && error.2.contains("RENAME"),
                "{sql}: {error:?}"
            );
            assert!(
                error.2.contains("by their names there") || error.2.contains("another name"),
                "{sql}: {error:?}"
            );
            let prepared = client.try_prepare(&sql).unwrap_err();
            assert_eq!(prepared.error_code(), 1105, "{sql}");
        }
        assert_eq!(client.query("SHOW TABLES").rows(), before);
        client.ok("RENAME TABLE misc TO other");
        client.ok("ALTER TABLE other RENAME misc");
    }
}
