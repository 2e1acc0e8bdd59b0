//! KILL of statements that ask several shards.

use crate::Stage;
use crate::common::{Bed, Expect, Node, eventually};

/// In a transaction the shards of one server are asked one after the other, over the session's own connection.
#[test]
fn kill_query_reaches_the_shard_that_is_asked() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut client = stage.client();
        for id in 0..4 {
            client.ok(&format!("INSERT INTO log (id, s) VALUES ({id}, 'row')"));
        }
        let mut locker = bed.root(Node::Primary);
        locker.ok(&format!("LOCK TABLES {}.log_1 WRITE", stage.schema));
        client.ok("BEGIN");
        let id = client.id;
        client.send(&client.query_payload(b"SELECT * FROM log WHERE id IN (0, 1)"));
        let mut root = bed.root(Node::Primary);
        let mut waits = || {
            let sql = format!(
                "SELECT COUNT(*) FROM information_schema.processlist WHERE db = '{}' AND state LIKE 'Waiting for table metadata lock' AND info LIKE '%log_1%'",
                stage.schema
            );
            root.query(&sql).cell() != "0"
        };
        eventually("the second one waits for the lock", &mut waits);
        stage.client().ok(&format!("KILL QUERY {id}"));
        let reply = client.reply(Expect::Text);
        assert_eq!(reply.error_code(), 1317, "{:?}", reply.error());
        eventually("it waits no more", || !waits());
        locker.ok("UNLOCK TABLES");
        let rows = client.query("SELECT * FROM log WHERE id IN (0, 1)").rows();
        assert_eq!(rows.len(), 2);
        client.ok("COMMIT");
    }
}
