//! What servers quote of a statement in their messages is the client's text, wherever it ran.

use crate::Stage;
use crate::common::{Bed, Param, Reply, Wire};

/// The whole message, and what SHOW WARNINGS has of it, with the schema's name in place of that of the other.
fn told(wire: &mut Wire, reply: &Reply, (there, here): (&str, &str)) -> String {
    let error = reply.error();
    let warnings = wire.query("SHOW WARNINGS").rows();
    format!("{error:?} {warnings:?}").replace(there, here)
}

/// Statements that only a server finds to be wrong, by the shards that they are for.
fn statements(db: &str) -> Vec<String> {
    let long = "x".repeat(100);
    let rows = |wrong: &str| {
        format!(
            "INSERT INTO log (id, s) VALUES\n(1, 'a\nb'),\n(2, 'c'), /* \n */ (5, '\n\n'),\n(4, {wrong}), (8, 'd'), (9, {wrong})"
        )
    };
    let mut all: Vec<String> = [
        "SELECT * FROM ord WHERE uid = 1 AND uid ILIKE 9",
        "SELECT * FROM ord WHERE uid = 2 AND uid ILIKE 9 ; ",
        "SELECT * FROM log WHERE id = 3 AND id ILIKE 9",
        "SELECT * FROM log WHERE id = 0 AND id ILIKE 9 UNION SELECT * FROM {db}.log WHERE id = 0 AND s = 'and a long text that is cut off somewhere'",
        "SELECT * FROM log WHERE id = 3 AND id ILIKE 9 UNION SELECT id, log.s FROM log WHERE log.id = 3 UNION SELECT * FROM `log` WHERE id = 3 ORDER BY id",
        "SELECT 'log_3', id ILIKE 9 FROM {db} . `log` AS l JOIN LOG ON log.id = l.id WHERE l.id = 3 AND log.id = 3",
        "SELECT 'log_3', `id` ILIKE 9 /* `log` */ FROM log, `log` AS l WHERE l.id = 3 AND log.id = 3 -- log_3",
        "SELECT id ILIKE 9\n,\n2 FROM\nlog\nWHERE\nid = 3",
        "SELECT 1\n, 2 FROM\nlog\nWHERE\nid = 3\nAND id ILIKE 9",
        "SELECT * FROM log WHERE id = 3 AND s ILIKE 'äöü €' + 1",
        "SELECT s ILIKE 'äöü €' + 'ß' FROM log WHERE id = 3",
        "SELECT s ILIKE 'äöü € \u{1f600}' + '\u{1f600}' FROM {db}.log, {db}.ord WHERE id = 3 AND uid = 3 AND uid = 11",
        "UPDATE log SET s = id ILIKE 9 WHERE log.id = 3",
        "UPDATE log SET s = id ILIKE 9 WHERE log.id IN (2, 3)",
        "UPDATE log SET s = id ILIKE 9 WHERE id IN (4, 1)",
        "DELETE FROM log WHERE id = 3 AND log.id ILIKE 9",
        "DELETE FROM {db}.log WHERE id IN (0, 1, 4) AND {db}.log.id ILIKE 9",
        "INSERT INTO log (id, s) VALUES (7, 8 ILIKE 9)",
        "REPLACE INTO {db}.log SET id = 7, s = 8 ILIKE 9",
        "SELECT * FROM log WHERE id ILIKE 9",
        "SELECT id ILIKE 9, log.s FROM {db}.log",
        "SELECT id ILIKE 9, log.s FROM {db}.log LIMIT 3",
        "INSERT INTO log SELECT 7, uid ILIKE 9 FROM ord WHERE uid = 7",
    ]
    .iter()
    .map(|sql| sql.replace("{db}", db))
    .collect();
    for length in [30, 44, 45, 46, 47, 60] {
        // The name stands at every place of the end of what is quoted.
        all.push(format!(
            "SELECT id ILIKE 9, '{}' FROM log WHERE id = 3 AND s = '{long}'",
            &long[..length]
        ));
    }
    all.push(rows("8 ILIKE 9"));
    all.push(rows("9 ILIKE 9 + '\n'"));
    all
}

#[test]
fn errors_quote_the_clients_text() {
    for bed in Bed::both() {
        for sharing in ["transaction", "session"] {
            let stage = Stage::new(&bed, sharing);
            let (mut client, mut direct) = (stage.client(), stage.direct());
            let names = (stage.whole.name(), stage.schema.name());
            let theirs = statements(names.0);
            let (mut tried, mut wrong) = (0, Vec::new());
            for transaction in [false, true] {
                for (ours, theirs) in statements(names.1).iter().zip(&theirs) {
                    for wire in [&mut client, &mut direct] {
                        wire.ok(if transaction { "BEGIN" } else { "COMMIT" });
                    }
                    let reply = client.query(ours);
                    if reply
                        .error()
                        .is_some_and(|(code, ..)| matches!(code, 1105 | 1179))
                    {
                        client.ok("ROLLBACK");
                        continue;
                    }
                    let here = told(&mut client, &reply, names);
                    let reply = direct.query(theirs);
                    let there = told(&mut direct, &reply, names);
                    assert!(there.contains("1064"), "{theirs}: {there}");
                    tried += 1;
                    if here != there {
                        wrong.push(format!("{ours}\n  {here}\n  {there}"));
                    }
                }
            }
            for (ours, theirs) in statements(names.1).iter().zip(&theirs) {
                let error = match client.try_prepare(ours) {
                    Ok(statement) => {
                        panic!("{ours}: {:?}", client.execute(&statement, &[]).error())
                    }
                    Err(reply) if reply.error().is_some_and(|(code, ..)| code == 1105) => continue,
                    Err(reply) => *reply,
                };
                let here = told(&mut client, &error, names);
                let error = *direct.try_prepare(theirs).expect_err("it is wrong");
                let there = told(&mut direct, &error, names);
                tried += 1;
                if here != there {
                    wrong.push(format!("prepared: {ours}\n  {here}\n  {there}"));
                }
            }
            println!("{:?} {sharing}: {tried} tried", bed.kind);
            assert!(tried > 70, "{tried}");
            assert!(
                wrong.is_empty(),
                "{} of {tried}:\n{}",
                wrong.len(),
                wrong.join("\n")
            );
        }
    }
}

/// What MySQL's EXPLAIN prints of a statement in its old format. MariaDB's does for EXPLAIN EXTENDED only, which is refused.
#[test]
fn explained_queries_have_the_names_that_clients_gave() {
    let bed = Bed::mysql();
    let stage = Stage::new(&bed, "transaction");
    let (mut client, mut direct) = (stage.client(), stage.direct());
    let names = (stage.whole.name(), stage.schema.name());
    for wire in [&mut client, &mut direct] {
        wire.ok("SET explain_format = 'TRADITIONAL'");
    }
    for sql in [
        "SELECT s FROM log WHERE id > 2 AND id = 3",
        "SELECT log.s, '`log` `log`' FROM {s}.log WHERE log.id = 3 AND s <> 'log_3'",
        "SELECT l.s FROM log AS l LEFT JOIN log ON log.id = l.id WHERE l.id = 3",
        "SELECT log.s FROM log AS log JOIN zone ON zone.id > log.id WHERE log.id = 3",
    ] {
        let of = |schema: &str| format!("EXPLAIN {}", sql.replace("{s}", schema));
        client.ok(&of(names.1));
        let here = client.query("SHOW WARNINGS").rows();
        direct.ok(&of(names.0));
        let there = format!("{:?}", direct.query("SHOW WARNINGS").rows());
        assert!(there.contains("1003"), "{there}");
        let there = there.replace(names.0, names.1);
        assert_eq!(format!("{here:?}"), there, "{sql}");
    }
}

/// The same of writes to several groups, and of a table whose ids Atlas writes into the text.
#[test]
fn errors_of_writes_to_several_groups_quote_the_clients_text() {
    for bed in Bed::both() {
        let stage = Stage::xa(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let names = (stage.whole.name(), stage.schema.name());
        for sql in [
            "UPDATE log SET s = log.id ILIKE 9",
            "INSERT INTO log (id, s) VALUES (1, 'a'),\n(2, 'b'),\n(3, 3 ILIKE 9)",
            "DELETE FROM log WHERE id ILIKE 9",
            "UPDATE zone SET name = id ILIKE 9 WHERE zone.id = 1",
        ] {
            let reply = client.query(sql);
            let here = told(&mut client, &reply, names);
            let reply = direct.query(sql);
            assert_eq!(
                here,
                told(&mut direct, &reply, names),
                "{:?} {sql}",
                bed.kind
            );
        }
        // It is usable, and nothing was left of it.
        let statement = client.prepare("SELECT COUNT(*) FROM log WHERE id = ?");
        let rows = client.execute(&statement, &[Param::Int(3)]).binary_rows();
        assert_eq!(rows, [[Some(0_u64.to_le_bytes().to_vec())]]);
    }
}
