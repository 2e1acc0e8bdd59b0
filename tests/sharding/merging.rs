//! What a server does with all rows of a query together: over several shards it is answered as one server answers it, or refused with
//! the reason and a hint; where the rows are on one shard it is always answered.

use crate::Stage;
use crate::common::{Bed, Kind, Wire};
use crate::stage::seen;

/// Where a server knows the statement.
#[derive(Clone, Copy, PartialEq)]
enum On {
    Both,
    MySql,
    MariaDb,
}
use On::{Both, MariaDb, MySql};

/// By why they are refused over several shards; nothing for those that are answered. `{w}` is where the condition goes, `{v}` where what
/// stands behind the key goes.
const STATEMENTS: &[(&str, &[(On, &str)])] = &[
    (
        "a query in parentheses over several shards: write it without them",
        &[(Both, "(SELECT uid FROM ord {w})")],
    ),
    (
        "",
        &[
            (Both, "SELECT uid, amt FROM ord {w}"),
            (
                Both,
                "SELECT uid + 1, UPPER(code), amt IS NULL FROM ord {w}",
            ),
            (Both, "SELECT ALL HIGH_PRIORITY uid FROM ord {w}"),
            (Both, "SELECT 1 FROM ord {w}"),
            (
                Both,
                "SELECT o.*, z.name FROM ord o JOIN zone z ON z.id = o.amt {w}",
            ),
            (
                Both,
                "SELECT o.uid, i.sku FROM ord o LEFT JOIN item i ON i.uid = o.uid {w}",
            ),
            (Both, "SELECT uid FROM ord {w} LIMIT 50"),
            (Both, "SELECT uid FROM ord {w} LIMIT 0"),
            (
                Both,
                "SELECT uid, COALESCE(n, amt), GREATEST(amt, 3), LENGTH(code) FROM ord {w}",
            ),
            (
                Both,
                "SELECT uid, (SELECT name FROM zone LIMIT 1) FROM ord {w}",
            ),
            (
                MySql,
                "SELECT o.uid, l.a FROM ord o, LATERAL (SELECT o.amt a) l {w}",
            ),
        ],
    ),
    (
        "ORDER BY over several shards",
        &[
            (Both, "SELECT uid FROM ord {w} ORDER BY uid"),
            (
                Both,
                "SELECT uid FROM ord {w} ORDER BY amt DESC, uid LIMIT 2",
            ),
            (Both, "SELECT uid FROM ord {w} ORDER BY NULL"),
            (Both, "SELECT uid FROM ord {w} ORDER BY COUNT(*)"),
            (Both, "(SELECT uid FROM ord {w}) ORDER BY uid"),
            (Both, "SELECT uid FROM ord {w} ORDER BY uid LIMIT 1, 2"),
        ],
    ),
    (
        "LIMIT with an offset over several shards: page by key (WHERE id > last ... LIMIT n)",
        &[
            (Both, "SELECT uid FROM ord {w} LIMIT 2 OFFSET 1"),
            (Both, "SELECT uid FROM ord {w} LIMIT 1, 2"),
        ],
    ),
    (
        "SQL_CALC_FOUND_ROWS over several shards",
        &[(Both, "SELECT SQL_CALC_FOUND_ROWS uid FROM ord {w} LIMIT 1")],
    ),
    (
        "GROUP BY or HAVING over several shards",
        &[
            (Both, "SELECT amt FROM ord {w} GROUP BY amt"),
            (Both, "SELECT amt FROM ord {w} GROUP BY amt WITH ROLLUP"),
            (
                Both,
                "SELECT code FROM ord {w} GROUP BY code HAVING code > 'a'",
            ),
            (Both, "SELECT uid, amt FROM ord {w} HAVING amt > 3"),
        ],
    ),
    (
        "DISTINCT over several shards",
        &[
            (Both, "SELECT DISTINCT amt FROM ord {w}"),
            (Both, "SELECT DISTINCTROW amt FROM ord {w}"),
            (Both, "SELECT DISTINCT 1 FROM ord {w}"),
        ],
    ),
    (
        "COUNT() over several shards",
        &[
            (Both, "SELECT COUNT(*) FROM ord {w}"),
            (Both, "SELECT COUNT(DISTINCT amt) FROM ord {w}"),
            (Both, "SELECT count(n) FROM ord {w}"),
            (
                Both,
                "SELECT COUNT(*) FROM ord o JOIN zone z ON z.id = o.amt {w}",
            ),
            (
                Both,
                "SELECT COUNT(*) FROM (SELECT uid FROM ord {w} LIMIT 4) x",
            ),
        ],
    ),
    (
        "SUM() over several shards",
        &[
            (Both, "SELECT SUM(amt) FROM ord {w}"),
            (Both, "SELECT SUM(DISTINCT amt) FROM ord {w}"),
            (Both, "SELECT CONCAT(FLOOR(SUM(amt)), 'MB') FROM ord {w}"),
        ],
    ),
    (
        "AVG() over several shards",
        &[(Both, "SELECT AVG(amt) FROM ord {w}")],
    ),
    (
        "MIN() over several shards",
        &[
            (Both, "SELECT MIN(code) FROM ord {w}"),
            (
                Both,
                "SELECT CASE WHEN MIN(amt) IS NULL THEN 1 END FROM ord {w}",
            ),
        ],
    ),
    (
        "MAX() over several shards",
        &[
            (Both, "SELECT MAX(amt) + 1 FROM ord {w}"),
            (Both, "SELECT IF(MAX(amt) > 3, 1, 0) FROM ord {w}"),
            (Both, "SELECT (SELECT MAX(uid) FROM ord {w})"),
        ],
    ),
    (
        "GROUP_CONCAT() over several shards",
        &[(Both, "SELECT GROUP_CONCAT(uid ORDER BY uid) FROM ord {w}")],
    ),
    (
        "BIT_AND() over several shards",
        &[(Both, "SELECT BIT_AND(amt) FROM ord {w}")],
    ),
    (
        "BIT_OR() over several shards",
        &[(Both, "SELECT BIT_OR(amt) FROM ord {w}")],
    ),
    (
        "BIT_XOR() over several shards",
        &[(Both, "SELECT BIT_XOR(amt) FROM ord {w}")],
    ),
    (
        "STD() over several shards",
        &[(Both, "SELECT STD(amt) FROM ord {w}")],
    ),
    (
        "STDDEV() over several shards",
        &[(Both, "SELECT STDDEV(amt) FROM ord {w}")],
    ),
    (
        "STDDEV_POP() over several shards",
        &[(Both, "SELECT STDDEV_POP(amt) FROM ord {w}")],
    ),
    (
        "STDDEV_SAMP() over several shards",
        &[(Both, "SELECT STDDEV_SAMP(amt) FROM ord {w}")],
    ),
    (
        "VARIANCE() over several shards",
        &[(Both, "SELECT VARIANCE(amt) FROM ord {w}")],
    ),
    (
        "VAR_POP() over several shards",
        &[(Both, "SELECT VAR_POP(amt) FROM ord {w}")],
    ),
    (
        "VAR_SAMP() over several shards",
        &[(Both, "SELECT VAR_SAMP(amt) FROM ord {w}")],
    ),
    (
        "JSON_ARRAYAGG() over several shards",
        &[(Both, "SELECT JSON_ARRAYAGG(amt) FROM ord {w}")],
    ),
    (
        "JSON_OBJECTAGG() over several shards",
        &[(Both, "SELECT JSON_OBJECTAGG(code, amt) FROM ord {w}")],
    ),
    (
        "ST_COLLECT() over several shards",
        &[(MySql, "SELECT ST_COLLECT(POINT(amt, 1)) FROM ord {w}")],
    ),
    (
        "a window function over several shards",
        &[
            (
                Both,
                "SELECT uid, ROW_NUMBER() OVER (ORDER BY uid) FROM ord {w}",
            ),
            (
                Both,
                "SELECT uid, SUM(amt) OVER (PARTITION BY code) FROM ord {w}",
            ),
            (
                Both,
                "SELECT uid, LAG(amt) OVER w FROM ord {w} WINDOW w AS (ORDER BY uid)",
            ),
            (
                Both,
                "SELECT uid, 1 + RANK() OVER (ORDER BY amt) FROM ord {w}",
            ),
            (MariaDb, "SELECT MEDIAN(amt) OVER () FROM ord {w}"),
        ],
    ),
    (
        "UNION, EXCEPT, INTERSECT or VALUES over several shards",
        &[
            (
                Both,
                "SELECT uid FROM ord {w} UNION SELECT uid FROM ord {w}",
            ),
            (
                Both,
                "SELECT uid FROM ord {w} UNION ALL SELECT amt FROM ord {w}",
            ),
            (Both, "SELECT uid FROM ord {w} UNION ALL SELECT 1"),
            (
                Both,
                "SELECT uid FROM ord {w} EXCEPT SELECT amt FROM ord {w}",
            ),
            (
                Both,
                "SELECT uid FROM ord {w} INTERSECT SELECT amt FROM ord {w}",
            ),
        ],
    ),
    (
        "a subquery on a sharded table over several shards",
        &[
            (Both, "SELECT * FROM (SELECT uid FROM ord {w}) x"),
            (Both, "SELECT * FROM (SELECT uid FROM ord {w} LIMIT 1) x"),
            (
                Both,
                "SELECT * FROM (SELECT uid FROM ord {w} ORDER BY uid LIMIT 1) x",
            ),
            (Both, "SELECT EXISTS (SELECT 1 FROM ord {w})"),
            (
                Both,
                "SELECT id FROM zone WHERE id IN (SELECT uid FROM ord {w})",
            ),
        ],
    ),
    (
        "a query with WITH over several shards",
        &[
            (Both, "WITH c AS (SELECT uid FROM ord {w}) SELECT * FROM c"),
            (
                Both,
                "WITH RECURSIVE c AS (SELECT uid FROM ord {w} UNION ALL SELECT uid + 100 FROM c WHERE uid < 50) SELECT * FROM c",
            ),
        ],
    ),
    (
        "a join of sharded tables over several shards that is not on their shard keys, or of tables that are not placed alike",
        &[(
            Both,
            "SELECT o.uid FROM ord o JOIN item i ON i.sku = o.amt AND i.uid {v} {w}",
        )],
    ),
    (
        "an outer join over several shards that keeps rows of a table that is not sharded",
        &[(
            Both,
            "SELECT z.id, o.uid FROM zone z LEFT JOIN ord o ON o.amt = z.id AND o.uid {v}",
        )],
    ),
    (
        "a locking read over several shards",
        &[
            (Both, "SELECT uid FROM ord {w} FOR UPDATE"),
            (Both, "SELECT uid FROM ord {w} LOCK IN SHARE MODE"),
            (MySql, "SELECT uid FROM ord {w} FOR SHARE SKIP LOCKED"),
        ],
    ),
];

/// All shards have rows for the first, and one for the second.
const PLACES: [(&str, &str); 2] = [("> 0", "> 0"), ("IN (2, 4, 6)", "IN (2, 4, 6)")];

fn answer(wire: &mut Wire, sql: &str) -> String {
    let reply = wire.query(sql);
    if let Some(error) = reply.error() {
        return format!("{error:?}");
    }
    let mut rows: Vec<String> = reply.rows().iter().map(|row| format!("{row:?}")).collect();
    if !sql.contains("ORDER BY") {
        rows.sort();
    }
    format!(
        "{} {}",
        reply.results()[0].len() - rows.len(),
        rows.join(" ")
    )
}

#[test]
fn what_needs_all_rows_together_is_answered_exactly_or_refused_by_its_name() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        let (mut answered, mut refused) = (0, 0);
        let all = STATEMENTS.iter();
        for (reason, (on, form)) in
            all.flat_map(|(reason, forms)| forms.iter().map(move |form| (reason, form)))
        {
            if *on == MySql && bed.kind == Kind::MariaDb
                || *on == MariaDb && bed.kind == Kind::MySql
            {
                continue;
            }
            let key = if form.contains("ord o") {
                "o.uid"
            } else {
                "uid"
            };
            let at = |place: &str| {
                form.replace("{w}", &format!("WHERE {key} {place}"))
                    .replace("{v}", place)
            };
            let (everywhere, there) = (at(PLACES[0].0), at(PLACES[1].0));
            // A reason that has a hint of its own is told as it is.
            let hint = if reason.contains(": ") {
                ""
            } else {
                ": say which with uid = ..."
            };
            // The second and the third time it is a statement that comes again.
            for _ in 0..3 {
                if reason.is_empty() {
                    assert_eq!(
                        answer(&mut client, &everywhere),
                        answer(&mut direct, &everywhere),
                        "{everywhere}"
                    );
                    answered += 1;
                } else {
                    let wanted = (
                        1105,
                        "HY000".to_owned(),
                        format!(
                            "Proxy Warning - Sharing Hit Multi Dbgroup Not Support SQL: {reason}{hint}"
                        ),
                    );
                    assert_eq!(
                        client.query(&everywhere).error(),
                        Some(wanted),
                        "{:?}: {everywhere}",
                        bed.kind
                    );
                    refused += 1;
                }
                assert_eq!(
                    answer(&mut client, &there),
                    answer(&mut direct, &there),
                    "{there}"
                );
            }
        }
        println!("{:?}: {answered} answered, {refused} refused", bed.kind);
    }
}

/// Sums and means of one shard have the values and the types that the server gives them; over several they are refused.
#[test]
fn b221_types_of_aggregates() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut direct) = (stage.client(), stage.direct());
        for wire in [&mut client, &mut direct] {
            wire.ok("ALTER TABLE ord ADD COLUMN d DECIMAL(12,4), ADD COLUMN f FLOAT, ADD COLUMN x DOUBLE");
            for (uid, value) in [
                (2, "1.1000, 0.1, 0.1"),
                (4, "2.2000, 0.2, 0.2"),
                (6, "3.3000, 0.3, 0.3"),
                (1, "7, 7, 7"),
            ] {
                wire.ok(&format!(
                    "REPLACE INTO ord (uid, d, f, x) VALUES ({uid}, {value})"
                ));
            }
        }
        let sums = "SELECT SUM(d), AVG(d), SUM(f), SUM(x), SUM(uid), AVG(uid), COUNT(*) FROM ord";
        let refused = client.query(sums).error();
        let wanted = "Proxy Warning - Sharing Hit Multi Dbgroup Not Support SQL: SUM() over several shards: say which with uid = ...";
        assert_eq!(refused, Some((1105, "HY000".to_owned(), wanted.to_owned())));
        let one = format!("{sums} WHERE uid IN (2, 4, 6)");
        let (ours, theirs) = (client.query(&one), direct.query(&one));
        assert_eq!(seen(&ours), seen(&theirs));
        assert_eq!(ours.rows()[0][1].as_deref(), Some("2.20000000"));
        // The definitions too, byte by byte: an expression has no schema in it.
        let definitions = |reply: &crate::common::Reply| {
            let all = reply.packets.iter();
            all.map(|packet| packet.payload.clone()).collect::<Vec<_>>()
        };
        let (ours, theirs) = (definitions(&ours), definitions(&theirs));
        assert_eq!(ours[..8], theirs[..8]);
    }
}
