//! What a session sets of ids is its own, also where it shares server connections.

mod common;

use common::{Atlas, Bed, Login, Node, Wire, config_for};

#[test]
fn ids_that_a_session_sets_are_its_own() {
    for bed in Bed::both() {
        let schema = bed.schema();
        bed.root(Node::Primary).ok(&format!(
            "CREATE TABLE {schema}.a(id INT AUTO_INCREMENT PRIMARY KEY, tag VARCHAR(40))"
        ));
        let atlas = Atlas::start(config_for(&bed));
        let login = Login::plain().schema(&schema);
        let mut one = Wire::connect(atlas.address(), &login);
        let mut other = Wire::connect(atlas.address(), &login);
        for name in ["last_insert_id", "identity"] {
            one.ok(&format!("SET {name} = 42"));
            assert_eq!(other.query("SELECT LAST_INSERT_ID()").cell(), "0", "{name}");
            assert_eq!(one.query("SELECT LAST_INSERT_ID()").cell(), "42", "{name}");
        }
        one.ok("SET insert_id = 500");
        other.ok("INSERT INTO a(tag) VALUES ('other')");
        one.ok("INSERT INTO a(tag) VALUES ('one')");
        let ids = one.query("SELECT id FROM a WHERE tag = 'one' /*master*/");
        assert_eq!(ids.cell(), "500");
        let ids = one.query("SELECT id FROM a WHERE tag = 'other' /*master*/");
        assert_eq!(ids.cell(), "1");
    }
}
