//! A list of statements that parsers stumble over, with its tables sharded: each is answered as one server answers it, or refused.

use super::{Field, Table, refusal};
use crate::common::{Bed, Node};

const KEYED: &str = "ranges = [{ groups = [\"main\", \"s1\"], tables = 2 }]";
const COLUMNS: &str = "id BIGINT PRIMARY KEY, a INT, b INT, c VARCHAR(20), d INT, x INT";

const TABLES: [Table; 4] = [table("t"), table("u"), table("t1"), table("t2")];

const fn table(name: &'static str) -> Table {
    Table {
        name,
        columns: COLUMNS,
        placed: KEYED,
        parts: super::HASHED,
        key: "id",
    }
}

/// What changes servers and schemas, and what is only about sessions, is other tests'.
const LEFT_OUT: [&str; 30] = [
    "set",
    "begin",
    "start",
    "commit",
    "rollback",
    "savepoint",
    "release",
    "xa",
    "lock",
    "unlock",
    "call",
    "do",
    "handler",
    "use",
    "show",
    "kill",
    "flush",
    "prepare",
    "execute",
    "deallocate",
    "load",
    "truncate",
    "create",
    "alter",
    "drop",
    "rename",
    "grant",
    "get",
    "explain",
    "optimize",
];

/// Answers that are others each time, or tell of one physical table.
const OWN: [&str; 6] = [
    "NOW()",
    "TIMESTAMP",
    "CURDATE",
    "CURRENT",
    "ROW_COUNT",
    "INTO OUTFILE",
];

fn try_all(bed: &Bed) {
    let field = Field::of(bed, &TABLES);
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/cases/mysql-statements.sql"
    );
    let list = std::fs::read_to_string(path).unwrap();
    let (mut answered, mut refused, mut different) = (0, 0, Vec::new());
    let rows = [
        (1, 1, 2, "'x'"),
        (2, 2, 2, "NULL"),
        (3, 3, 4, "'y'"),
        (4, 1, 5, "'xy'"),
        (7, 4, 3, "'z'"),
    ];
    for sql in list
        .split("\n;;\n")
        .map(str::trim)
        .filter(|sql| !sql.is_empty())
    {
        let first = sql
            .trim_start_matches('(')
            .split_whitespace()
            .next()
            .unwrap()
            .to_lowercase();
        if LEFT_OUT.contains(&first.as_str()) || sql.contains('?') {
            continue;
        }
        for form in [sql.to_owned(), format!("{sql} -- t\n")] {
            let (mut client, mut direct) = (field.client(), field.direct(bed));
            let mut roots = [bed.root(Node::Primary), bed.root(Node::Second)];
            for table in &TABLES {
                roots[0].ok(&format!("DELETE FROM {}.{}", field.whole, table.name));
                for (at, schema) in [
                    (0, field.schema.to_string()),
                    (1, format!("{}_b", field.schema)),
                ] {
                    for part in table.parts[at] {
                        roots[at].ok(&format!("DELETE FROM {schema}.{}{part}", table.name));
                    }
                }
                for (id, a, b, c) in rows {
                    let sql = format!(
                        "INSERT INTO {} (id, a, b, c) VALUES ({id}, {a}, {b}, {c})",
                        table.name
                    );
                    client.ok(&sql);
                    direct.ok(&sql);
                }
            }
            let ours = client.query(&form);
            if let Some(why) = refusal(&ours) {
                refused += 1;
                println!("{:?} refused: {form}: {why}", bed.kind);
                continue;
            }
            answered += 1;
            let theirs = direct.query(&form);
            let told = |reply: &crate::common::Reply| field.told(reply, false);
            let code = |reply: &crate::common::Reply| reply.error().map(|error| error.0);
            let is_same = if OWN.iter().any(|word| form.contains(word)) || code(&ours) == Some(1064)
            {
                code(&ours) == code(&theirs)
            } else {
                told(&ours) == told(&theirs)
            };
            if !is_same {
                different.push(format!(
                    "{form}\n  ours {}\n  theirs {}",
                    told(&ours),
                    told(&theirs)
                ));
            }
            let (mut client, mut direct) = (field.client(), field.direct(bed));
            for table in &TABLES {
                let sql = format!("SELECT * FROM {}", table.name);
                let (ours, theirs) = (client.query(&sql), direct.query(&sql));
                if told(&ours) != told(&theirs) {
                    different.push(format!(
                        "{form}: {}\n  ours {}\n  theirs {}",
                        table.name,
                        told(&ours),
                        told(&theirs)
                    ));
                }
            }
        }
    }
    println!(
        "{:?}: {answered} answered, {refused} refused, {} different",
        bed.kind,
        different.len()
    );
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(answered > 60, "only {answered} were answered");
}

#[test]
fn a_list_of_statements_on_mariadb() {
    try_all(&Bed::mariadb());
}

#[test]
fn a_list_of_statements_on_mysql() {
    try_all(&Bed::mysql());
}
