//! What a session costs a statement, from the client's bytes to the reply's last byte, on connections that are there already.

mod pair;
mod script;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use pair::Pair;
use script::Form;

fn exchange(c: &mut Criterion) {
    let mut group = c.benchmark_group("exchange");
    for form in Form::ALL {
        let mut pair = Pair::bound();
        let (command, reply) = (form.command(), form.reply());
        group.bench_function(form.name(), |b| {
            b.iter(|| pair.exchange(black_box(&command), black_box(&reply)))
        });
        assert_eq!(pair.to_client, reply);
    }
    group.finish();
}

criterion_group!(benches, exchange);
criterion_main!(benches);
