//! Statements in every form that servers read, of the list `forms.sql`. A line there begins with what is to become of it:
//!
//! | sign | meaning |
//! | --- | --- |
//! | `=` | answered as one server does: rows in any order, or numbers, or the whole of an error |
//! | `!` | refused |
//! | `?` | answered alike, or refused |
//! | `+` | said by each session from there on, in place of the one before |
//! | `#` | a comment |
//!
//! After each that may change rows all tables are compared, and rows that are new are looked for by their keys.

use super::{Field, TABLES, refusal};
use crate::common::{Bed, Kind, Wire};

/// All tables on both sides.
fn tables(field: &Field, client: &mut Wire, direct: &mut Wire) -> Vec<String> {
    let mut different = Vec::new();
    let names = TABLES.iter().map(|table| table.name).chain(["p", "g"]);
    for name in names {
        let sql = format!("SELECT * FROM {name}");
        let (ours, theirs) = (
            field.told(&client.query(&sql), false),
            field.told(&direct.query(&sql), false),
        );
        if ours != theirs {
            different.push(format!("{name}\n  ours {ours}\n  theirs {theirs}"));
        }
    }
    different
}

fn is_change(sql: &str) -> bool {
    let words = ["insert", "replace", "update", "delete"];
    let sql = sql.to_ascii_lowercase();
    words.iter().any(|word| sql.contains(word))
}

fn try_all(bed: &Bed) {
    let field = Field::new(bed);
    let mut settings: Vec<&str> = Vec::new();
    // What a statement sets or holds is nobody else's.
    let fresh = |settings: &[&str]| {
        let (mut client, mut direct) = (field.client(), field.direct(bed));
        for sql in settings {
            client.query(sql);
            direct.query(sql);
        }
        (client, direct)
    };
    let list = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/sharding/alike/forms.sql"
    ))
    .unwrap();
    let (mut wrong, mut counts, mut before) = (Vec::new(), [0; 2], Vec::new());
    for (number, line) in list.lines().enumerate() {
        // A line for one product only.
        let line = match (line.strip_prefix("MARIADB "), line.strip_prefix("MYSQL ")) {
            (Some(line), _) if bed.kind == Kind::MariaDb => line,
            (_, Some(line)) if bed.kind == Kind::MySql => line,
            (None, None) => line,
            _ => continue,
        };
        let Some((sign, sql)) = line.split_once(' ') else {
            continue;
        };
        if sign == "#" {
            continue;
        }
        let ours = sql
            .replace("{db}", field.schema.name())
            .replace("\\n", "\n");
        let theirs = sql.replace("{db}", field.whole.name()).replace("\\n", "\n");
        let mut fault =
            |what: &str| wrong.push(format!("line {}: {sign} {sql}: {what}", number + 1));
        if sign == "+" {
            settings = vec![sql];
            continue;
        }
        let (mut client, mut direct) = fresh(&settings);
        let reply = client.query(&ours);
        if let Some(why) = refusal(&reply) {
            counts[1] += 1;
            println!("{:?} line {}: {sql}: {why}", bed.kind, number + 1);
            if sign == "=" {
                fault(&why);
            }
            continue;
        }
        counts[0] += 1;
        let there = direct.query(&theirs);
        if sign == "!" {
            fault("it was not refused");
        }
        let in_order = sql.contains("ORDER BY");
        let (a, b) = (field.told(&reply, in_order), field.told(&there, in_order));
        // What a syntax error quotes of the text has the names of the shard.
        let is_syntax = [&reply, &there]
            .iter()
            .all(|reply| reply.error().is_some_and(|error| error.0 == 1064));
        if a != b && !is_syntax {
            fault(&format!("\n  ours {a}\n  theirs {b}"));
        }
        if is_change(sql) {
            let (mut client, mut direct) = fresh(&[]);
            let more = tables(&field, &mut client, &mut direct);
            if more != before {
                fault(&more.join("\n"));
            }
            before = more;
        }
    }
    println!(
        "{:?}: {} answered, {} refused, {} wrong",
        bed.kind,
        counts[0],
        counts[1],
        wrong.len()
    );
    assert!(wrong.is_empty(), "{:?}\n{}", bed.kind, wrong.join("\n"));
}

#[test]
fn forms_of_statements_on_mariadb() {
    try_all(&Bed::mariadb());
}

#[test]
fn forms_of_statements_on_mysql() {
    try_all(&Bed::mysql());
}
