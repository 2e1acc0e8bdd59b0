//! `causal`: reads that are to see the writes before them. Where they ran is read from the servers' logs.

mod common;

use common::{Atlas, Bed, Login, Node, Param, Schema, Wire, config_for, eventually, unique_name};

fn start(bed: &Bed, causal: &str) -> Atlas {
    Atlas::start(config_for(bed).all_users(&format!("causal = \"{causal}\"")))
}

fn with_table(bed: &Bed) -> Schema {
    let schema = bed.schema();
    bed.root(Node::Primary)
        .ok(&format!("CREATE TABLE {schema}.t(a INT)"));
    bed.wait_replicas();
    schema
}

/// Where a read of this client runs, as a text and prepared.
fn places(bed: &Bed, client: &mut Wire) -> [bool; 2] {
    let marks = bed.marks();
    let (text, prepared) = (unique_name("text"), unique_name("prepared"));
    client.query(&format!("SELECT '{text}'")).assert_ok();
    let statement = client.prepare("SELECT ?");
    client
        .execute(&statement, &[Param::from(prepared.as_str())])
        .assert_ok();
    [text, prepared].map(|tag| marks.only_on(&tag, &[Node::Primary]))
}

#[test]
fn reads_stay_on_the_primary_for_the_window() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let login = Login::plain().schema(&schema);
        let atlas = start(&bed, "window:60s");
        let mut writer = Wire::connect(atlas.address(), &login);
        assert_eq!(places(&bed, &mut writer), [false, false]);
        for write in ["INSERT INTO t VALUES (1)", "COMMIT"] {
            let mut writer = Wire::connect(atlas.address(), &login);
            writer.ok(write);
            assert_eq!(places(&bed, &mut writer), [true, true], "{write}");
        }
        // Another's writes do not count.
        assert_eq!(places(&bed, &mut writer), [false, false]);

        let atlas = start(&bed, "window:100ms");
        let mut writer = Wire::connect(atlas.address(), &login);
        writer.ok("INSERT INTO t VALUES (2)");
        eventually("the window is over", || {
            places(&bed, &mut writer) == [false, false]
        });
    }
}

#[test]
fn sessions_see_their_own_writes_or_everybodys() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let login = Login::plain().schema(&schema);
        let atlas = start(&bed, "session");
        let mut client = Wire::connect(atlas.address(), &login);
        assert_eq!(places(&bed, &mut client), [false, false]);
        client.ok("DELETE FROM t");
        assert_eq!(places(&bed, &mut client), [true, true]);
        let atlas = start(&bed, "global");
        let mut client = Wire::connect(atlas.address(), &login);
        assert_eq!(places(&bed, &mut client), [true, true]);
    }
}
