//! The list of all commands. The first sixteen are the original's, in its words.

use super::Table;

/// Template and description.
#[rustfmt::skip]
const COMMANDS: &[(&str, &str)] = &[
    ("SELECT * FROM help", "shows this help"),
    ("SELECT * FROM backends", "lists the backends and their state"),
    ("SET OFFLINE $backend_id", "offline backend server, $backend_id is backend_ndx's id, or its address: no new work, running statements and transactions end"),
    ("SET ONLINE $backend_id", "online backend server, $backend_id is backend_ndx's id, or its address"),
    ("ADD MASTER $backend", "example: \"add master 127.0.0.1:3306\": in place of a primary that is offline; otherwise see SWITCH PRIMARY"),
    ("ADD SLAVE $backend", "example: \"add slave 127.0.0.1:3306@2\": the weight behind @ may be left out"),
    ("REMOVE BACKEND $backend_id", "example: \"remove backend 1\": statements and transactions on it end first"),
    ("SELECT * FROM clients", "lists the clients"),
    ("ADD CLIENT $client", "example: \"add client 192.168.1.2\", \"add client 192.168.1\", \"add client 10.0.0.0/8\""),
    ("REMOVE CLIENT $client", "example: \"remove client 192.168.1.2\""),
    ("SELECT * FROM pwds", "lists the pwds, without anything that could be turned back into a password"),
    ("ADD PWD $pwd", "example: \"add pwd user:raw_password\""),
    ("ADD ENPWD $pwd", "example: \"add enpwd user:encrypted_password\": an enc:v1: value, or one of the original's"),
    ("REMOVE PWD $pwd", "example: \"remove pwd user\": its sessions end as they become free"),
    ("SAVE CONFIG", "saves backends, weights, clients and pwds to the configuration file; the previous one is kept beside it"),
    ("SELECT VERSION", "displays the version of Atlas"),
    ("ADD GMASTER $group $backend", "as ADD MASTER, in the group of this name"),
    ("ADD GSLAVE $group $backend", "as ADD SLAVE, in the group of this name"),
    ("REMOVE GBACKEND $group $backend_id", "as REMOVE BACKEND, in the group of this name"),
    ("ADD GPWD $group $pwd", "as ADD PWD, for an account whose unsharded tables are in the group of this name"),
    ("ADD GENPWD $group $pwd", "as ADD ENPWD, in the same way"),
    ("SHOW BACKENDS", "the servers with group, role, state, weight, lag and connections"),
    ("SHOW POOLS", "server connections of each server and who waits for them"),
    ("SHOW SESSIONS", "the clients and what they do"),
    ("SHOW PINS", "sessions that keep their server connection: why, since when, what ends it"),
    ("SHOW DIGESTS", "kinds of statements with how often they ran and how long they took"),
    ("SHOW ROUTES", "how often statements went where, by reason"),
    ("SHOW ACCOUNTS", "accounts: their clients, statements, errors and limits, and what might be done about them"),
    ("SHOW RULES", "the rules in force, and how many statements each was the first for"),
    ("SHOW TABLES", "the sharded tables, and those that every group has"),
    ("SHOW EVENTS", "what was changed and what happened: when, who, what"),
    ("CHECK BACKENDS", "settings of the servers that do not fit Atlas's or each other's"),
    ("CHECK CONNECTIONS", "connections to the servers that are not this instance's"),
    ("EXPLAIN ROUTE [FOR $user] $statement", "where a statement would go, and why; it is not run"),
    ("SWITCH PRIMARY $group TO $address", "makes a server the primary of its group, at once and everywhere"),
    ("SET WEIGHT $backend_id $weight", "changes a replica's share of the reads"),
    ("KILL [QUERY] $id", "ends a client of this instance, or its statement"),
    ("RELOAD CONFIG", "reads the configuration file again; a bad file changes nothing"),
    ("RELOAD CONFIG FORCE", "the same where rows of sharded tables were moved by hand"),
    ("DRAIN", "stops: no new clients, open transactions may end, then the process ends"),
    ("SHUTDOWN [IMMEDIATE]", "the same; IMMEDIATE waits for nothing"),
];

/// `SELECT * FROM help`.
#[must_use]
pub fn help() -> Table {
    let mut table = Table::new(["command", "description"]);
    for (command, description) in COMMANDS {
        table.push([(*command).to_owned(), (*description).to_owned()]);
    }
    table
}

/// The command that starts most like this text.
pub(super) fn nearest(text: &str) -> Option<&'static str> {
    let wanted: Vec<String> = text
        .split_whitespace()
        .take(4)
        .map(str::to_ascii_uppercase)
        .collect();
    let common = |template: &str| {
        let words = template.split_whitespace().map(str::to_ascii_uppercase);
        let starts = |word: &String| {
            wanted
                .first()
                .is_some_and(|first| first.get(..3) == word.get(..3))
        };
        if !words.clone().next().as_ref().is_some_and(starts) {
            return 0;
        }
        words
            .zip(&wanted)
            .map(|(a, b)| match (a == *b, a.get(..3) == b.get(..3)) {
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => 0,
            })
            .sum::<u32>()
    };
    COMMANDS
        .iter()
        .map(|(template, _)| (common(template), *template))
        .filter(|(score, _)| *score > 0)
        // Of equals the first.
        .rev()
        .max_by_key(|(score, _)| *score)
        .map(|(_, template)| template)
}
