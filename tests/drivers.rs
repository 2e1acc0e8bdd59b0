//! The driver matrix through Atlas: every client of `tests/drivers` (see its README) works against Atlas as it does against a server.

mod common;
// Called as a function here: a cargo within a test would wait for every other cargo on the machine.
#[allow(dead_code, reason = "its main is for scripts/drivers")]
#[path = "drivers/rust_driver.rs"]
mod rust_driver;

use std::path::Path;
use std::process::Command;

use common::{Atlas, Bed, Kind, config_for};

fn run(kind: Kind, driver: &str) {
    let bed = Bed::of(kind);
    let schema = bed.schema();
    let atlas = Atlas::start(config_for(&bed));
    let address = atlas.address();
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/drivers"))
        .arg(address.ip().to_string())
        .arg(address.port().to_string())
        .args(["plain", "plain-pw", schema.name(), driver])
        .output()
        .expect("scripts/drivers");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && told.starts_with("ok "),
        "{driver}: {}\n{told}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

fn run_rust(kind: Kind) {
    let bed = Bed::of(kind);
    let schema = bed.schema();
    let atlas = Atlas::start(config_for(&bed));
    let address = atlas.address();
    let host = address.ip().to_string();
    rust_driver::run(&host, address.port(), "plain", "plain-pw", schema.name())
        .unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn mariadb_rust() {
    run_rust(Kind::MariaDb);
}

#[test]
fn mysql_rust() {
    run_rust(Kind::MySql);
}

macro_rules! drivers {
    ($module:ident $kind:ident: $($name:ident $driver:literal,)*) => {
        mod $module {
            use super::{Kind, run};
            $(#[test]
            fn $name() {
                run(Kind::$kind, $driver);
            })*
        }
    };
}

drivers! { mariadb MariaDb:
    pymysql "pymysql",
    mysql2 "mysql2",
    mariadb_npm "mariadb-npm",
    mariadb_cli "mariadb-cli",
    mysql_cli "mysql-cli",
    mariadb_terminal "mariadb-terminal",
    mariadb_slap "mariadb-slap",
    mysqlslap "mysqlslap",
    mariadb_dump "mariadb-dump",
    sysbench_read_write "sysbench-read-write",
    sysbench_read_write_text "sysbench-read-write-text",
    sysbench_point_select "sysbench-point-select",
    sysbench_point_select_text "sysbench-point-select-text",
}

drivers! { mysql MySql:
    pymysql "pymysql",
    mysql2 "mysql2",
    mariadb_npm "mariadb-npm",
    mariadb_cli "mariadb-cli",
    mysql_cli "mysql-cli",
    mariadb_terminal "mariadb-terminal",
    mariadb_slap "mariadb-slap",
    mysqlslap "mysqlslap",
    mysqldump "mysqldump",
    sysbench_read_write "sysbench-read-write",
    sysbench_read_write_text "sysbench-read-write-text",
    sysbench_point_select "sysbench-point-select",
    sysbench_point_select_text "sysbench-point-select-text",
}
