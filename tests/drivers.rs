//! The driver matrix through Atlas: every client of `tests/drivers` (see its README) works against Atlas as it does against a server.

mod common;

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
    rust "rust",
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
    rust "rust",
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
