//! Definitions of sharded tables: made on every physical table, with a word on each where one fails.

use crate::Stage;
use crate::common::{Bed, Node, Wire, unique_name};
use crate::stage::seen;

/// How many physical tables of `log` there are with a column of this name.
fn with_column(stage: &Stage<'_>, servers: &mut [Wire; 2], column: &str) -> String {
    let schema = &stage.schema;
    let mut count = |server: usize, schema: String| -> u32 {
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME LIKE 'log%' AND COLUMN_NAME = '{column}'"
        );
        servers[server].query(&sql).cell().parse().unwrap()
    };
    format!(
        "{}+{}",
        count(0, schema.to_string()),
        count(1, format!("{schema}_b"))
    )
}

#[test]
fn definitions_are_made_on_every_table() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut servers = [bed.root(Node::Primary), bed.root(Node::Second)];
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let (schema, whole) = (stage.schema.to_string(), stage.whole.to_string());
        for sql in [
            "ALTER TABLE log ADD COLUMN x INT DEFAULT 3, ADD KEY by_x (x)",
            "SHOW COLUMNS FROM log",
            "CREATE INDEX by_s ON {s}.log (s)",
            "SHOW CREATE TABLE log",
            "DROP INDEX by_s ON log",
            "INSERT INTO log (id) VALUES (4), (5)",
            "INSERT INTO log (id) VALUES (2)",
            "SELECT * FROM log WHERE id IN (5, 5)",
            "TRUNCATE TABLE {s}.log",
            "SELECT * FROM log WHERE id = 2",
            "BEGIN",
            "INSERT INTO log (id) VALUES (6)",
            "ALTER TABLE log ALTER COLUMN x SET DEFAULT 4",
            "ROLLBACK",
            "SELECT * FROM log WHERE id = 6",
            "TRUNCATE log",
            "DROP TABLE log",
            "DROP TABLE IF EXISTS log",
            "SELECT * FROM log WHERE id = 6",
            "CREATE TABLE log (id BIGINT PRIMARY KEY, s VARCHAR(40), CHECK (id < 1000))",
            "CREATE TABLE IF NOT EXISTS log (id BIGINT PRIMARY KEY)",
            "INSERT INTO log VALUES (7, 'seven')",
            "SELECT * FROM log WHERE id = 7",
            "SHOW CREATE TABLE log",
        ] {
            let wanted = direct.query(&sql.replace("{s}", &whole));
            let reply = client.query(&sql.replace("{s}", &schema));
            let wanted = seen(&wanted).replace(&whole, &schema);
            assert_eq!(seen(&reply), wanted, "{:?}: {sql}: {reply:?}", bed.kind);
        }
        assert_eq!(with_column(&stage, &mut servers, "s"), "2+2");
        for (sql, why) in [
            ("ALTER TABLE log RENAME TO logs", "RENAME"),
            ("RENAME TABLE log TO logs", "RENAME of a sharded"),
            ("ALTER TABLE log DROP COLUMN id", "changes the shard key"),
            ("ALTER TABLE log MODIFY id INT", "changes the shard key"),
            ("CREATE TABLE log LIKE misc", "LIKE"),
            ("DROP TABLE log, misc", "one by one"),
            (
                "ALTER TABLE misc ADD FOREIGN KEY (k) REFERENCES log (id)",
                "this kind of statement",
            ),
        ] {
            let (code, _, text) = client.query(sql).error().unwrap();
            assert!(code == 1105 && text.contains(why), "{sql}: {text}");
        }
    }
}

#[test]
fn where_one_table_fails_the_client_is_told_of_each() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut servers = [bed.root(Node::Primary), bed.root(Node::Second)];
        let mut client = stage.client();
        servers[1].ok(&format!("ALTER TABLE {}_b.log_2 ADD y INT", stage.schema));
        let (code, _, text) = client.query("ALTER TABLE log ADD y INT").error().unwrap();
        assert_eq!(code, 1060, "{text}");
        assert!(text.contains("failed on s1 log_2"), "{text}");
        assert!(text.contains("done on main log_0, main log_1"), "{text}");
        assert!(text.contains("not tried on s1 log_3"), "{text}");
        let told = client.query("SHOW WARNINGS").rows();
        let told: Vec<_> = told.iter().map(|row| row[2].clone().unwrap()).collect();
        assert_eq!(
            told[1..],
            [
                "main log_0: done",
                "main log_1: done",
                "s1 log_2: failed",
                "s1 log_3: not tried"
            ]
        );
        assert_eq!(with_column(&stage, &mut servers, "y"), "2+1");
        // A replica may not have what is done.
        let (marks, tag) = (bed.marks(), unique_name("after"));
        client.ok(&format!("SELECT y FROM log WHERE id = 4 /* {tag} */"));
        assert_eq!(marks.nodes(&tag), [Node::Primary]);
    }
}
