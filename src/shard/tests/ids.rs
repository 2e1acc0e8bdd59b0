//! INSERTs into tables whose keys Atlas generates.

use super::{in_words, placement_of};
use crate::shard::{Given, Numbers, Placement, Plan};

const MAP: &str = r#"
    groups = [
        { name = "s0", primary = "h0" },
        { name = "s1", primary = "h1" },
    ]
    users = [{ name = "u", password = "x", group = "s0" }]
    [[tables]]
    name = "t1.gen"
    key = "uid"
    id = { column = "id" }
    ranges = [{ groups = ["s0", "s1"], tables = 2 }]
    [[tables]]
    name = "t1.own"
    key = "id"
    id = { column = "id" }
    ranges = [{ groups = ["s1", "s0"] }]
"#;

fn plan(placement: &Placement, sql: &str, numbers: Numbers) -> Plan {
    let asked = super::asked(sql, numbers);
    placement.plan_text(asked, Some(b"t1")).unwrap()
}

fn words(plan: Plan) -> String {
    match plan {
        Plan::One(leg) => in_words(&leg),
        Plan::Parts(legs) => legs.iter().map(in_words).collect::<Vec<_>>().join(" | "),
        Plan::Refuse(refused) => refused.reason().to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn ids_are_put_into_rows_that_have_none() {
    let placement = placement_of(MAP);
    for (sql, wanted) in [
        (
            "INSERT INTO gen (uid, v) VALUES (4, 'a')",
            "0: INSERT INTO `gen_0` (`id`, uid, v) VALUES (LAST_INSERT_ID(100), 4, 'a')",
        ),
        (
            "REPLACE gen (id, uid) VALUES (NULL, 4), (5, 4), ( /* x */ default , 4)",
            "0: REPLACE `gen_0` (id, uid) VALUES (LAST_INSERT_ID(100), 4), (5, 4), ( /* x */ 102 , 4)",
        ),
        (
            "INSERT INTO gen (uid) VALUES (4), (5), (8), (9) ON DUPLICATE KEY UPDATE uid2 = 1",
            "0: INSERT INTO `gen_0` (`id`, uid) VALUES (LAST_INSERT_ID(100), 4), (102, 8) ON DUPLICATE KEY UPDATE uid2 = 1 | 0: INSERT INTO `gen_1` (`id`, uid) VALUES (101, 5), (103, 9) ON DUPLICATE KEY UPDATE uid2 = 1",
        ),
        (
            "INSERT INTO gen SET uid = 6, v = 'a'",
            "1: INSERT INTO `gen_2` SET `id` = LAST_INSERT_ID(100), uid = 6, v = 'a'",
        ),
        (
            "INSERT INTO gen SET uid = 6, id = DEFAULT",
            "1: INSERT INTO `gen_2` SET uid = 6, id = LAST_INSERT_ID(100)",
        ),
        (
            "INSERT INTO own (v) VALUES ('a')",
            "1: INSERT INTO own (`id`, v) VALUES (LAST_INSERT_ID(100), 'a')",
        ),
        (
            "INSERT INTO own SET v = 'a'",
            "1: INSERT INTO own SET `id` = LAST_INSERT_ID(100), v = 'a'",
        ),
        (
            "INSERT INTO own (v) VALUES ('a'), ('b')",
            "its rows belong on shards of several groups",
        ),
        ("INSERT INTO own (id, v) VALUES (7, 'b')", "0"),
        (
            "INSERT INTO own (id, v) VALUES (now(), 'b')",
            "the value of the shard key id is known to the server only",
        ),
    ] {
        let told = words(plan(&placement, sql, Numbers::Written(100)));
        if wanted.starts_with("the value") || wanted.starts_with("its rows") {
            assert!(told.starts_with(wanted), "{sql}: {told}");
        } else {
            assert_eq!(told, wanted, "{sql}");
        }
    }
    let asks = plan(
        &placement,
        "INSERT INTO own (v) VALUES ('a'), ('b')",
        Numbers::None,
    );
    assert_eq!(asks, Plan::Ids { count: 2, group: 1 });
    let select = plan(
        &placement,
        "INSERT INTO gen (uid) SELECT uid FROM gen WHERE uid = 1",
        Numbers::None,
    );
    assert!(words(select).contains("does not give the generated key id"));
}

#[test]
fn ids_are_parameters_of_prepared_statements() {
    let placement = placement_of(MAP);
    let sql =
        "INSERT INTO gen (v, uid) VALUES (?, 4), ('?', 5), (?, 8) ON DUPLICATE KEY UPDATE v = ?";
    let Plan::Parts(parts) = plan(&placement, sql, Numbers::Bound(100)) else {
        panic!();
    };
    let (client, id) = (Given::Client, Given::Id);
    assert_eq!(
        parts.iter().map(in_words).collect::<Vec<_>>(),
        [
            "0: INSERT INTO `gen_0` (`id`, v, uid) VALUES (LAST_INSERT_ID(?), ?, 4), (?, ?, 8) ON DUPLICATE KEY UPDATE v = ?",
            "0: INSERT INTO `gen_1` (`id`, v, uid) VALUES (?, '?', 5) ON DUPLICATE KEY UPDATE v = ?",
        ]
    );
    assert_eq!(
        parts[0].params,
        Some(vec![id(100), client(0), id(102), client(1), client(2)])
    );
    assert_eq!(parts[1].params, Some(vec![id(101), client(2)]));
}
