//! Unix sockets on both sides: what does not fit into them waits and arrives, in both directions. Their events are not those of
//! TCP (see `worker::conn`), so that what works over TCP says nothing of them.

mod common;

use std::time::Duration;

use common::*;

/// Far more than a unix socket holds.
const ROWS: usize = 40;
const ROW: usize = 250_000;

fn atlas(bed: &Bed) -> (Atlas, Wire) {
    let atlas = Atlas::start(config_for(bed).unix_sockets(bed));
    let path = atlas.dir().join("atlas.sock");
    let client = Wire::try_connect_unix(&path, &Login::plain()).expect("log in");
    (atlas, client)
}

#[test]
fn a_large_result_reaches_a_slow_reader() {
    for bed in Bed::both() {
        let (_atlas, mut client) = atlas(&bed);
        let row = format!("SELECT REPEAT('x', {ROW})");
        let sql = vec![row; ROWS].join(" UNION ALL ");
        client.send(&client.query_payload(sql.as_bytes()));
        // Sockets and buffers fill up, and Atlas stops reading from the server.
        std::thread::sleep(Duration::from_millis(300));
        let (packets, bytes, last) = client.skim(Expect::Text);
        assert_ne!(last.first(), 0xff, "{last:?}");
        assert!(packets > ROWS && bytes > ROWS * ROW, "{packets} {bytes}");
        // The connection is in order.
        assert_eq!(client.query("SELECT 'after'").cell(), "after");
    }
}

#[test]
fn a_large_command_reaches_a_server() {
    for bed in Bed::both() {
        let (_atlas, mut client) = atlas(&bed);
        for len in [300_000, ROWS * ROW] {
            let sql = format!("SELECT LENGTH('{}')", "x".repeat(len));
            assert_eq!(client.query(&sql).cell(), len.to_string());
            assert_eq!(client.query("SELECT 'after'").cell(), "after");
        }
    }
}
