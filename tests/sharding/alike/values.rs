//! Keys compared with values in every form: the rows are those that one server finds. An eighth of the values as literals, and
//! a quarter as parameters, is tried in each form, with `ATLAS_ALL_VALUES` all are.

use super::{Field, Outcome, TABLES, refusal};
use crate::common::{Bed, Param};

/// In place of `X`, and of `Y` in its stead where a form needs two.
const FORMS: [&str; 20] = [
    "k = X",
    "X = k",
    "k <=> X",
    "k <> X",
    "k < X",
    "k >= X",
    "X >= k",
    "NOT (k = X)",
    "NOT (k < X)",
    "k IN (X, Y)",
    "k NOT IN (X, Y)",
    "k BETWEEN X AND Y",
    "k BETWEEN Y AND X",
    "k NOT BETWEEN X AND Y",
    "(k, v) = (X, 3)",
    "(k, v) IN ((X, 1), (Y, 2))",
    "k = X IS TRUE",
    "(k = X) IS NOT TRUE",
    "(k = X OR k = Y) AND v < 4",
    "NOT (k <> X AND k <> Y)",
];

/// Values of all kinds, for every key; the second of two is the one that comes next.
const VALUES: [&str; 45] = [
    "1",
    "'1'",
    "' 1'",
    "'1 '",
    "'1abc'",
    "'1e0'",
    "'0x10'",
    "0x10",
    "x'31'",
    "X'61'",
    "0b1",
    "b'10000'",
    "1.0",
    "1.5",
    "-0",
    "-1",
    "- 1",
    "-(-1)",
    "'-1'",
    "1e0",
    "1.5e0",
    "TRUE",
    "FALSE",
    "NULL",
    "\\N",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "9007199254740993",
    "'9007199254740993'",
    "9007199254740993.0",
    "123456789012345678901234567890123456789012345678",
    "N'1'",
    "_utf8mb4'1'",
    "_latin1 0x31",
    "_binary'1'",
    "'1' '6'",
    "''",
    "~0",
    "!0",
    "1 + 1",
    "5 DIV 2",
];

const TEXTS: [&str; 24] = [
    "'a'",
    "'A'",
    "'a '",
    "' a'",
    "'á'",
    "'ａ'",
    "'ab'",
    "'AB  '",
    "_latin1'a'",
    "_utf8mb4 x'61'",
    "n'a'",
    "'a' 'b'",
    "\"a\"",
    "'a\\0'",
    "'a\\t'",
    "'it''s'",
    "'it\\'s'",
    "'x y'",
    "'a' COLLATE utf8mb4_bin",
    "BINARY 'a'",
    "CONCAT('a', '')",
    "0x61",
    "_utf16 x'0061'",
    "'\\a'",
];

const DATES: [&str; 33] = [
    "'2024-01-05'",
    "'2024-01-06'",
    "'2024-1-5'",
    "'24-01-05'",
    "'20240105'",
    "'240105'",
    "20240105",
    "240105",
    "20240106.5",
    "'2024/01/06'",
    "'2024.01.05'",
    "'2024-01-05 10:00:00'",
    "'2024-01-05 23:59:59'",
    "'2024-01-05 23:59:59.4'",
    "'2024-01-05 23:59:59.6'",
    "'2024-01-05 23:59:59.999999'",
    "'2024-01-05T10:00:00'",
    "'2024-01-05 24:00:00'",
    "'2024-01-06 00:00'",
    "20240105100000",
    "'20240105100000'",
    "DATE'2024-01-05'",
    "TIMESTAMP'2024-01-05 10:00:00'",
    "TIMESTAMP'2024-01-05 23:59:59.7'",
    "{d '2024-01-06'}",
    "'0000-00-00'",
    "0",
    "'2024-01-06 00:00:00+00:00'",
    "'2024-01-06 02:00:00+05:00'",
    "' 2024-01-05'",
    "'2024-01-05x'",
    "'2024-02-30'",
    "TIME'10:00:00'",
];

/// As parameters.
fn params() -> Vec<Param> {
    let texts = [
        "1",
        " 1",
        "1abc",
        "1e0",
        "1.5",
        "-1",
        "",
        "a",
        "A ",
        "á",
        "9007199254740993",
        "18446744073709551615",
        "2024-01-05",
        "2024-01-05 23:59:59.6",
        "24-1-6",
        "20240105",
    ];
    let mut params: Vec<Param> = texts.into_iter().map(Param::from).collect();
    params.extend([
        Param::Int(1),
        Param::Int(-1),
        Param::Int(20_240_105),
        Param::Int(i64::MAX),
        Param::Int(9_007_199_254_740_993),
        Param::Double(1.0),
        Param::Double(1.5),
        Param::Double(-0.0),
        Param::Null,
    ]);
    params
}

fn values_of(table: &str) -> Vec<&'static str> {
    let more: &[&str] = match table {
        "s" | "b" | "c" => &TEXTS,
        "d" | "t" | "t3" => &DATES,
        _ => &[],
    };
    VALUES.iter().chain(more).copied().collect()
}

fn compare(bed: &Bed) {
    let field = Field::new(bed);
    let (mut client, mut direct) = (field.client(), field.direct(bed));
    let mut outcome = Outcome::default();
    let is_whole = std::env::var_os("ATLAS_ALL_VALUES").is_some();
    for table in &TABLES {
        let values = values_of(table.name);
        for (at, value) in values.iter().enumerate() {
            let other = values[(at + 1) % values.len()];
            for (number, form) in FORMS.iter().enumerate() {
                if !is_whole && (at + number) % 8 > 0 {
                    continue;
                }
                let condition = form
                    .replace('X', "{x}")
                    .replace('Y', other)
                    .replace("{x}", value);
                let sql = format!("SELECT k, v FROM {} WHERE {condition}", table.name);
                let ours = client.query(&sql);
                if let Some(why) = refusal(&ours) {
                    outcome.refused(&sql, &why);
                    continue;
                }
                outcome.answered += 1;
                let theirs = field.told(&direct.query(&sql), false);
                outcome.compare(&sql, &field.told(&ours, false), &theirs);
            }
        }
        for (number, form) in FORMS.iter().enumerate() {
            let sql = format!(
                "SELECT k, v FROM {} WHERE {}",
                table.name,
                form.replace(['X', 'Y'], "?")
            );
            let count = sql.matches('?').count();
            for (at, param) in params().iter().enumerate() {
                if !is_whole && (at + number) % 4 > 0 {
                    continue;
                }
                let other = params()[(at + 1) % params().len()].clone();
                let given: Vec<Param> = [param.clone(), other][..count].to_vec();
                // Prepared anew: what MySQL compares as hangs on the first value.
                let (ours, theirs) = (client.prepare(&sql), direct.prepare(&sql));
                let (a, b) = (
                    client.execute(&ours, &given),
                    direct.execute(&theirs, &given),
                );
                client.close_statement(&ours);
                direct.close_statement(&theirs);
                let what = format!("{sql} {given:?}");
                if let Some(why) = refusal(&a) {
                    outcome.refused(&what, &why);
                    continue;
                }
                outcome.answered += 1;
                let rows = |reply: &crate::common::Reply| match reply.error() {
                    Some(error) => format!("{error:?}"),
                    None => {
                        let mut rows = reply.binary_rows();
                        rows.sort();
                        format!("{rows:?}")
                    }
                };
                outcome.compare(&what, &rows(&a), &rows(&b));
            }
        }
    }
    outcome.check(bed);
    let (answered, refused) = (outcome.answered, &outcome.refused);
    assert!(
        refused.len() * 20 < answered,
        "{} were refused",
        refused.len()
    );
}

#[test]
fn keys_are_compared_as_mariadb_does() {
    compare(&Bed::mariadb());
}

#[test]
fn keys_are_compared_as_mysql_does() {
    compare(&Bed::mysql());
}
