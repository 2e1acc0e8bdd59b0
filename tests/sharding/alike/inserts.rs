//! Values of every form stored as keys, in every sql_mode: a row that is stored is found again, where one server would find it.

use super::{Field, Outcome, TABLES, refusal};
use crate::common::{Bed, Param};

const NUMBERS: [&str; 34] = [
    "7",
    "'7'",
    "' 7'",
    "'7 '",
    "'7abc'",
    "'7e0'",
    "'0x10'",
    "0x0b",
    "x'0b'",
    "b'1011'",
    "7.0",
    "7.4",
    "7.5",
    "-7.5",
    "7.5e0",
    "'7.5'",
    "'7.49'",
    "-7",
    "TRUE",
    "NULL",
    "DEFAULT",
    "18446744073709551616",
    "9223372036854775808",
    "300",
    "-300",
    "3000000000",
    "'3000000000'",
    "1e20",
    "1e3",
    "@none",
    "7 + 1",
    "N'7'",
    "'7' '1'",
    "k + 7",
];

const TEXTS: [&str; 22] = [
    "'q'",
    "'Q '",
    "' q'",
    "'q\\0'",
    "'qé'",
    "'é'",
    "'toolongtext'",
    "'q         '",
    "7",
    "7.50",
    "7.0",
    "7.",
    "-7",
    "1 + 6",
    "007",
    "1e2",
    "0x71",
    "x'71'",
    "b'1110001'",
    "_latin1'q'",
    "NULL",
    "TRUE",
];

const DATES: [&str; 24] = [
    "'2024-01-08'",
    "'2024-1-8'",
    "'24-01-08'",
    "'20240108'",
    "20240108",
    "240108",
    "'2024-01-08 10:00:00'",
    "'2024-01-05 23:59:59.4'",
    "'2024-01-05 23:59:59.6'",
    "'2024-01-05 23:59:59.9996'",
    "'2024-01-05 23:59:59.999999'",
    "'2024-01-05T23:59:59'",
    "DATE'2024-01-08'",
    "TIMESTAMP'2024-01-08 10:00:00'",
    "TIMESTAMP'2024-01-05 23:59:59.6'",
    "'0000-00-00'",
    "'2024-02-30'",
    "'2024-00-05'",
    "'x'",
    "NULL",
    "0",
    "'2024-01-05 20:00:00-05:00'",
    "'2024-01-08 24:00:00'",
    "NOW()",
];

fn values_of(table: &str) -> &'static [&'static str] {
    match table {
        "s" | "b" | "c" => &TEXTS,
        "d" | "t" | "t3" => &DATES,
        _ => &NUMBERS,
    }
}

/// Each row is found by its key as the server tells it.
fn check(field: &Field, bed: &Bed, table: &str, what: &str, outcome: &mut Outcome) {
    let (mut client, mut direct) = (field.client(), field.direct(bed));
    let sql = format!("SELECT k, v FROM {table}");
    let (ours, theirs) = (client.query(&sql), direct.query(&sql));
    let before = outcome.different.len();
    outcome.compare(what, &field.told(&ours, false), &field.told(&theirs, false));
    if outcome.different.len() > before {
        return;
    }
    for row in theirs
        .rows()
        .iter()
        .filter(|row| row[1].as_deref() == Some("77"))
    {
        let Some(key) = &row[0] else { continue };
        let sql = format!(
            "SELECT k, v FROM {table} WHERE k = '{}' AND v = 77",
            key.replace('\'', "''")
        );
        let (ours, theirs) = (client.query(&sql), direct.query(&sql));
        let what = format!("{what}\n  {sql}");
        outcome.compare(
            &what,
            &field.told(&ours, false),
            &field.told(&theirs, false),
        );
    }
}

fn clear(field: &mut Field, bed: &Bed, table: &super::Table) {
    let mut root = bed.root(crate::common::Node::Primary);
    root.ok(&format!(
        "DELETE FROM {}.{} WHERE v = 77",
        field.whole, table.name
    ));
    for part in table.parts[0] {
        root.ok(&format!(
            "DELETE FROM {}.{}{part} WHERE v = 77",
            field.schema, table.name
        ));
    }
    for part in table.parts[1] {
        field.second.ok(&format!(
            "DELETE FROM {}_b.{}{part} WHERE v = 77",
            field.schema, table.name
        ));
    }
}

fn store(bed: &Bed) {
    let mut field = Field::new(bed);
    let mut outcome = Outcome::default();
    for table in &TABLES {
        let name = table.name;
        for (mode, verb) in [
            ("STRICT_TRANS_TABLES", "INSERT"),
            ("", "INSERT"),
            ("STRICT_ALL_TABLES", "INSERT IGNORE"),
            ("", "REPLACE"),
        ] {
            let (mut client, mut direct) = (field.client(), field.direct(bed));
            for wire in [&mut client, &mut direct] {
                wire.ok(&format!("SET sql_mode = '{mode}'"));
            }
            for value in values_of(name) {
                let sql = format!("{verb} INTO {name} (k, v) VALUES ({value}, 77)");
                let ours = client.query(&sql);
                let what = format!("[{mode}] {sql}");
                if let Some(why) = refusal(&ours) {
                    outcome.refused(&what, &why);
                    continue;
                }
                outcome.answered += 1;
                let theirs = direct.query(&sql);
                outcome.compare(&what, &field.told(&ours, true), &field.told(&theirs, true));
                check(&field, bed, name, &what, &mut outcome);
                clear(&mut field, bed, table);
            }
            let params = [
                Param::Int(7),
                Param::Int(300),
                Param::Int(-300),
                Param::Int(3_000_000_000),
                Param::Double(7.0),
                Param::Double(7.5),
                Param::Double(1e20),
                Param::from("7"),
                Param::from("7x"),
                Param::from("toolongtext"),
                Param::from("2024-01-05 23:59:59.6"),
                Param::from("2024-01-08"),
                Param::Null,
            ];
            let sql = format!("{verb} INTO {name} (k, v) VALUES (?, 77)");
            for param in params {
                let (ours, theirs) = (client.prepare(&sql), direct.prepare(&sql));
                let reply = client.execute(&ours, std::slice::from_ref(&param));
                let what = format!("[{mode}] {sql} {param:?}");
                if let Some(why) = refusal(&reply) {
                    outcome.refused(&what, &why);
                } else {
                    outcome.answered += 1;
                    let there = direct.execute(&theirs, std::slice::from_ref(&param));
                    outcome.compare(&what, &field.told(&reply, true), &field.told(&there, true));
                    check(&field, bed, name, &what, &mut outcome);
                    clear(&mut field, bed, table);
                }
                client.close_statement(&ours);
                direct.close_statement(&theirs);
            }
        }
    }
    outcome.check(bed);
    let (answered, refused) = (outcome.answered, &outcome.refused);
    assert!(
        refused.len() < answered * 2,
        "{} of {answered} were refused",
        refused.len()
    );
}

#[test]
fn what_is_stored_is_found_on_mariadb() {
    store(&Bed::mariadb());
}

#[test]
fn what_is_stored_is_found_on_mysql() {
    store(&Bed::mysql());
}
