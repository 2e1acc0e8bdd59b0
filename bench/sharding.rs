//! What sharding costs a statement: one that names no sharded table, and one that does.

use std::hint::black_box;
use std::sync::Arc;

use atlas::shard::{Asked, Columns, Numbers, Placement, Scalar, Shapes};
use atlas::sql::{Dialect, Server};
use criterion::{Criterion, criterion_group, criterion_main};

const DIALECT: Dialect = Dialect::new(Server::MariaDb, 10_11_19);

const MAP: &str = r#"
    groups = [{ name = "a", primary = "h0" }, { name = "b", primary = "h1" }]
    users = [{ name = "u", password = "x", group = "a" }]
    tables = [
        { name = "shop.orders", key = "user_id", ranges = [{ groups = ["a", "b"], tables = 4 }] },
        { name = "shop.payments", key = "user_id", ranges = [{ groups = ["a", "b"], tables = 4 }] },
    ]
"#;

const POINT: &str = "SELECT amount, state FROM orders WHERE user_id = ? AND id = 5021";

fn sharding(c: &mut Criterion) {
    let config = atlas::config::load(MAP, "map", &|_| None).expect("a map");
    let placement = Arc::new(Placement::new(&config, &[0, 1]).expect("tables"));
    let asked = |text: &'static str| Asked {
        is_listed: false,
        is_lax: false,
        columns: None,
        text: text.as_bytes(),
        d: &DIALECT,
        home: 0,
        here: 0,
        params: &[Scalar::Int(4711)],
        numbers: Numbers::None,
    };
    let schema = Some(&b"shop"[..]);
    let mut group = c.benchmark_group("sharding");
    group.bench_function("an unsharded point select", |b| {
        let text = "SELECT c FROM sbtest1 WHERE id=5021";
        b.iter(|| placement.words().occur_in(black_box(text.as_bytes())));
    });
    group.bench_function("a point select, from its text, that comes again", |b| {
        let (mut shapes, columns) = (Shapes::default(), Columns::default());
        let texts = [
            "SELECT amount, state FROM orders WHERE user_id = 4711 AND id = 5021",
            "SELECT amount, state FROM orders WHERE user_id = 17 AND id = 99",
        ];
        let mut at = 0;
        b.iter(|| {
            at ^= 1;
            let asked = black_box(asked(texts[at]));
            shapes.plan(&placement, asked, schema, &columns)
        });
    });
    group.bench_function("whether a point select names a table", |b| {
        b.iter(|| placement.is_mentioned(black_box(POINT.as_bytes()), &DIALECT, schema));
    });
    group.bench_function("a point select, from its text", |b| {
        b.iter(|| placement.plan_text(black_box(asked(POINT)), schema));
    });
    let shape = placement.read(POINT.as_bytes(), &DIALECT, schema);
    let shape = shape.expect("understood").expect("about orders");
    group.bench_function("a point select, prepared", |b| {
        b.iter(|| placement.plan(black_box(&shape), asked(POINT)));
    });
    group.finish();
}

criterion_group!(benches, sharding);
criterion_main!(benches);
