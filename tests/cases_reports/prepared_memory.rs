//! What statements that stay prepared on a shared connection take of its server's memory, which MariaDB counts for each connection, and
//! which a client may limit.

use super::common::{Atlas, Bed, Kind, Login, Statement, Wire, config_for};

const COUNT: usize = 150;
/// What a connection's needs may differ by.
const LITTLE: u64 = 200_000;
/// Less than as many statements take, more than a question needs.
const MUCH: u64 = 2_000_000;

fn stage() -> (Bed, Atlas) {
    let bed = Bed::of(Kind::MariaDb);
    let pool = "[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"10s\"\n";
    let atlas = Atlas::start(config_for(&bed).append(pool));
    (bed, atlas)
}

fn memory(client: &mut Wire) -> u64 {
    let sql = "SELECT variable_value FROM information_schema.session_status \
               WHERE variable_name = 'memory_used' /*master*/";
    let mut ask = || client.query(sql).cell().parse().expect("a number");
    // The table's own has been taken by then.
    let _: u64 = ask();
    ask()
}

fn prepare(client: &mut Wire, n: usize) -> Statement {
    let statement = client.prepare(&format!("SELECT CONCAT('a', {n}) /*master*/"));
    client.execute(&statement, &[]).assert_ok();
    statement
}

/// The client's connection has been given back by the time when it closes the statement.
#[test]
fn what_is_closed_takes_none() {
    let (_bed, atlas) = stage();
    let mut client = Wire::connect(atlas.address(), &Login::app());
    let before = memory(&mut client);
    for n in 0..COUNT {
        let statement = prepare(&mut client, n);
        client.close_statement(&statement);
    }
    let after = memory(&mut client);
    assert!(after < before + LITTLE, "{before}, {after}");
}

#[test]
fn those_of_others_do_not_count_against_a_limit() {
    for begin in ["DO 1", "BEGIN"] {
        let (_bed, atlas) = stage();
        let mut fresh = Wire::connect(atlas.address(), &Login::app());
        let before = memory(&mut fresh);
        let mut other = Wire::connect(atlas.address(), &Login::app());
        let statements: Vec<_> = (0..COUNT).map(|n| prepare(&mut other, n)).collect();
        let now = memory(&mut other);
        assert!(now > before + MUCH, "they count: {before}, {now}");
        let mut client = Wire::connect(atlas.address(), &Login::app());
        let own = prepare(&mut client, COUNT);
        client.ok(begin);
        client.ok(&format!("SET max_session_mem_used = {}", before + MUCH));
        let left = memory(&mut client);
        assert!(left < before + LITTLE, "{begin}: {before}, {left}");
        client.execute(&own, &[]).assert_ok();
        client.ok("COMMIT");
        for statement in &statements {
            other.execute(statement, &[]).assert_ok();
        }
        let left = memory(&mut client);
        assert!(
            left < before + LITTLE,
            "{begin}, once more: {before}, {left}"
        );
    }
}
