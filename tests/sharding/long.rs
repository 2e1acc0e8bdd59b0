//! Statements too long to be looked at whole: one that names a sharded table does not run, wherever the name stands.

use crate::Stage;
use crate::common::{Bed, Node};

/// So long that the name is far behind what is seen of the statement at first.
fn numbers() -> String {
    "1,".repeat(700_000)
}

#[test]
fn names_at_the_end_of_a_long_statement_are_seen() {
    for bed in Bed::both() {
        let stage = Stage::new(&bed, "transaction");
        let (mut client, mut root) = (stage.client(), bed.root(Node::Primary));
        let numbers = numbers();
        let late = format!(
            "INSERT INTO misc SELECT 99, 99 FROM misc WHERE k IN ({numbers}11) AND EXISTS (SELECT 1 FROM ord)"
        );
        let error = client.query(&late).error().unwrap();
        assert_eq!(error.0, 1105, "{error:?}");
        assert!(error.2.contains("longer than 1 MiB"), "{error:?}");
        assert_eq!(client.query("SELECT COUNT(*) FROM misc").cell(), "2");
        let mut prepare = vec![0x16];
        prepare.extend_from_slice(late.as_bytes());
        assert_eq!(client.command(&prepare).error_code(), 1105);
        assert_eq!(client.query("SELECT 1").cell(), "1");
        // The same without the name, and with it in a string.
        let text = format!(
            "SELECT COUNT(*), LENGTH('{}') > 1 FROM misc WHERE k IN ({numbers}11)",
            "it''s FROM ord ".repeat(10)
        );
        assert_eq!(client.query(&text).rows()[0][0].as_deref(), Some("1"));
        // In a transaction all is lost, and nothing is done.
        client.ok("BEGIN");
        client.ok("INSERT INTO misc VALUES (77, 77)");
        assert_eq!(client.query(&late).error_code(), 1105);
        assert!(client.try_query("SELECT 1").is_err());
        let count = format!("SELECT COUNT(*) FROM {}.misc WHERE k > 22", stage.schema);
        assert_eq!(root.query(&count).cell(), "0");
    }
}
