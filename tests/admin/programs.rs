//! The clients that operators and their scripts use: command lines and drivers, run by `scripts/drivers`.

use std::path::Path;
use std::process::Command;

use super::common::Kind;
use super::stage::{OPERATOR, PASSWORD, Stage};

fn run(kind: Kind, driver: &str) {
    let stage = Stage::new(kind);
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/drivers"))
        .arg(stage.admin.ip().to_string())
        .arg(stage.admin.port().to_string())
        .args([OPERATOR, PASSWORD, "any", driver])
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

#[test]
fn mariadb_command_line() {
    run(Kind::MariaDb, "admin-mariadb-cli");
}

#[test]
fn mysql_command_line() {
    run(Kind::MySql, "admin-mysql-cli");
}

#[test]
fn pymysql() {
    run(Kind::MariaDb, "admin-pymysql");
}

#[test]
fn mysql2() {
    run(Kind::MySql, "admin-mysql2");
}
