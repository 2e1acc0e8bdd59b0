//! Bytes that arrive in pieces: the log-in of a client, and what servers say.

use std::time::Duration;

use ::atlas::wire::Capabilities;

use crate::commands::command_tour;
use crate::common::{Kind, Login, Node, Pieces, Relay, Wire};
use crate::differences::Differences;
use crate::prepared::prepared_tour;
use crate::queries::text_tour;
use crate::script::Script;
use crate::stage::Stage;
use crate::{KINDS, TABLES, on_both};

/// The log-in in pieces of every size, which cuts it at every byte.
#[test]
fn log_ins_cut_at_every_byte() {
    on_both(&[], |stage, differences| {
        let connect = || Wire::connect(stage.bed.address(Node::Primary), &Login::app());
        // MySQL asks for more from an account whose password it has not seen yet.
        connect();
        let direct = connect();
        for size in 1..150 {
            let pieces = Some((size, Duration::from_micros(200)));
            let wire = Wire::greet(stage.atlas.address()).expect("a greeting");
            let wire = wire.in_pieces(pieces).log_in(&Login::app());
            let mut wire = wire.expect("a log-in").in_pieces(None);
            if wire.login_packets != direct.login_packets {
                let found = format!("{:?}, not {:?}", wire.login_packets, direct.login_packets);
                differences.add(&format!("pieces of {size}"), found);
            }
            assert_eq!(wire.query("SELECT 1").cell(), "1");
        }
    });
}

/// Runs scripts through Atlas in front of servers whose replies come in pieces.
fn behind_relays(kind: Kind, size: usize, scripts: &[Script], differences: &mut Differences) {
    let pieces = Pieces {
        size,
        pause: Duration::from_micros(20),
    };
    let mut relays = Vec::new();
    let stage = Stage::with_config(kind, TABLES, |bed, config| {
        for node in [Node::Primary, Node::Replica1, Node::Replica2] {
            relays.push(Relay::start(bed.address(node), pieces));
        }
        let addresses: Vec<_> = relays.iter().map(Relay::address).collect();
        // Such lines are slow: what is checked is not how fast they answer.
        config
            .append("[monitor]\nuser = \"app\"\npassword = \"app-pw\"\ntimeout = \"20s\"")
            .group(&format!("primary = \"{}\"", addresses[0]))
            .group(&format!(
                "replicas = [{{ address = \"{}\" }}, {{ address = \"{}\" }}]",
                addresses[1], addresses[2]
            ))
    });
    let usual = Login::app();
    let eof = usual.clone().without(Capabilities::DEPRECATE_EOF);
    for (name, login) in [("usual", usual), ("EOF", eof)] {
        for script in scripts {
            let what = format!("{name}, pieces of {size}");
            stage.compare(&what, &login, script, differences);
        }
    }
}

#[test]
fn replies_in_pieces() {
    let mut differences = Differences::default();
    for kind in KINDS {
        let small = [prepared_tour(kind), command_tour()];
        behind_relays(kind, 1, &small, &mut differences);
        behind_relays(kind, 6, &small, &mut differences);
        behind_relays(kind, 13, &[text_tour()], &mut differences);
    }
    differences.report();
}
