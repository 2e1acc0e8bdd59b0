//! Sharded statements in the slow and the audit log: as the client wrote them, with the group that answered, or that there were several.

use crate::common::{Bed, Node, eventually};
use crate::stage::Stage;

const LOGS: &str =
    "[log]\naudit = { file = \"audit.log\" }\nslow = { file = \"slow.log\", threshold = \"0s\" }";

#[test]
fn the_logs_name_the_group() {
    for bed in Bed::both() {
        let stage = Stage::with(&bed, "transaction", "", LOGS);
        let mut client = stage.client();
        client.ok("SELECT amt, 'of-main' FROM ord WHERE uid = 2");
        client.ok("SELECT amt, 'of-s1' FROM ord WHERE uid = 3");
        client.ok("UPDATE ord SET amt = amt + 1 WHERE uid = 5 AND 'written' <> ''");
        let prepared = client.prepare("SELECT amt, 'executed' FROM ord WHERE uid = ?");
        client.execute(&prepared, &[1.into()]);
        let rows = client.ok("SELECT uid, 'of-all' FROM ord").rows().len();
        let read =
            |name: &str| std::fs::read_to_string(stage.atlas.dir().join(name)).unwrap_or_default();
        eventually("the last is written", || {
            ["audit.log", "slow.log"]
                .iter()
                .all(|log| read(log).contains("'of-all'"))
        });
        let audit = read("audit.log");
        let line = |tag: &str| -> serde_json::Value {
            let line = audit.lines().find(|line| line.contains(tag));
            serde_json::from_str(line.expect(tag)).expect("JSON")
        };
        let second = bed.address(Node::Second).to_string();
        for (tag, group, statement) in [
            (
                "'of-main'",
                "main",
                "SELECT amt, 'of-main' FROM ord WHERE uid = 2",
            ),
            (
                "'of-s1'",
                "s1",
                "SELECT amt, 'of-s1' FROM ord WHERE uid = 3",
            ),
            (
                "'written'",
                "s1",
                "UPDATE ord SET amt = amt + 1 WHERE uid = 5 AND 'written' <> ''",
            ),
            (
                "'executed'",
                "s1",
                "SELECT amt, 'executed' FROM ord WHERE uid = 1",
            ),
        ] {
            let line = line(tag);
            assert_eq!(line["group"], group, "{line}");
            assert_eq!(line["statement"], statement, "{line}");
            assert_eq!(line["schema"], stage.schema.name(), "{line}");
            assert_eq!(line["server"] == second, group == "s1", "{line}");
        }
        let all = line("'of-all'");
        assert_eq!(all["route"], "sharded", "{all}");
        assert_eq!(all["rows"], rows, "{all}");
        assert_eq!(all["groups"], serde_json::json!(["main", "s1"]), "{all}");

        let slow = read("slow.log");
        let entry = |tag: &str| {
            let entries = slow.split("# Time: ");
            let mut with = entries.filter(|entry| entry.contains(tag));
            with.next().expect(tag).to_owned()
        };
        assert!(entry("'of-main'").contains("  Group: main  "), "{slow}");
        assert!(
            entry("'of-s1'").contains(&format!("  Group: s1  Server: {second}  ")),
            "{slow}"
        );
        assert!(
            entry("'of-all'").contains("# Route: sharded  Groups: main,s1\n"),
            "{slow}"
        );
    }
}
