//! The driver matrix through Atlas: every client of `tests/drivers` (see its README) works against Atlas as it does against a server.

mod common;
// Called as a function here: a cargo within a test would wait for every other cargo on the machine.
#[allow(dead_code, reason = "its main is for scripts/drivers")]
#[path = "drivers/rust_driver.rs"]
mod rust_driver;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Atlas, Bed, Config, Kind, config_for};

fn run(kind: Kind, driver: &str) {
    let bed = Bed::of(kind);
    run_with(&bed, driver, config_for(&bed), &[]);
}

fn run_with(bed: &Bed, driver: &str, config: Config, variables: &[(&str, &Path)]) {
    let schema = bed.schema();
    let atlas = Atlas::start(config);
    let address = atlas.address();
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/drivers"))
        .envs(variables.iter().copied())
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
    run_rust_with(&bed, config_for(&bed), None);
}

fn run_rust_with(bed: &Bed, config: Config, ca: Option<PathBuf>) {
    let schema = bed.schema();
    let atlas = Atlas::start(config);
    let address = atlas.address();
    let host = address.ip().to_string();
    rust_driver::run(
        &host,
        address.port(),
        "plain",
        "plain-pw",
        schema.name(),
        ca,
    )
    .unwrap_or_else(|fault| panic!("{fault}"));
}

/// TLS on either side of Atlas, and nothing without it.
fn in_tls(bed: &Bed) -> Config {
    let tls = bed.tls.display();
    config_for(bed)
        .server(&format!(
            "tls = {{ mode = \"required\", cert = \"{tls}/server-cert.pem\", key = \"{tls}/server-key.pem\" }}"
        ))
        .group(&format!(
            "tls = {{ mode = \"verify-identity\", ca = \"{tls}/cacert.pem\" }}"
        ))
}

fn run_in_tls(kind: Kind, driver: &str) {
    let bed = Bed::of(kind);
    let ca = bed.ca();
    run_with(&bed, driver, in_tls(&bed), &[("DRIVERS_TLS_CA", &ca)]);
}

#[test]
fn mariadb_rust_in_tls() {
    let bed = Bed::mariadb();
    run_rust_with(&bed, in_tls(&bed), Some(bed.ca()));
}

#[test]
fn mysql_rust_in_tls() {
    let bed = Bed::mysql();
    run_rust_with(&bed, in_tls(&bed), Some(bed.ca()));
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
    ($module:ident $kind:ident $run:ident: $($name:ident $driver:literal,)*) => {
        mod $module {
            use super::{Kind, $run};
            $(#[test]
            fn $name() {
                $run(Kind::$kind, $driver);
            })*
        }
    };
}

drivers! { mariadb MariaDb run:
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

drivers! { mysql MySql run:
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

drivers! { mariadb_in_tls MariaDb run_in_tls:
    pymysql "pymysql",
    mysql2 "mysql2",
    mariadb_npm "mariadb-npm",
    mariadb_cli "mariadb-cli",
    mysql_cli "mysql-cli",
}

drivers! { mysql_in_tls MySql run_in_tls:
    pymysql "pymysql",
    mysql2 "mysql2",
    mariadb_npm "mariadb-npm",
    mariadb_cli "mariadb-cli",
    mysql_cli "mysql-cli",
}
