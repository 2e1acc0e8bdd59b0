//! Sessions that end themselves: KILL of one's own connection, COMMIT RELEASE and what comes to either unseen. The client is told what a
//! server tells it, byte for byte, and then its connection ends; who shares the server connections with it notices nothing.

mod common;

use common::{Atlas, Bed, Kind, Login, Node, Param, Schema, Wire, assert_same, config_for};

/// How the last one is said.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Text,
    Prepared,
    /// COM_PROCESS_KILL of the own id.
    Command,
}

/// What is said before, what is said last, how, and on MariaDB only. `{id}` is the connection's own.
type Case = (&'static [&'static str], &'static str, Form, bool);

use Form::{Command, Prepared, Text};

const ENDS: [Case; 35] = [
    (&[], "KILL CONNECTION_ID()", Text, false),
    (&[], "KILL CONNECTION CONNECTION_ID()", Text, false),
    (&[], "kill {id}", Text, false),
    (&[], "KILL HARD CONNECTION_ID()", Text, true),
    (&[], "KILL SOFT CONNECTION {id}", Text, true),
    (&[], "KILL 4 + {id} - 4", Text, false),
    (&[], "KILL (SELECT CONNECTION_ID())", Text, false),
    (&[], "KILL (SELECT {id})", Text, false),
    (&["SET @k = {id}"], "KILL @k", Text, false),
    (&["SET @k = CONNECTION_ID()"], "KILL @k", Text, false),
    (&[], "KILL CONNECTION_ID()", Prepared, false),
    (&[], "KILL {id}", Prepared, false),
    (&[], "KILL ?", Prepared, true),
    (&[], "", Command, true),
    (&[], "EXECUTE IMMEDIATE 'KILL CONNECTION_ID()'", Text, true),
    (&[], "EXECUTE IMMEDIATE 'KILL {id}'", Text, true),
    (&["PREPARE s FROM 'KILL {id}'"], "EXECUTE s", Text, false),
    (&[], "KILL CONNECTION_ID(); SELECT 1", Text, false),
    (&[], "SELECT 1; KILL CONNECTION_ID()", Text, false),
    (&[], "CALL kills()", Text, false),
    (&[], "CALL releases()", Text, false),
    (
        &[],
        "BEGIN NOT ATOMIC KILL CONNECTION_ID(); SELECT 1; END",
        Text,
        true,
    ),
    (
        &["BEGIN", "INSERT INTO t VALUES (9)"],
        "KILL CONNECTION_ID()",
        Text,
        false,
    ),
    (&[], "COMMIT RELEASE", Text, false),
    (&["BEGIN"], "ROLLBACK AND NO CHAIN RELEASE", Prepared, false),
    (&[], "COMMIT RELEASE; SELECT 2", Text, false),
    (&[], "SELECT 1; COMMIT RELEASE", Text, false),
    (&[], "SELECT 1; commit release; SELECT 2", Text, false),
    (&[], "EXECUTE IMMEDIATE 'COMMIT RELEASE'", Text, true),
    (
        &["PREPARE s FROM 'ROLLBACK RELEASE'"],
        "EXECUTE s",
        Text,
        false,
    ),
    (&["SET completion_type = 2"], "COMMIT", Text, false),
    (&["SET completion_type = 1 + 1"], "COMMIT", Text, false),
    (
        &["SET completion_type = 'RELEASE'"],
        "ROLLBACK",
        Prepared,
        false,
    ),
    (&[], "SET completion_type = 2; COMMIT", Text, false),
    (
        &[],
        "SET STATEMENT completion_type = 2 FOR COMMIT",
        Text,
        true,
    ),
];

/// After these a session goes on.
const GOES_ON: [(&[&str], &str, Form, bool); 14] = [
    (&[], "KILL QUERY CONNECTION_ID()", Text, false),
    (&[], "KILL QUERY {id}", Text, false),
    (&[], "KILL SOFT QUERY CONNECTION_ID()", Text, true),
    (&[], "KILL QUERY CONNECTION_ID()", Prepared, false),
    (&[], "KILL QUERY ?", Prepared, true),
    (&["SET @k = {id}"], "KILL QUERY @k", Text, false),
    (
        &["PREPARE s FROM 'KILL QUERY {id}'"],
        "EXECUTE s",
        Text,
        false,
    ),
    (&[], "CALL kills_query()", Text, false),
    (&[], "KILL 99999999", Text, false),
    (
        &["SET completion_type = 2"],
        "COMMIT NO RELEASE",
        Text,
        false,
    ),
    (&["SET completion_type = 'CHAIN'"], "COMMIT", Text, false),
    (&[], "SELECT 1; SELECT 'release'", Text, false),
    (
        &["SAVEPOINT a"],
        "RELEASE SAVEPOINT a; SELECT 5",
        Text,
        false,
    ),
    (
        &["SET STATEMENT completion_type = 2 FOR SELECT 1"],
        "COMMIT",
        Text,
        true,
    ),
];

fn with_routines(bed: &Bed) -> Schema {
    let schema = bed.schema();
    let mut maker = Wire::connect(bed.address(Node::Primary), &Login::app().schema(&schema));
    for sql in [
        "CREATE TABLE t(a INT PRIMARY KEY)",
        "CREATE PROCEDURE kills() BEGIN KILL CONNECTION_ID(); SELECT 5; END",
        "CREATE PROCEDURE kills_query() BEGIN KILL QUERY CONNECTION_ID(); SELECT 5; END",
        "CREATE PROCEDURE releases() BEGIN COMMIT RELEASE; SELECT 5; END",
    ] {
        maker.ok(sql);
    }
    bed.wait_replicas();
    schema
}

/// What the client sends last, behind all that comes before.
fn prelude(client: &mut Wire, (before, last, form, _): Case) -> Vec<u8> {
    let of = |client: &Wire, sql: &str| sql.replace("{id}", &client.id.to_string());
    for sql in before {
        let sql = of(client, sql);
        client.ok(&sql);
    }
    let last = of(client, last);
    match form {
        Text => client.query_payload(last.as_bytes()),
        Prepared => {
            let statement = client.prepare(&last);
            let id = [Param::from(i64::from(client.id))];
            let params = &id[..usize::from(statement.params)];
            client.execute_payload(statement.id, 0, params, true)
        }
        Command => [&[0x0c][..], &client.id.to_le_bytes()].concat(),
    }
}

fn cases<'a>(bed: &Bed, cases: &'a [Case]) -> impl Iterator<Item = &'a Case> {
    let is_mariadb = bed.kind == Kind::MariaDb;
    cases.iter().filter(move |case| is_mariadb || !case.3)
}

/// One connection for everybody, or a few.
fn pools() -> [&'static str; 2] {
    [
        "[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"10s\"\n",
        "",
    ]
}

#[test]
fn a_session_that_ends_itself_is_over() {
    for bed in Bed::both() {
        let schema = with_routines(&bed);
        for pool in pools() {
            let atlas = Atlas::start(config_for(&bed).append(pool));
            let login = Login::app().schema(&schema);
            let mut other = Wire::connect(atlas.address(), &login);
            for case in cases(&bed, &ENDS) {
                let said = [bed.address(Node::Primary), atlas.address()].map(|address| {
                    let mut client = Wire::connect(address, &login);
                    let payload = prelude(&mut client, *case);
                    client.send(&payload);
                    client.read_to_close()
                });
                let [direct, through] = said;
                assert_eq!(
                    through.escape_ascii().to_string(),
                    direct.escape_ascii().to_string(),
                    "{case:?}"
                );
                assert_eq!(other.query("SELECT 7 /*master*/").cell(), "7", "{case:?}");
                assert_eq!(
                    other.query("SELECT COUNT(*) FROM t").cell(),
                    "0",
                    "{case:?}"
                );
            }
        }
    }
}

#[test]
fn a_session_that_ends_its_statement_goes_on() {
    for bed in Bed::both() {
        let schema = with_routines(&bed);
        for pool in pools() {
            let atlas = Atlas::start(config_for(&bed).append(pool));
            let login = Login::app().schema(&schema);
            let mut other = Wire::connect(atlas.address(), &login);
            for case in cases(&bed, &GOES_ON) {
                let mut direct = Wire::connect(bed.address(Node::Primary), &login);
                let mut client = Wire::connect(atlas.address(), &login);
                let payloads = [prelude(&mut direct, *case), prelude(&mut client, *case)];
                let wanted = direct.command(&payloads[0]);
                assert_same(
                    &format!("{case:?}"),
                    &wanted,
                    &client.command(&payloads[1]),
                    &[],
                );
                for sql in [
                    "SELECT 7 /*master*/",
                    "SELECT 8",
                    "SELECT ROW_COUNT(), FOUND_ROWS()",
                ] {
                    let what = format!("{sql} behind {case:?}");
                    assert_same(&what, &direct.query(sql), &client.query(sql), &[]);
                    // Nothing ties the connection any more, but for what was prepared by name, a procedure that failed, and a chained
                    // transaction.
                    let ties = |sql: &&str| {
                        let words = ["PREPARE", "CALL", "CHAIN"];
                        words.iter().any(|word| sql.contains(word))
                    };
                    if !case.0.iter().chain([&case.1]).any(ties) {
                        let reply = other.query("SELECT 1 /*master*/");
                        assert_eq!(reply.error(), None, "{what}");
                    }
                }
            }
        }
    }
}

/// A server that was told to end the connection of somebody who shares it says so to that one, and to nobody else.
#[test]
fn a_connection_that_is_killed_ends_its_session() {
    for bed in Bed::both() {
        let schema = with_routines(&bed);
        let atlas = Atlas::start(config_for(&bed));
        let login = Login::app().schema(&schema);
        let mut client = Wire::connect(atlas.address(), &login);
        let sleep = "DO SLEEP(61)";
        let payload = client.query_payload(sleep.as_bytes());
        client.send(&payload);
        let find = || {
            let rows = bed.root(Node::Primary).query("SHOW PROCESSLIST").rows();
            let is_it = |row: &Vec<Option<String>>| {
                row[3].as_deref() == Some(schema.name()) && row[7].as_deref() == Some(sleep)
            };
            rows.into_iter().find(is_it).and_then(|row| row[0].clone())
        };
        let mut id = None;
        common::eventually("it sleeps", || {
            id = find();
            id.is_some()
        });
        let id = id.expect("an id");
        bed.root(Node::Primary).ok(&format!("KILL {id}"));
        // What a server has to say of it, if anything, and the end.
        client.read_to_close();
        let mut next = Wire::connect(atlas.address(), &login);
        assert_eq!(next.query("SELECT 7 /*master*/").cell(), "7");
    }
}
