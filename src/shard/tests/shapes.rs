//! Statements that come again: what is kept of them says what reading them says.

use std::sync::Arc;
use std::time::Duration;

use super::{D, placement};
use crate::shard::{Asked, Columns, Dress, Numbers, Placement, Plan, Shapes, Shows};

/// By a shape that was kept where there is one, and by the text.
fn both(shapes: &mut Shapes, placement: &Arc<Placement>, sql: &str) -> [Option<Plan>; 2] {
    let asked = super::asked(sql, Numbers::Written(70));
    let columns = Columns::default();
    [
        shapes.plan(placement, asked, Some(b"t1"), &columns),
        placement.plan_text_with(asked, Some(b"t1"), &columns),
    ]
    .map(|plan| plan.map(|plan| with_names(placement, plan)))
}

/// With the client's names, which the short way has at once; it does not tell what it put where.
fn with_names(placement: &Arc<Placement>, mut plan: Plan) -> Plan {
    if let Plan::One(leg) = &mut plan {
        let dress = leg.dress.take();
        leg.dress = dress.or_else(|| Dress::new(placement, leg).map(Arc::new));
        leg.renamed = Vec::new();
        leg.shows = Shows::Data;
        leg.put = Vec::new();
    }
    plan
}

#[test]
fn what_is_kept_says_what_the_text_says() {
    let placement = Arc::new(placement());
    let mut shapes = Shapes::default();
    for sql in [
        "SELECT * FROM ord WHERE uid = {}",
        "SELECT ord.amt, 'x{}' FROM t1.ord WHERE ord.uid = {} AND amt > {} LIMIT {}",
        "SELECT 1000000, log.x FROM t1.log WHERE log.id = {} AND x IN ({}, '{}', {}.5)",
        "SELECT * FROM log WHERE id = '{}'",
        "SELECT * FROM log WHERE id BETWEEN {} AND {}",
        "SELECT * FROM log WHERE id = -{}",
        "SELECT * FROM log WHERE id = {} + 1",
        "SELECT * FROM log WHERE id IN ({}, {}) /* {} */",
        "SELECT * FROM `sk-list` WHERE k = 'a{}'",
        "SELECT * FROM `sk-list` WHERE k = 'it''s {}'",
        "SELECT * FROM `sk-list` WHERE k = 'a' '{}'",
        "SELECT * FROM `sk-list` WHERE k = x'3{}'",
        "SELECT * FROM ord WHERE uid = 0x3{}",
        "SELECT * FROM day WHERE d = '2024-01-0{}'",
        "SELECT * FROM day WHERE d = DATE '2024-01-0{}'",
        "SELECT * FROM ord WHERE uid = {} AND 1 = {}",
        "SELECT CAST({} AS DECIMAL(10, {})) FROM ord WHERE uid = {}",
        "SELECT uid AS 'n{}' FROM ord WHERE uid = {}",
        "SELECT COUNT(*) FROM ord WHERE amt = {}",
        "SELECT * FROM quiet WHERE amt = {}",
        "SELECT x FROM other WHERE ord = {}",
        "SELECT * FROM ord o JOIN zone ON zone.id = {} WHERE o.uid = {}",
        "INSERT INTO ord (amt, uid) VALUES ({}, {})",
        "INSERT INTO log (id, x) VALUES ({}, '({}'), ({}, ')') ON DUPLICATE KEY UPDATE log.x = {}",
        "INSERT INTO ord VALUES ({}, {})",
        "UPDATE log SET x = 'longer than {} before' WHERE id = {}",
        "DELETE FROM log WHERE log.id = {} AND log.x = {}",
    ] {
        // Numbers of different lengths, so that places move.
        for number in [
            4,
            5,
            6,
            9,
            4,
            13,
            1004,
            99_999,
            0,
            7,
            4_611_686_018_427_387_904_u64,
        ] {
            let sql = sql.replace("{}", &number.to_string());
            let [kept, read] = both(&mut shapes, &placement, &sql);
            assert_eq!(kept, read, "{sql}");
        }
    }
}

#[test]
fn another_map_and_another_way_of_reading_are_others() {
    let (one, two) = (Arc::new(placement()), Arc::new(placement()));
    let mut shapes = Shapes::default();
    for placement in [&one, &one, &one, &two, &two, &two, &one] {
        let [kept, read] = both(&mut shapes, placement, "SELECT * FROM ord WHERE uid = 1");
        assert_eq!(kept, read);
    }
    let text = br"SELECT * FROM `sk-list` WHERE k = '\\' OR k = ' OR 1 = 1 OR k = \''";
    for no_backslash_escapes in [false, false, false, true, true, true, false] {
        let d = crate::sql::Dialect {
            no_backslash_escapes,
            ..D
        };
        let asked = Asked {
            is_listed: false,
            is_lax: false,
            columns: None,
            text,
            d: &d,
            home: 0,
            here: 0,
            params: &[],
            numbers: Numbers::None,
        };
        let columns = Columns::default();
        let kept = shapes.plan(&one, asked, Some(b"t1"), &columns);
        let read = one.plan_text_with(asked, Some(b"t1"), &columns);
        assert_eq!(kept, read);
    }
    // In another schema it names no sharded table.
    let asked = Asked {
        is_listed: false,
        is_lax: false,
        columns: None,
        text: b"SELECT * FROM ord WHERE uid = 1",
        d: &D,
        home: 0,
        here: 0,
        params: &[],
        numbers: Numbers::None,
    };
    for schema in [
        Some(&b"t2"[..]),
        None,
        Some(b"t1"),
        Some(b"t2"),
        None,
        Some(b"t1"),
    ] {
        let kept = shapes.plan(&one, asked, schema, &Columns::default());
        assert_eq!(kept.is_some(), schema == Some(b"t1"));
    }
}

#[test]
fn what_is_kept_has_a_bound() {
    let placement = Arc::new(placement());
    let mut shapes = Shapes::default();
    for number in 0..5000 {
        let sql = format!("SELECT c{number} FROM ord WHERE uid = {number}");
        for _ in 0..2 {
            let [kept, read] = both(&mut shapes, &placement, &sql);
            assert_eq!(kept, read);
        }
        assert!(shapes.len() <= 1025, "{}", shapes.len());
    }
}

#[test]
fn what_a_lax_session_knows_of_columns_is_kept_for_all() {
    let placement = Arc::new(placement());
    let mut shapes = Shapes::default();
    let mut columns = Columns::default();
    let rows = [(&b"uid"[..], &b"smallint"[..], &b""[..])];
    let mut go = |uid: &str, is_lax, columns: &Columns| {
        let sql = format!("INSERT INTO ord (amt, uid) VALUES (1, {uid})");
        let asked = Asked {
            is_lax,
            ..super::asked(&sql, Numbers::None)
        };
        let kept = shapes.plan(&placement, asked, Some(b"t1"), columns);
        let read = placement.plan_text_with(asked, Some(b"t1"), columns);
        let [kept, read] = [kept, read].map(|plan| plan.map(|plan| with_names(&placement, plan)));
        assert_eq!(kept, read, "{uid} {is_lax}");
        match read {
            Some(Plan::One(_)) => "goes",
            Some(Plan::Columns(0)) => "asks",
            Some(Plan::Refuse(_)) => "refused",
            _ => "other",
        }
    };
    assert_eq!(go("300", true, &columns), "asks");
    assert!(columns.note(&placement.tables[0], rows.into_iter(), Duration::ZERO));
    for _ in 0..3 {
        assert_eq!(go("300", true, &columns), "goes");
        assert_eq!(go("40000", true, &columns), "refused");
        // The server refuses it.
        assert_eq!(go("40000", false, &columns), "goes");
    }
    columns.expire(Duration::from_secs(9));
    assert_eq!(go("300", true, &columns), "asks");
    assert_eq!(go("100", true, &columns), "goes");
    assert_eq!(go("40000", false, &columns), "goes");
}

#[test]
fn where_no_row_can_be_says_nothing_of_a_shard() {
    let placement = Arc::new(placement());
    let mut shapes = Shapes::default();
    // 5 and 13 lie together, as do 6 and 14: what is planned for the one of each leads anywhere.
    for number in [5, 5, 5, 6, 6, 13, 14, 4, 13, 14] {
        let sql = format!("SELECT * FROM log WHERE id = {number} AND id IN (4, 13, 14)");
        let [kept, read] = both(&mut shapes, &placement, &sql);
        assert!(matches!(kept, Some(Plan::One(_))), "{sql}");
        if !matches!(number, 5 | 6) {
            assert_eq!(kept, read, "{sql}");
        }
    }
}
