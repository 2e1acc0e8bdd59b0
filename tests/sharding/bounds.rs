//! Limits on the time and the rows of statements that several shards are asked: all of it is ended, wherever it runs.

use crate::Stage;
use crate::common::{Bed, Kind, Node, Reply, Wire, eventually};

const LIMITS: &str = "{ statement_timeout = \"1s\", result_rows = 6 }";

fn assert_timed_out(bed: &Bed, reply: &Reply) {
    let code = match bed.kind {
        Kind::MySql => 3024,
        Kind::MariaDb => 1969,
    };
    let (told, _, text) = reply.error().expect("it is ended");
    assert_eq!(told, code, "{text}");
    assert!(
        text.contains("limits.statement_timeout of account \"plain\""),
        "{text}"
    );
}

fn assert_too_many(reply: &Reply) {
    let (code, _, text) = reply.error().expect("it is ended");
    assert_eq!(code, 1105, "{text}");
    assert!(
        text.contains("more than 6 rows (limits.result_rows"),
        "{text}"
    );
}

/// What somebody waits for on a server, with this in its text.
fn waits(root: &mut Wire, word: &str) -> bool {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Sleep' AND info LIKE '%{word}%' AND info NOT LIKE '%processlist%'"
    );
    root.query(&sql).cell() != "0"
}

#[test]
fn a_read_of_several_groups_has_one_time() {
    for bed in Bed::both() {
        let stage = Stage::limited(&bed, LIMITS);
        let mut client = stage.client();
        let mut root = bed.root(Node::Second);
        let mut locker = bed.root(Node::Second);
        let statement = client.prepare("SELECT uid FROM ord WHERE amt > ?");
        for _ in 0..2 {
            locker.ok(&format!("LOCK TABLES {}_b.ord WRITE", stage.schema));
            assert_timed_out(&bed, &client.query("SELECT uid FROM ord"));
            assert_timed_out(&bed, &client.execute(&statement, &[0.into()]));
            eventually("nobody waits any more", || !waits(&mut root, "uid"));
            locker.ok("UNLOCK TABLES");
            assert_eq!(client.query("SELECT uid FROM ord").rows().len(), 6);
            let rows = client.execute(&statement, &[0.into()]).binary_rows();
            assert_eq!(rows.len(), 6);
        }
    }
}

/// In a transaction the shards of one server are asked one after the other, over the session's own connection, and have one time together.
#[test]
fn shards_of_one_server_have_one_time() {
    for bed in Bed::both() {
        let stage = Stage::limited(&bed, LIMITS);
        let mut client = stage.client();
        client.ok("INSERT INTO log (id, s) VALUES (0, 'row'), (1, 'row')");
        let mut locker = bed.root(Node::Primary);
        client.ok("BEGIN");
        client.ok("INSERT INTO log (id, s) VALUES (4, 'kept')");
        locker.ok(&format!("LOCK TABLES {}.log_1 WRITE", stage.schema));
        let reply = client.query("SELECT * FROM log WHERE id IN (0, 1)");
        assert_timed_out(&bed, &reply);
        // So have the parts of a write, of which none is done.
        let reply = client.query("UPDATE log SET s = 'new' WHERE id IN (0, 1)");
        assert_timed_out(&bed, &reply);
        locker.ok("UNLOCK TABLES");
        let rows = client
            .query("SELECT s FROM log WHERE id IN (0, 1, 4)")
            .rows();
        let mut texts: Vec<_> = rows.into_iter().flatten().flatten().collect();
        texts.sort_unstable();
        assert_eq!(texts, ["kept", "row", "row"]);
        client.ok("COMMIT");
        let sql = "SELECT s FROM log WHERE id = 4";
        assert_eq!(client.query(sql).cell(), "kept");
    }
}

#[test]
fn a_write_to_several_groups_is_done_in_time_or_not_at_all() {
    for bed in Bed::both() {
        let stage = Stage::limited(&bed, LIMITS);
        let mut client = stage.client();
        let mut locker = bed.root(Node::Second);
        let schema = format!("{}_b", stage.schema);
        for _ in 0..2 {
            locker.ok("BEGIN");
            locker.ok(&format!("UPDATE {schema}.ord SET n = 7 WHERE uid = 3"));
            let reply = client.query("UPDATE ord SET amt = 70");
            assert_timed_out(&bed, &reply);
            locker.ok("ROLLBACK");
            let of_group = |node, schema: &str| {
                let sql = format!("SELECT COUNT(*) FROM {schema}.ord WHERE amt = 70");
                bed.root(node).query(&sql).cell()
            };
            assert_eq!(of_group(Node::Primary, stage.schema.name()), "0");
            assert_eq!(of_group(Node::Second, &schema), "0");
            for node in [Node::Primary, Node::Second] {
                eventually("no branch is left", || {
                    bed.root(node).query("XA RECOVER").rows().is_empty()
                });
            }
        }
        client.ok("UPDATE ord SET amt = 71");
    }
}

/// The rows of all shards count together.
#[test]
fn a_result_of_several_shards_has_so_many_rows() {
    for bed in Bed::both() {
        let stage = Stage::limited(&bed, LIMITS);
        let mut client = stage.client();
        let values = |ids: &[u32]| {
            let rows: Vec<String> = ids.iter().map(|id| format!("({id}, 'row')")).collect();
            format!("INSERT INTO log (id, s) VALUES {}", rows.join(", "))
        };
        client.ok(&values(&[0, 1, 2, 3, 4, 5]));
        assert_eq!(client.query("SELECT * FROM log").rows().len(), 6);
        client.ok(&values(&[8]));
        for _ in 0..2 {
            assert_too_many(&client.query("SELECT * FROM log"));
            assert_eq!(client.query("SELECT * FROM log LIMIT 6").rows().len(), 6);
        }
        // The same over the session's own connection.
        client.ok(&values(&[9, 12]));
        client.ok("BEGIN");
        client.ok("UPDATE log SET s = 'mine' WHERE id = 0");
        let own = |more: &str| format!("SELECT * FROM log WHERE id IN (0, 1, 4, 5, 8, 9{more})");
        assert_eq!(client.query(&own("")).rows().len(), 6);
        assert_too_many(&client.query(&own(", 12")));
        assert_eq!(client.query(&own("")).rows().len(), 6);
        client.ok("COMMIT");
        assert_eq!(
            client.query("SELECT s FROM log WHERE id = 0").cell(),
            "mine"
        );
    }
}
