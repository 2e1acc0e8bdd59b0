//! How long it takes to know where a statement goes: to classify it and to decide.

mod script;

use std::hint::black_box;

use atlas::config::ReadFrom;
use atlas::route::{View, decide};
use atlas::session::{Pins, Role};
use atlas::sql::{Dialect, Server, classify};
use criterion::{Criterion, criterion_group, criterion_main};

const DIALECT: Dialect = Dialect::new(Server::MariaDb, 10_11_19);

/// A session outside a transaction that has nothing to keep on the primary.
fn view() -> View {
    View {
        must_see_writes: false,
        in_transaction: false,
        autocommit: true,
        pins: Pins::default(),
        last: Some(Role::Primary),
        last_rows: Some(Role::Primary),
        warned: Some(Role::Primary),
        read_from: ReadFrom::Replica,
    }
}

fn routing(c: &mut Criterion) {
    let mut group = c.benchmark_group("routing");
    let view = view();
    for (name, sql) in [
        ("point select", script::SELECT),
        ("insert", script::INSERT),
        ("join of three tables", script::JOIN),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let statement = classify(black_box(sql.as_bytes()), &DIALECT);
                decide(&statement, black_box(&view))
            })
        });
    }
    group.finish();
}

criterion_group!(benches, routing);
criterion_main!(benches);
