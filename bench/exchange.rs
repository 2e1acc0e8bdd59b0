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
        let command = form.command();
        let (plain, sharded) = (form.reply(), form.reply_of_shard());
        let cases = [
            ("", Pair::bound(), &plain),
            (", sharded", Pair::sharded(), &sharded),
        ];
        for (what, mut pair, reply) in cases {
            group.bench_function(format!("{}{what}", form.name()), |b| {
                b.iter(|| pair.exchange(black_box(&command), black_box(reply)))
            });
            assert_eq!(pair.to_client, plain);
        }
    }
    group.finish();
}

criterion_group!(benches, exchange);
criterion_main!(benches);
