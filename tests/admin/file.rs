//! The configuration file: read again, and written.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use super::common::{Kind, Node};
use super::stage::{Stage, error, rows};

fn text(stage: &Stage) -> String {
    fs::read_to_string(stage.atlas.config_path()).expect("the configuration")
}

/// Comments and weights stay, the file of before is kept, and what it holds now is what is in force.
#[test]
fn what_is_in_force_is_saved() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, |config| {
            config.append("# Ours: ask before you change it.\n[pool] # small\nmin_idle = 1")
        });
        let mut admin = stage.operator();
        let path = stage.atlas.config_path();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("chmod");
        let before = text(&stage);
        let address = stage.bed.address(Node::Replica1).to_string();
        admin.ok("SET WEIGHT 2 5");
        admin.ok("ADD CLIENT 127.0.0.1");
        admin.ok("ADD PWD new:hunter2");
        assert_eq!(text(&stage), before);
        admin.ok("SAVE CONFIG;");
        let after = text(&stage);
        assert!(
            after.contains(&format!("{{ address = \"{address}\" , weight = 5 }}"))
                || after.contains(&format!("{{ address = \"{address}\", weight = 5 }}")),
            "{after}"
        );
        for part in [
            "# Ours: ask before you change it.\n[pool] # small\nmin_idle = 1",
            "client_networks = [\"127.0.0.1\"]",
            "name = \"new\"\npassword = \"enc:v1:",
        ] {
            assert!(after.contains(part), "{part}\n{after}");
        }
        assert!(!after.contains("hunter2"));
        assert_eq!(fs::metadata(&path).expect("stat").mode() & 0o7777, 0o640);
        let previous =
            fs::read_to_string(path.with_extension("toml.previous")).expect("the file of before");
        assert_eq!(previous, before);
        let names: Vec<String> = fs::read_dir(stage.atlas.dir())
            .expect("folder")
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .collect();
        assert!(
            !names
                .iter()
                .any(|name| name.starts_with("atlas.toml.") && name != "atlas.toml.previous"),
            "{names:?}"
        );
        let check = Command::new(env!("CARGO_BIN_EXE_atlas"))
            .args(["check", "-c"])
            .arg(&path)
            .current_dir(stage.atlas.dir())
            .output()
            .expect("atlas check");
        assert!(
            check.status.success(),
            "{}",
            String::from_utf8_lossy(&check.stderr)
        );
        // Nothing differs from the file now.
        assert_eq!(rows(&mut admin, "RELOAD CONFIG"), Vec::<Vec<String>>::new());
        let events: Vec<String> = rows(&mut admin, "SHOW EVENTS")
            .into_iter()
            .map(|row| row[3].clone())
            .collect();
        assert!(
            events.contains(&"save".to_owned()) && events.contains(&"reload".to_owned()),
            "{events:?}"
        );
    }
}

/// Somebody has edited the file meanwhile: neither is lost.
#[test]
fn a_file_that_was_changed_is_not_overwritten() {
    let stage = Stage::new(Kind::MariaDb);
    let mut admin = stage.operator();
    admin.ok("ADD CLIENT 127.0.0.1");
    let edited = format!("# edited\n{}", text(&stage));
    fs::write(stage.atlas.config_path(), &edited).expect("write");
    let (_, _, told) = error(&mut admin, "SAVE CONFIG");
    assert!(told.contains("was changed since it was read"), "{told}");
    assert_eq!(text(&stage), edited);
    // What it says counts after RELOAD, and then it can be saved again.
    let differences = rows(&mut admin, "RELOAD CONFIG");
    assert!(
        differences
            .iter()
            .any(|row| row[0].starts_with("server.client_networks")),
        "{differences:?}"
    );
    assert_eq!(
        rows(&mut admin, "SELECT * FROM clients"),
        Vec::<Vec<String>>::new()
    );
    admin.ok("ADD CLIENT 127.0.0.1");
    admin.ok("SAVE CONFIG");
    assert!(text(&stage).starts_with("# edited\n"));
}

/// B262: a bad file changes nothing and says why.
#[test]
fn reload() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::new(kind);
        let mut admin = stage.operator();
        let mut client = stage.client();
        client.ok("BEGIN");
        let good = text(&stage);
        fs::write(
            stage.atlas.config_path(),
            format!("{good}\n[pool]\nmax_connections = 77\n"),
        )
        .expect("write");
        let differences = rows(&mut admin, "RELOAD CONFIG;");
        assert_eq!(
            differences,
            [["pool.max_connections", "NULL", "77", "NULL"]]
        );
        assert_eq!(rows(&mut admin, "SHOW POOLS")[0][7], "77");
        fs::write(
            stage.atlas.config_path(),
            format!("{good}\n[pool]\nmax_connections = \"many\"\n"),
        )
        .expect("write");
        let (code, state, told) = error(&mut admin, "RELOAD CONFIG");
        assert_eq!((code, state.as_str()), (1105, "07000"));
        assert!(told.contains("pool.max_connections"), "{told}");
        assert_eq!(rows(&mut admin, "SHOW POOLS")[0][7], "77");
        client.ok("SELECT 1");
        client.ok("COMMIT");
    }
}

/// A file by which rows would be looked for where they are not is taken by who says that they were moved.
#[test]
fn rows_that_were_moved_by_hand() {
    let stage = Stage::new(Kind::MariaDb);
    let mut admin = stage.operator();
    let plain = text(&stage);
    let write = |tables: &str| {
        let table = format!(
            "{plain}\n[[tables]]\nname = \"moved.rows\"\nkey = \"id\"\nranges = [{{ groups = [\"main\"], tables = {tables} }}]\n"
        );
        fs::write(stage.atlas.config_path(), table).expect("write");
    };
    write("2");
    assert!(!rows(&mut admin, "RELOAD CONFIG FORCE").is_empty());
    write("4");
    let (code, _, told) = error(&mut admin, "RELOAD CONFIG");
    assert!(code == 1105 && told.contains("moved.rows"), "{told}");
    let differences = rows(&mut admin, "RELOAD CONFIG FORCE");
    assert!(!differences.is_empty(), "{differences:?}");
    assert!(
        rows(&mut admin, "RELOAD CONFIG").is_empty(),
        "it is in force"
    );
    write("\"many\"");
    let (code, _, told) = error(&mut admin, "RELOAD CONFIG FORCE");
    assert!(code == 1105 && told.contains("tables"), "{told}");
}
