//! All commands but queries and prepared statements: the connection's own, the administration's, unknown and malformed ones.

use ::atlas::wire::Capabilities;

use crate::capabilities::sets;
use crate::common::{Kind, Login, Mask, Node, Part, Wire};
use crate::delivery::{Delivery, Outcome};
use crate::differences::Differences;
use crate::script::Script;
use crate::stage::Stage;
use crate::{TABLES, on_both};

/// On the primary: MySQL's commands that are no statements add their errors to those of the statement before, which must be the same one.
const HERE: &str = "SELECT i FROM n3 /*master*/";

/// Everything that leaves the connection open and no trace.
pub(crate) fn command_tour() -> Script {
    let mut s = Script::new();
    s.ping();
    // COM_INIT_DB: good, unknown, without a name, with a name that is too long.
    s.named(0x02, "mysql")
        .query("SELECT DATABASE()")
        .read("SELECT DATABASE()");
    s.named(0x02, "{s}").read("SELECT DATABASE(), i FROM n3");
    s.named(0x02, "no_such_schema")
        .query("SHOW WARNINGS")
        .read("SELECT DATABASE()");
    s.named(0x02, "")
        .named(0x02, &"x".repeat(300))
        .read("SELECT i FROM n3");
    s.query("USE mysql")
        .read("SELECT DATABASE()")
        .query("USE {s}");
    // COM_FIELD_LIST.
    for arguments in [
        "t\0",
        "t\0%",
        "t\0s",
        "t\0nothing",
        "no_such\0",
        "\0",
        "t",
        "",
        "t\0s\0rest",
    ] {
        s.named(0x04, arguments);
    }
    // COM_CREATE_DB, COM_DROP_DB of a name that there is, and one that there is not.
    s.named(0x05, "{s}")
        .named(0x06, "{s}_no")
        .named(0x05, "")
        .named(0x06, "");
    // COM_REFRESH: tables, hosts, status, nothing.
    for option in [0x04, 0x08, 0x10, 0x00] {
        s.command(&[0x07, option]);
    }
    s.command(&[0x07]);
    // COM_STATISTICS.
    s.command(&[0x09]).mask(Mask::Digits).mask(Mask::Points);
    // COM_PROCESS_KILL of an id that nobody has; without one.
    s.command(&[0x0c, 0xff, 0xff, 0xff, 0x3f])
        .command(&[0x0c, 1])
        .command(&[0x0c]);
    s.query("KILL 1073741823")
        .query("KILL QUERY 1073741823")
        .query("KILL no_such()");
    // COM_DEBUG writes to the server's log.
    s.command(&[0x0d]).ping();
    // COM_SET_OPTION: several statements on and off, an option that is not there, no option.
    s.query("SELECT 1; SELECT 2");
    s.command(&[0x1b, 0, 0])
        .query("SELECT 1; SELECT 2")
        .query("CALL two()");
    s.command(&[0x1b, 1, 0])
        .query("SELECT 1; SELECT 2")
        .query(HERE);
    s.command(&[0x1b, 7, 0])
        .command(&[0x1b])
        .command(&[0x1b, 0])
        .command(&[0x1b, 0, 0, 9]);
    // What no client may say: COM_SLEEP, COM_CONNECT, COM_TIME, COM_DELAYED_INSERT, COM_CONNECT_OUT, COM_DAEMON, numbers that are not given.
    for command in [
        0x00, 0x0b, 0x0f, 0x10, 0x14, 0x1d, 0x42, 0x7f, 0x80, 0xc0, 0xf9, 0xfb, 0xfc, 0xfd, 0xff,
    ] {
        s.command(&[command]).command(&[command, 1, 2, 3]);
    }
    s.command(&[]).query("SHOW WARNINGS").ping();
    // COM_RESET_CONNECTION.
    s.query("SET @a = 1, sql_mode = '', time_zone = '+03:00'")
        .query("BEGIN");
    s.command(&[0x1f])
        .query("SELECT @a, @@sql_mode, @@time_zone, DATABASE(), @@character_set_client");
    s.read("SELECT @@sql_mode, @@time_zone, @@character_set_client, @@collation_connection, DATABASE()");
    s.command(&[0x1f])
        .command(&[0x1f, 1])
        .query("SHOW WARNINGS");
    s.command(&[0x0e, 1, 2]).read("SELECT 'last'");
    s
}

#[test]
fn commands_under_every_set() {
    let script = command_tour();
    on_both(TABLES, |stage, differences| {
        for (name, login) in sets(stage) {
            // With it every statement on MySQL has a warning, and commands that are no statements repeat those of the statement before,
            // which is elsewhere when that was a read.
            if !(stage.bed.kind == Kind::MySql
                && login.capabilities.contains(Capabilities::NO_SCHEMA))
            {
                stage.compare(&name, &login, &script, differences);
            }
        }
    });
}

/// Each closes the connection, or leaves it open, as the server would.
#[test]
fn commands_that_may_end_the_connection() {
    let (mut scripts, mut of_mysql) = (Vec::new(), Vec::new());
    for (seq, payload) in [
        (1, &b"\x0e"[..]),
        (7, b"\x03SELECT 1"),
        (255, b""),
        (1, b"\x01"),
    ] {
        let mut s = Script::new();
        s.query("SELECT 1").out_of_turn(seq, payload).ping();
        scripts.push(s);
    }
    // COM_CHANGE_USER that cannot be read. MariaDB answers it with a second greeting, which is compared with nothing.
    for payload in [
        &b"\x11"[..],
        b"\x11app",
        b"\x11app\0\xff",
        b"\x11app\0\x01x",
    ] {
        let mut s = Script::new();
        s.out_of_turn(0, payload).ping();
        of_mysql.push(s);
    }
    // COM_QUIT with something behind it, and commands behind COM_QUIT.
    let mut s = Script::new();
    s.command(&[0x01, 1, 2]).ping();
    scripts.push(s);
    on_both(TABLES, |stage, differences| {
        let more = match stage.bed.kind {
            Kind::MariaDb => &[][..],
            Kind::MySql => &of_mysql,
        };
        for (number, script) in scripts.iter().chain(more).enumerate() {
            let what = format!("script {number}");
            stage.compare(&what, &Login::app(), script, differences);
        }
    });
}

/// Commands of MySQL alone.
#[test]
fn commands_that_mariadb_does_not_know() {
    let mut s = Script::new();
    for command in [0x20, 0x21] {
        s.command(&[command]).command(&[command, 1, 2, 3]);
    }
    s.ping();
    let mut differences = Differences::default();
    let stage = Stage::new(Kind::MariaDb, TABLES);
    stage.compare("usual", &Login::app(), &s, &mut differences);
    differences.report();
}

/// COM_CHANGE_USER: the session of before is gone, whoever comes.
#[test]
fn users_change() {
    let state = "SELECT @a, @@sql_mode, @@time_zone, @@autocommit, DATABASE(), CURRENT_USER(), @@character_set_client, @@collation_connection";
    on_both(TABLES, |stage, differences| {
        // Of the accounts whose plugin Atlas has too: it asks for the password itself.
        let other = match stage.bed.kind {
            Kind::MariaDb => Login::plain(),
            Kind::MySql => Login::new("sha", "sha-pw"),
        };
        for account in [&Login::plain(), &Login::app(), &other] {
            // MySQL asks for more from an account whose password it has not seen yet.
            Wire::connect(stage.bed.address(Node::Primary), account);
        }
        let mut s = Script::new();
        s.query("SET @a = 1, sql_mode = '', time_zone = '+03:00'")
            .query("BEGIN");
        let before = s.prepare("SELECT 1");
        s.change_user(&Login::plain(), true)
            .query(state)
            .read(state);
        s.execute(before, &[]).change_user(&other, false);
        s.query(state).read(state).query("SELECT i FROM n3");
        s.change_user(&Login::app().charset(8), true)
            .query(state)
            .read(state);
        s.query("CREATE TEMPORARY TABLE tt(a INT)")
            .change_user(&Login::app(), true);
        s.query("SELECT * FROM tt").read("SELECT i FROM n3").ping();
        for (name, login) in sets(stage) {
            stage.compare(&name, &login, &s, differences);
        }
    });
}

/// COM_PROCESS_INFO: MySQL 9 no longer knows it; MariaDB's answer is about this moment, so only its shape is compared.
#[test]
fn process_lists() {
    let mut s = Script::new();
    s.command(&[0x0a]);
    let shape = |outcomes: Vec<Outcome>| match outcomes.into_iter().next() {
        Some(Outcome::Reply(mut reply)) => {
            reply.packets.retain(|packet| packet.part != Part::Row);
            let parts = reply.packets.into_iter();
            parts
                .map(|packet| (packet.part, packet.payload))
                .collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    on_both(TABLES, |stage, differences| {
        for (name, login) in sets(stage) {
            let direct = shape(stage.run_direct(&login, &s));
            let through = shape(stage.run_through(&login, &s, Delivery::Whole));
            if direct != through {
                differences.add(&name, format!("{direct:?}\n{through:?}"));
            }
        }
    });
}
