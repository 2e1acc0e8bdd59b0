//! How long the tracker takes to find the end of a reply.

mod script;

use std::hint::black_box;

use atlas::session::{Expect, Tracker};
use atlas::wire::RowFormat;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// What a worker reads from a server at a time.
const CHUNK: usize = 64 * 1024;

fn replies() -> [(&'static str, Vec<u8>); 3] {
    let value = [b'x'; 120];
    let long = [b'x'; 1024];
    let mut chunk = script::rows(RowFormat::Text, &[&long[..]; CHUNK / 1024]);
    chunk.truncate(CHUNK);
    [
        ("point select", script::one_row(RowFormat::Text)),
        (
            "1000 rows of 120 bytes",
            script::rows(RowFormat::Text, &[&value[..]; 1000]),
        ),
        // Not a whole reply: the walk stops in a row.
        ("64 KiB of rows of 1 KiB", chunk),
    ]
}

fn header_walk(c: &mut Criterion) {
    let mut group = c.benchmark_group("header walk");
    for (name, reply) in replies() {
        group.throughput(Throughput::Bytes(reply.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut tracker = Tracker::new(Expect::Response, script::CAPABILITIES);
                tracker.walk(black_box(&reply)).map(|walk| walk.consumed)
            })
        });
    }
    group.finish();
}

criterion_group!(benches, header_walk);
criterion_main!(benches);
