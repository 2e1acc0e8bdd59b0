//! `global_tables = "auto"`: tables that every group has are found, and what is not known of a table is not done to it.

use crate::Stage;
use crate::common::{Atlas, Bed, Login, Node, Param, Wire, eventually};

/// What is said of a write to a table that every group has.
const GLOBAL: &str = "a write to a global table";

fn error(client: &mut Wire, sql: &str) -> String {
    let reply = client.query(sql);
    reply.error().map(|error| error.2).unwrap_or_default()
}

fn prepare_error(client: &mut Wire, sql: &str) -> u16 {
    let payload = [&[0x16][..], sql.as_bytes()].concat();
    client.command(&payload).error_code()
}

impl Stage<'_> {
    /// Has `global_tables` be this, by a reload.
    fn say_globals(&self, globals: &str) {
        let path = self.atlas.config_path();
        let text = std::fs::read_to_string(path).unwrap();
        let (before, rest) = text.split_once("global_tables = ").unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        let text = format!("{before}global_tables = {globals}\n{rest}");
        self.atlas.write_config(text);
        self.atlas.signal("HUP");
    }
}

#[test]
fn tables_in_every_group_are_found() {
    for bed in Bed::both() {
        let stage = Stage::with(&bed, "transaction", "global_tables = \"auto\"", "");
        let schema = stage.schema.to_string();
        let mut groups = [
            (bed.root(Node::Primary), schema.clone()),
            (bed.root(Node::Second), format!("{schema}_b")),
        ];
        // It is known before the first client is let in.
        let mut client = stage.client();
        assert!(error(&mut client, "UPDATE zone SET name = 'x'").contains(GLOBAL));
        let found = "found in every group, and global from here on:";
        stage.atlas.wait_log(&format!("{found} {schema}.zone"));
        let (second, there) = &mut groups[1];
        second.ok(&format!(
            "UPDATE {there}.zone SET name = 'here' WHERE id = 1"
        ));
        let join = "SELECT z.name FROM ord o JOIN zone z ON z.id = 1 WHERE o.uid = ";
        assert_eq!(client.query(&format!("{join}1")).cell(), "here");
        assert_eq!(client.query(&format!("{join}2")).cell(), "one");
        // One that only the account's own group has is none, nor is a physical table.
        client.ok("UPDATE misc SET k = 5 WHERE uid = 1");
        client.ok("UPDATE ord SET amt = 5 WHERE uid = 1");

        // New ones, one of them not alike.
        assert_eq!(prepare_error(&mut client, "UPDATE color SET id = ?"), 1146);
        let (first, there) = &mut groups[0];
        first.ok(&format!("CREATE TABLE {there}.late (id INT)"));
        let late = client.prepare("INSERT INTO late VALUES (?)");
        client.execute(&late, &[Param::Int(1)]).assert_ok();
        let (second, there) = &mut groups[1];
        second.ok(&format!("CREATE TABLE {there}.late (id INT)"));
        for (at, (server, there)) in groups.iter_mut().enumerate() {
            server.ok(&format!("CREATE TABLE {there}.color (id INT)"));
            let kind = ["INT", "BIGINT"][at];
            server.ok(&format!("CREATE TABLE {there}.shape (id {kind})"));
            server.ok(&format!("CREATE VIEW {there}.seen AS SELECT 1 AS one"));
        }
        stage.atlas.signal("HUP");
        stage.atlas.wait_log(&format!("{found} {schema}.color"));
        stage.atlas.wait_log(&format!(
            "table {schema}.shape is defined otherwise in group s1 than in group main: column 1 is `id` int"
        ));
        assert!(!stage.atlas.log().contains(&format!("{schema}.seen")));
        // What was written before it was in every group is in one only: it is read there, and no more comes to it.
        stage.atlas.wait_log(&format!(
            "table {schema}.late is in every group, and defined alike, but its rows are others"
        ));
        for sql in ["INSERT INTO late VALUES (3)", "TRUNCATE late"] {
            let said = error(&mut client, sql);
            assert!(said.contains("not with the same rows"), "{sql}: {said}");
        }
        assert_eq!(client.execute(&late, &[Param::Int(3)]).error_code(), 1105);
        assert_eq!(prepare_error(&mut client, "DELETE FROM late"), 1105);
        assert_eq!(client.query("SELECT COUNT(*) FROM late").cell(), "1");
        let (second, there) = &mut groups[1];
        second.ok(&format!("INSERT INTO {there}.late VALUES (1)"));
        stage.atlas.signal("HUP");
        stage.atlas.wait_log(&format!("{found} {schema}.late"));
        // What was prepared when it was none is not done in one group only.
        let again = client.execute(&late, &[Param::Int(2)]).error().unwrap();
        assert!(
            again.0 == 1105 && again.2.contains("prepare the statement again"),
            "{again:?}"
        );
        assert_eq!(
            prepare_error(&mut client, "INSERT INTO late VALUES (?)"),
            1105
        );
        assert!(error(&mut client, "INSERT INTO color VALUES (1)").contains(GLOBAL));
        client.ok("INSERT INTO shape VALUES (1)");
        let (second, there) = &mut groups[1];
        assert_eq!(
            second
                .query(&format!("SELECT COUNT(*) FROM {there}.shape"))
                .cell(),
            "0"
        );

        // One that was found stays global while it is changed in one group after the other, and while it is away from one for a moment.
        second.ok(&format!("ALTER TABLE {there}.color ADD more INT"));
        stage.atlas.signal("HUP");
        stage.atlas.wait_log(&format!(
            "global table {schema}.color is defined otherwise in group s1"
        ));
        assert!(error(&mut client, "INSERT INTO color VALUES (1)").contains(GLOBAL));
        second.ok(&format!("DROP TABLE {there}.color"));
        stage.atlas.signal("HUP");
        stage.atlas.wait_log(&format!(
            "global table {schema}.color is not in group s1, or"
        ));
        assert!(error(&mut client, "INSERT INTO color VALUES (1)").contains(GLOBAL));
        // It is dropped.
        stage.atlas.wait_log(&format!(
            "in one group at most, and global no longer: {schema}.color"
        ));
        client.ok("INSERT INTO color VALUES (1)");
        assert!(error(&mut client, "UPDATE zone SET name = 'x'").contains(GLOBAL));

        // One that is left out.
        stage.say_globals(&format!("[\"auto\", \"!{schema}.zone\"]"));
        eventually("the table is like any other", || {
            error(&mut client, "UPDATE zone SET name = 'x' WHERE id = 9").is_empty()
        });
    }
}

/// What is found is written in every group.
#[test]
fn what_is_found_is_written_everywhere() {
    for bed in Bed::both() {
        let sharding = "global_tables = \"auto\"\nglobal_writes = \"xa\"";
        let stage = Stage::with(&bed, "transaction", sharding, "");
        let mut client = stage.client();
        client.ok("INSERT INTO zone VALUES (3, 'three')");
        for (node, there) in [(Node::Primary, ""), (Node::Second, "_b")] {
            let sql = format!("SELECT name FROM {}{there}.zone WHERE id = 3", stage.schema);
            assert_eq!(bed.root(node).query(&sql).cell(), "three", "{node:?}");
        }
    }
}

/// While a group does not say what it has, nothing is written to a table that it may have too; all else goes on.
#[test]
fn what_is_not_known_is_not_written() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let there = format!("{}_b", stage.schema);
        let mut second = bed.root(Node::Second);
        let physical = ["ord", "item", "sk", "log_2", "log_3"];
        let rename = |second: &mut Wire, from: &str, to: &str| {
            for table in physical {
                second.ok(&format!(
                    "RENAME TABLE {there}.{from}{table} TO {there}.{to}{table}"
                ));
            }
        };
        rename(&mut second, "", "away_");
        let mut client = stage.client();
        let statement = client.prepare("UPDATE misc SET k = ? WHERE uid = 7");
        statement.reply.assert_ok();
        stage.say_globals("\"auto\"");
        stage.atlas.wait_log(&format!(
            "the sharded tables of schema {} are not in group s1, or the monitor's account may not see them there",
            stage.schema
        ));
        let refused = [
            "UPDATE misc SET k = 5",
            "INSERT INTO misc VALUES (9, 9)",
            "INSERT INTO `misc` SELECT * FROM misc",
            "DELETE FROM zone",
            "TRUNCATE misc",
            "ALTER TABLE misc ADD x INT",
            "CREATE TABLE more (id INT)",
            "SELECT 1; DELETE FROM misc",
            "/*!50000 DELETE */ FROM misc",
            "UPDATE ord, misc SET ord.amt = 1 WHERE misc.uid = 2 AND ord.uid = 2",
        ];
        let mut other = Wire::connect(stage.atlas.address(), &Login::plain());
        for sql in refused {
            let said = error(&mut client, sql);
            assert!(
                said.contains("it is not known yet which tables"),
                "{sql}: {said}"
            );
        }
        let qualified = format!("DELETE FROM {}.misc", stage.schema);
        assert_eq!(other.query(&qualified).error_code(), 1105);
        assert_eq!(prepare_error(&mut client, "DELETE FROM misc"), 1105);
        for sql in [
            "SELECT * FROM misc",
            "SELECT * FROM misc m JOIN ord o ON o.uid = m.uid WHERE o.uid = 2",
            "BEGIN",
            "UPDATE ord SET amt = 7 WHERE uid = 2",
            "COMMIT",
            "SET @a = 1",
            "SHOW COLUMNS FROM misc",
            "DESCRIBE misc",
        ] {
            client.query(sql).assert_ok();
        }
        assert_eq!(
            bed.root(Node::Primary)
                .query(&format!("SELECT COUNT(*) FROM {}.misc", stage.schema))
                .cell(),
            "2"
        );
        rename(&mut second, "away_", "");
        eventually("it is known", || {
            error(&mut client, "UPDATE misc SET k = 5 WHERE uid = 7").is_empty()
        });
        assert!(error(&mut client, "UPDATE zone SET name = 'x'").contains(GLOBAL));
    }
}

/// A table that a client of Atlas makes, as the last group's, is looked for in the others at once.
#[test]
fn what_a_client_makes_is_looked_for() {
    for bed in Bed::both() {
        let stage = Stage::with(&bed, "transaction", "global_tables = \"auto\"", "");
        let mut client = stage.client();
        let mut second = bed.root(Node::Second);
        second.ok(&format!("CREATE TABLE {}_b.fresh (id INT)", stage.schema));
        client.ok("CREATE TABLE fresh (id INT)");
        stage.atlas.wait_log(&format!(
            "found in every group, and global from here on: {}.fresh",
            stage.schema
        ));
        assert!(error(&mut client, "INSERT INTO fresh VALUES (1)").contains(GLOBAL));
    }
}

/// Where one of three groups does not say what it has, what one of the others is seen not to have is written as ever.
#[test]
fn what_some_group_does_not_have_is_written() {
    for bed in Bed::both() {
        let stage = Stage::with(&bed, "transaction", "global_tables = \"auto\"", "");
        let (schema, mut client) = (stage.schema.to_string(), stage.client());
        let path = stage.atlas.config_path();
        let text = std::fs::read_to_string(path).unwrap();
        let text = text.replace(&stage.atlas.address().to_string(), "{listen}");
        // A process that begins does not know what another has found; the sharded tables of the third group are not there.
        let atlas = Atlas::start(format!(
            "{text}\n[[groups]]\nname = \"s2\"\nprimary = \"{}\"\nschemas = {{ {schema} = \"{schema}_c\" }}\n[[tables]]\nname = \"{schema}.far\"\nkey = \"uid\"\nranges = [{{ groups = [\"s2\"] }}]\n",
            bed.address(Node::Second)
        ));
        let mut other = Wire::connect(atlas.address(), &Login::plain().schema(&stage.schema));
        for sql in [
            "UPDATE zone SET name = 'x'",
            "INSERT INTO misc SELECT id, id FROM zone",
        ] {
            let said = error(&mut other, sql);
            assert!(said.contains("it is not known yet"), "{sql}: {said}");
        }
        other.ok("UPDATE misc SET k = 5 WHERE uid = 1");
        other.ok("INSERT INTO misc VALUES (8, 8)");
        let statement = other.prepare("DELETE FROM misc WHERE uid = ?");
        other.execute(&statement, &[Param::Int(8)]).assert_ok();
        other.ok("UPDATE ord SET amt = 5 WHERE uid = 1");
        assert_eq!(client.query("SELECT k FROM misc WHERE uid = 1").cell(), "5");
    }
}
