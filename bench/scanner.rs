//! How long a statement takes to classify: short ones in nanoseconds, long ones in bytes a second.

use std::hint::black_box;

use atlas::sql::{Dialect, Server, classify};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const DIALECT: Dialect = Dialect::new(Server::MariaDb, 10_11_19);

const JOIN: &str = "SELECT o.id, o.amount, c.name, COUNT(i.id) AS items FROM orders o \
    JOIN customers c ON c.id = o.customer_id LEFT JOIN order_items i ON i.order_id = o.id \
    WHERE o.created_at > NOW() - INTERVAL 7 DAY AND c.country IN ('de', 'at', 'ch') \
    GROUP BY o.id ORDER BY o.created_at DESC LIMIT 50";

fn insert_of_100_rows() -> String {
    let rows: Vec<String> = (0..100)
        .map(|i| {
            format!(
                "({i}, 'customer {i}', 'it''s a note of some length', {}.25, NULL)",
                i * 3
            )
        })
        .collect();
    format!(
        "INSERT INTO orders (id, name, note, amount, seen) VALUES {}",
        rows.join(", ")
    )
}

fn texts() -> Vec<(&'static str, String)> {
    let lorem = "lorem ipsum ".repeat(87_382);
    vec![
        ("point select", "SELECT c FROM sbtest1 WHERE id=5021".into()),
        (
            "prepared point select",
            "SELECT c FROM sbtest1 WHERE id=?".into(),
        ),
        ("three-way join", JOIN.into()),
        ("insert of 100 rows", insert_of_100_rows()),
        (
            "string of 1 MB",
            format!("SELECT id FROM t WHERE s = '{lorem}' FOR UPDATE"),
        ),
        (
            "comment of 1 MB",
            format!("/* {lorem} */ DELETE FROM t WHERE id = 1"),
        ),
        (
            "escapes of 1 MB",
            format!("SELECT '{}'", "a\\'b".repeat(262_144)),
        ),
        (
            "words of 1 MB",
            format!(
                "SELECT 1 WHERE {}",
                "a = b AND column_name < 17 OR ".repeat(34_953)
            ),
        ),
    ]
}

fn scanner(c: &mut Criterion) {
    let mut group = c.benchmark_group("classify");
    for (name, text) in texts() {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| classify(black_box(text.as_bytes()), &DIALECT))
        });
    }
    group.finish();
}

criterion_group!(benches, scanner);
criterion_main!(benches);
