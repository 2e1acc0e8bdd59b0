//! The transparency test: the same script of commands, sent to the primary and sent through Atlas, gives the same packets, byte for byte,
//! on both servers. What may differ is named by a mask at the step, with the reason.
//!
//! Plain reads go to replicas through Atlas, which must not be seen in the packets and is looked up in the servers' logs.
//!
//! What differs by decision, or because a session has two server connections, and is not compared here:
//! - connection ids and nonces; abilities that Atlas does not offer: compression, TLS where it is not configured, MariaDB's caching of column
//!   definitions where reads are split;
//! - who asks for the password: Atlas, by the plugin of its configuration (here the server's own);
//! - replication commands (COM_BINLOG_DUMP and kin), which are refused as to an account without the right to them, and KILL of a client
//!   of another account, who is unknown;
//! - a write that asks about a read which a replica answered (`SET @n = FOUND_ROWS()`, GET DIAGNOSTICS): refused, see `state`;
//! - MySQL repeats the warnings of the statement before in the answers to commands that are no statements, and adds their errors to them;
//!   when that statement was a read on a replica, the primary begins anew;
//! - MariaDB leaves the warnings of the statement before in place when a statement uses no table and has none of its own; when the one
//!   was a read on a replica and the other runs on the primary, they are gone;
//! - MariaDB describes the columns of a prepared statement that are made of parameters by the types of earlier executions too;
//! - `completion_type = RELEASE` ends the server connection, not the client's (COMMIT RELEASE does);
//! - a COM_CHANGE_USER that cannot be read: MariaDB sends another greeting, Atlas MySQL's error.

#[path = "../common/mod.rs"]
mod common;

mod arrival;
mod capabilities;
mod commands;
mod delivery;
mod differences;
mod files;
mod large;
mod places;
mod prepared;
mod queries;
mod rest;
mod script;
mod settings;
mod stage;
mod state;

use common::{Kind, Login};
use differences::Differences;
use script::Script;
use stage::Stage;

const KINDS: [Kind; 2] = [Kind::MariaDb, Kind::MySql];

/// Does something on both servers, and fails with all the differences that were found.
fn on_both(setup: &[&str], mut test: impl FnMut(&Stage, &mut Differences)) {
    let mut differences = Differences::default();
    for kind in KINDS {
        test(&Stage::new(kind, setup), &mut differences);
    }
    differences.report();
}

/// Runs a script on both servers under every set of capabilities.
fn under_every_set(setup: &[&str], script: impl Fn(Kind) -> Script) {
    on_both(setup, |stage, differences| {
        let script = script(stage.bed.kind);
        for (name, login) in capabilities::sets(stage) {
            stage.compare(&name, &login, &script, differences);
        }
    });
}

/// Runs scripts on both servers under the usual capabilities.
fn compare_scripts(scripts: &[(&str, Script)]) {
    on_both(TABLES, |stage, differences| {
        for (name, script) in scripts {
            stage.compare(name, &Login::app(), script, differences);
        }
    });
}

/// The data of most scripts.
const TABLES: &[&str] = &[
    "CREATE TABLE t(id INT AUTO_INCREMENT PRIMARY KEY, v INT, s VARCHAR(40), KEY(v))",
    "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, NULL, 'c')",
    "CREATE TABLE n3(i INT)",
    "INSERT INTO n3 VALUES (1), (2), (3)",
    "CREATE TABLE u(id INT PRIMARY KEY)",
    "CREATE PROCEDURE two() BEGIN SELECT i FROM n3; SELECT s FROM t WHERE id < 3; END",
    "CREATE PROCEDURE out1(OUT x INT, INOUT y VARCHAR(20)) BEGIN SELECT 5, CONCAT(y, '!') INTO x, y; SELECT i FROM n3; END",
    "CREATE PROCEDURE late() BEGIN SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'too late'; END",
];
