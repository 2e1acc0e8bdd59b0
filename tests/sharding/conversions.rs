//! What servers make of values that are compared with keys, against what Atlas thinks of it.

use std::collections::BTreeSet;

use atlas::config::KeyType;
use atlas::shard::{Comparison, Key, Scalar};

use crate::common::{Bed, Node, Param};

const KEYS: [i128; 26] = [
    -9223372036854775808,
    -9223372036854775807,
    -9007199254740993,
    -16,
    -4,
    -3,
    -2,
    -1,
    0,
    1,
    2,
    3,
    4,
    5,
    15,
    16,
    100,
    1000,
    9007199254740991,
    9007199254740992,
    9007199254740993,
    9007199254740994,
    9223372036854773760,
    9223372036854775806,
    9223372036854775807,
    32,
];

fn text(text: &str) -> Scalar {
    Scalar::Text(text.as_bytes().to_vec())
}

/// For every key for which a server finds a comparison true, or false, Atlas must think that it may be.
#[test]
fn whole_numbers_are_compared_as_servers_do() {
    let mut literals: Vec<(String, Scalar)> = vec![
        ("NULL".into(), Scalar::Null),
        ("3.5".into(), Scalar::Between(3)),
        ("-3.5".into(), Scalar::Between(-4)),
        ("3.0".into(), Scalar::Int(3)),
        ("3e0".into(), Scalar::Float(3.0)),
        ("3.5e0".into(), Scalar::Float(3.5)),
        (
            "9007199254740992e0".into(),
            Scalar::Float(9007199254740992.0),
        ),
        ("1e30".into(), Scalar::Float(1e30)),
        ("0x03".into(), Scalar::Hex(vec![3])),
        ("0x0F".into(), Scalar::Hex(vec![15])),
        ("0xFFFFFFFFFFFFFFFF".into(), Scalar::Hex(vec![255; 8])),
        ("18446744073709551615".into(), Scalar::Int(u64::MAX.into())),
        (
            "-9223372036854775809".into(),
            Scalar::Int(i128::from(i64::MIN) - 1),
        ),
    ];
    for key in KEYS {
        literals.push((key.to_string(), Scalar::Int(key)));
    }
    let texts = [
        "3",
        "03",
        "+3",
        "-3",
        " 3",
        "\t3",
        "3 ",
        "3x",
        "3.0",
        "3.4",
        "3.5",
        "3.6",
        "-3.5",
        "3e0",
        "30e-1",
        "3e",
        "x",
        "",
        "-",
        ".5",
        "3.",
        "0x3",
        "15abc",
        "1e1",
        "9007199254740992",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "18446744073709551615",
        "1e400",
        "9007199254740993.5",
    ];
    for value in texts {
        literals.push((format!("'{value}'"), text(value)));
    }
    let comparisons = [
        ("=", Comparison::Equal),
        ("<=>", Comparison::NullSafe),
        ("<", Comparison::Less),
        ("<=", Comparison::LessOrEqual),
        (">", Comparison::Greater),
        (">=", Comparison::GreaterOrEqual),
    ];
    for bed in Bed::both() {
        let schema = bed.schema();
        let mut root = bed.root(Node::Primary);
        root.ok(&format!("USE {schema}"));
        root.ok("CREATE TABLE k (k BIGINT PRIMARY KEY)");
        let rows: Vec<String> = KEYS.iter().map(|key| format!("({key})")).collect();
        root.ok(&format!("INSERT INTO k VALUES {}", rows.join(",")));
        let check = |rows: Vec<String>, truth: &atlas::shard::KeySet, what: &str| {
            for key in rows {
                let key: i128 = key.parse().unwrap();
                let one = atlas::shard::KeySet::of(key);
                assert!(
                    !truth.intersection(&one).has_no_key(),
                    "{:?}: {key} {what}",
                    bed.kind
                );
            }
        };
        for (sql, value) in &literals {
            for (op, comparison) in comparisons {
                let truth = comparison.truth(KeyType::Int, value);
                for (word, keys) in [("TRUE", &truth.yes), ("FALSE", &truth.no)] {
                    let what = format!("(k {op} {sql}) IS {word}");
                    let reply = root.query(&format!("SELECT k FROM k WHERE {what}"));
                    let rows = reply.assert_ok().rows();
                    check(
                        rows.into_iter()
                            .map(|row| row[0].clone().unwrap())
                            .collect(),
                        keys,
                        &what,
                    );
                    let negated = if word == "TRUE" { "" } else { "NOT " };
                    if op == "=" {
                        let what = format!("k {negated}IN ({sql}, {sql})");
                        let reply = root.query(&format!("SELECT k FROM k WHERE {what}"));
                        let rows = reply.assert_ok().rows();
                        check(
                            rows.into_iter()
                                .map(|row| row[0].clone().unwrap())
                                .collect(),
                            keys,
                            &what,
                        );
                    }
                }
            }
        }
        // The same as parameters.
        let params = [
            (Param::Int(3), Scalar::Int(3)),
            (Param::Double(3.0), Scalar::Float(3.0)),
            (Param::Double(3.5), Scalar::Float(3.5)),
            (Param::Null, Scalar::Null),
        ];
        let params: Vec<(Param, Scalar)> = params
            .into_iter()
            .chain(texts.map(|value| (Param::from(value), text(value))))
            .collect();
        for (op, comparison) in comparisons {
            for word in ["TRUE", "FALSE"] {
                let sql = format!("SELECT k FROM k WHERE (k {op} ?) IS {word}");
                let statement = root.prepare(&sql);
                for (param, value) in &params {
                    let truth = comparison.truth(KeyType::Int, value);
                    let keys = if word == "TRUE" {
                        &truth.yes
                    } else {
                        &truth.no
                    };
                    let reply = root.execute(&statement, std::slice::from_ref(param));
                    let rows = reply.assert_ok().binary_rows();
                    let rows = rows.into_iter().map(|row| {
                        let value = row[0].clone().unwrap();
                        i64::from_le_bytes(value.try_into().unwrap()).to_string()
                    });
                    check(rows.collect(), keys, &format!("{sql} {value:?}"));
                }
                root.close_statement(&statement);
            }
        }
    }
}

/// Texts of printable ASCII that are equal under a collation lie on one shard. The manual names the collations of which this is not so:
/// for them `i` is the same as `y` or `j`.
#[test]
fn equal_texts_are_folded_alike() {
    let mut apart = BTreeSet::new();
    for bed in Bed::both() {
        let mut root = bed.root(Node::Primary);
        let sets = ["utf8mb4", "latin1", "ascii"];
        for set in sets {
            let collations = root
                .query(&format!(
                    "SELECT COLLATION_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY WHERE CHARACTER_SET_NAME = '{set}' AND COLLATION_NAME IS NOT NULL"
                ))
                .rows();
            let schema = bed.schema();
            root.ok(&format!(
                "CREATE TABLE {schema}.c (c INT PRIMARY KEY, a VARCHAR(8) CHARACTER SET {set})"
            ));
            let mut rows = Vec::new();
            for code in 32..127 {
                rows.push(format!("({code}, CONCAT('x', CHAR({code}), 'y'))"));
                rows.push(format!("({}, CONCAT('x', CHAR({code})))", code + 200));
            }
            rows.push("(500, 'x')".to_owned());
            root.ok(&format!("INSERT INTO {schema}.c VALUES {}", rows.join(",")));
            for row in collations {
                let name = row[0].clone().unwrap();
                let name = if name.starts_with(set) {
                    name
                } else {
                    format!("{set}_{name}")
                };
                let pairs = root.query(&format!(
                    "SELECT a.a, b.a FROM {schema}.c a JOIN {schema}.c b ON a.a = b.a COLLATE {name} WHERE a.c < b.c"
                ));
                if pairs.error().is_some() {
                    continue;
                }
                let is_apart = pairs.rows().iter().any(|pair| {
                    let stored = |at: usize| {
                        let value = text(pair[at].as_deref().unwrap());
                        Key::stored(&value, KeyType::String).unwrap()
                    };
                    stored(0) != stored(1)
                });
                if is_apart {
                    apart.insert(name);
                }
            }
        }
    }
    let named = ["roman", "lithuanian", "latvian", "_lt_", "_lv_", "_la_"];
    let others: Vec<&String> = apart
        .iter()
        .filter(|name| !named.iter().any(|known| name.contains(known)))
        .collect();
    assert!(others.is_empty(), "{others:?} of {apart:?}");
}
