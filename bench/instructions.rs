//! Runs so many statements of one form, for a tool that counts instructions: `bench/instructions` runs it twice and subtracts.
//! Arguments: `session`, `sharded` or `worker`, a form, a number.

mod loopback;
mod pair;
mod script;

use std::hint::black_box;
use std::process::ExitCode;

use loopback::Loopback;
use pair::Pair;
use script::Form;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match arguments.as_slice() {
        [what, form, count] => Form::ALL
            .into_iter()
            .find(|known| known.name() == form)
            .zip(count.parse().ok())
            .map(|(form, count)| (what.as_str(), form, count)),
        _ => None,
    };
    match parsed {
        Some(("session", form, count)) => session(Pair::bound(), form, &form.reply(), count),
        Some(("sharded", form, count)) => {
            session(Pair::sharded(), form, &form.reply_of_shard(), count)
        }
        Some(("worker", form, count)) => worker(form, count),
        _ => {
            eprintln!("usage: instructions session|sharded|worker FORM COUNT");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn session(mut pair: Pair, form: Form, reply: &[u8], count: u64) {
    let command = form.command();
    for _ in 0..count {
        pair.exchange(black_box(&command), black_box(reply));
    }
    assert_eq!(pair.to_client, form.reply());
}

fn worker(form: Form, count: u64) {
    let loopback = Loopback::start(|| {});
    let mut client = loopback.client();
    let (command, reply) = (form.command(), form.reply());
    for _ in 0..count {
        client.exchange(&command, &reply);
    }
}
