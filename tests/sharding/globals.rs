//! Global tables: that every group has them, alike, is looked at and told.

use crate::Stage;
use crate::common::{Bed, Login, Node, Wire, eventually};

#[test]
fn what_is_not_alike_in_all_groups_is_told() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let mut second = bed.root(Node::Second);
        let table = format!("{}_b.zone", stage.schema);
        let name = format!("global table {}.zone", stage.schema);
        second.ok(&format!("ALTER TABLE {table} MODIFY name VARCHAR(41)"));
        stage.atlas.signal("HUP");
        stage.atlas.wait_log(&format!(
            "{name} is defined otherwise in group s1 than in group main: column 2 is `name` varchar(40) there and `name` varchar(41) here"
        ));
        second.ok(&format!(
            "ALTER TABLE {table} MODIFY name VARCHAR(40), ADD more INT"
        ));
        stage.atlas.signal("HUP");
        stage
            .atlas
            .wait_log("column 3 is none there and `more` int");
        second.ok(&format!("ALTER TABLE {table} DROP more"));
        stage.atlas.signal("HUP");
        stage
            .atlas
            .wait_log("all 1 global tables are in every group, and alike");
        second.ok(&format!("RENAME TABLE {table} TO {table}_gone"));
        stage.atlas.signal("HUP");
        stage
            .atlas
            .wait_log(&format!("{name} is not in group s1, or"));
        second.ok(&format!("RENAME TABLE {table}_gone TO {table}"));
    }
}

/// A join with one is answered by the group at hand, also within a transaction that is there.
#[test]
fn they_are_read_at_hand() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        bed.root(Node::Second).ok(&format!(
            "UPDATE {}_b.zone SET name = 'here' WHERE id = 1",
            stage.schema
        ));
        let join = "SELECT z.name FROM ord o JOIN zone z ON z.id = 1 WHERE o.uid = ";
        let mut client = stage.client();
        assert_eq!(client.query(&format!("{join}1")).cell(), "here");
        assert_eq!(client.query(&format!("{join}2")).cell(), "one");
        client.ok("BEGIN");
        client.ok("UPDATE ord SET amt = 1 WHERE uid = 1");
        assert_eq!(
            client.query("SELECT name FROM zone WHERE id = 1").cell(),
            "here"
        );
        assert_eq!(client.query(&format!("{join}3")).cell(), "here");
        let qualified = format!("SELECT name FROM {}.zone WHERE id = 1", stage.schema);
        assert_eq!(client.query(&qualified).cell(), "here");
        let join = format!(
            "SELECT z.name FROM ord o JOIN {}.zone z ON z.id = 1 WHERE o.uid = 3",
            stage.schema
        );
        assert_eq!(client.query(&join).cell(), "here");
        client.ok("ROLLBACK");
        let mut fresh = stage.client();
        assert_eq!(fresh.query(&qualified).cell(), "one");
        let statement = fresh.prepare("SELECT name FROM zone WHERE id = ?");
        let names = |fresh: &mut Wire| {
            let reply = fresh.execute(&statement, &[crate::common::Param::Int(1)]);
            reply.assert_ok().binary_rows()[0][0].clone().unwrap()
        };
        assert_eq!(names(&mut fresh), b"\x03one");
        fresh.ok("BEGIN");
        fresh.ok("UPDATE ord SET amt = 1 WHERE uid = 1");
        assert_eq!(names(&mut fresh), b"\x04here");
        fresh.ok("ROLLBACK");
        for sql in [
            "UPDATE zone SET name = 'x'",
            "INSERT INTO zone VALUES (3, 'three')",
            "DELETE FROM zone",
        ] {
            assert_eq!(client.query(sql).error_code(), 1105, "{sql}");
        }
        let mut second = bed.root(Node::Second);
        let rows = format!("SELECT COUNT(*) FROM {}_b.zone", stage.schema);
        assert_eq!(second.query(&rows).cell(), "2");
        eventually("the replicas have it all", || {
            let login = Login::plain().schema(&stage.schema);
            let mut other = Wire::connect(stage.atlas.address(), &login);
            other.query("SELECT COUNT(*) FROM zone").cell() == "2"
        });
    }
}
