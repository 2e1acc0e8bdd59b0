//! The MariaDB server of a load test: private, in a temporary folder, no query cache, no binlog, four sysbench tables.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Doing, Error, Result};
use crate::group::{self, Group};
use crate::mysql::{ClientError, Connection, PASSWORD, SCHEMA, USER};
use crate::programs::find_program;
use crate::sys::{self, Placement};

/// Number of tables `sbtestN`.
pub(crate) const TABLES: u32 = 4;

/// How the server deals with connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    PerConnection,
    /// A pool, for a great many idle connections.
    Pool,
}

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Database {
    group: Group,
    socket: PathBuf,
}

impl Database {
    /// Installs and starts a server at `address`:`port` and loads the tables.
    ///
    /// # Errors
    /// When MariaDB is not installed, or does not start or load within a minute each.
    pub(crate) fn start(
        folder: &Path,
        port: u16,
        place: Placement,
        threads: Threads,
        rows: u32,
    ) -> Result<Self> {
        let server = find_program("mariadbd").ok_or_else(|| {
            Error::Missing("mariadbd is not installed (Debian: mariadb-server-core)".into())
        })?;
        let home = folder.join("db");
        fs::create_dir(&home).doing(|| format!("make {}", home.display()))?;
        let user = account_for(&home)?;
        let config = home.join("my.cnf");
        fs::write(&config, configuration(&home, port, threads))
            .doing(|| format!("write {}", config.display()))?;
        let defaults = format!("--defaults-file={}", config.display());
        let mut install = Command::new("mariadb-install-db");
        install.arg(&defaults).args(user);
        install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
        // In a session of its own: it starts a server that must not live on when the load test is ended now.
        group::run(
            install,
            Placement::default(),
            Duration::from_secs(60),
            folder,
            "install",
        )?;
        let mut command = Command::new(server);
        command.arg(&defaults).args(user);
        let mut database = Self {
            group: Group::start(command, place, folder, "mariadbd")?,
            socket: home.join("s.sock"),
        };
        let mut control = database.wait_until_up(&home)?;
        load(&mut control, rows).map_err(|e| Error::Failed(format!("load the tables: {e}")))?;
        Ok(database)
    }

    pub(crate) fn sid(&self) -> i32 {
        self.group.sid()
    }

    /// How many connections the server has, without the one that asks.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(crate) fn connections(&self) -> Result<u64> {
        Ok(self.status("Threads_connected")?.saturating_sub(1))
    }

    /// The most connections that the server had at a time since it was last told to forget, with those that asked.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub(crate) fn most_connections(&self) -> Result<u64> {
        self.status("Max_used_connections")
    }

    /// Counts the most connections from here on.
    ///
    /// # Errors
    /// When the server refuses.
    pub(crate) fn forget_most_connections(&self) -> Result<()> {
        let tell = || self.control("mysql")?.query("FLUSH STATUS");
        tell()
            .map(drop)
            .map_err(|e| Error::Failed(format!("tell the server: {e}")))
    }

    fn status(&self, name: &str) -> Result<u64> {
        let ask = || -> Result<Vec<String>, ClientError> {
            let mut c = self.control("mysql")?;
            Ok(c.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?
                .first_row())
        };
        let row = ask().map_err(|e| Error::Failed(format!("ask the server: {e}")))?;
        row.get(1)
            .and_then(|v| v.parse().ok())
            .ok_or_else(|| Error::Failed(format!("the server tells no {name}")))
    }

    fn control(&self, schema: &str) -> Result<Connection, ClientError> {
        Connection::open_unix(&self.socket, "root", schema)
    }

    fn wait_until_up(&mut self, home: &Path) -> Result<Connection> {
        let give_up = Instant::now() + Duration::from_secs(60);
        loop {
            match self.control("mysql") {
                Ok(c) => return Ok(c),
                Err(e) if self.group.has_ended() || Instant::now() > give_up => {
                    let log = fs::read_to_string(home.join("err.log")).unwrap_or_default();
                    let tail: Vec<&str> = log.lines().rev().take(5).collect();
                    return Err(Error::Failed(format!(
                        "mariadbd did not start: {e}; its log, last line first: {}",
                        tail.join(" / ")
                    )));
                }
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

/// The account that a server started by root is to change to, as an option of its programs; the server's folder is made over to it.
/// Nothing when this is not root: then the server runs as the one who started it.
fn account_for(home: &Path) -> Result<Option<&'static str>> {
    if !sys::is_root() {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let Some((uid, gid)) = passwd.lines().find_map(ids_of_mysql) else {
        return Ok(Some("--user=root"));
    };
    chown(home, Some(uid), Some(gid)).doing(|| format!("make over {}", home.display()))?;
    Ok(Some("--user=mysql"))
}

fn ids_of_mysql(line: &str) -> Option<(u32, u32)> {
    let mut fields = line.strip_prefix("mysql:")?.split(':').skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn configuration(home: &Path, port: u16, threads: Threads) -> String {
    let home = home.display();
    let handling = match threads {
        Threads::PerConnection => "one-thread-per-connection",
        Threads::Pool => "pool-of-threads",
    };
    format!(
        "[mariadbd]
datadir={home}/data
tmpdir={home}
socket={home}/s.sock
pid-file={home}/pid
log-error={home}/err.log
port={port}
bind-address=0.0.0.0
thread-handling={handling}
skip-name-resolve
skip-log-bin
innodb-buffer-pool-size=1G
innodb-log-file-size=512M
innodb-flush-log-at-trx-commit=2
innodb-doublewrite=0
query-cache-type=0
query-cache-size=0
max-connections=30000
max-prepared-stmt-count=1000000
thread-cache-size=256
max-allowed-packet=256M
performance-schema=OFF
back-log=4096
character-set-server=utf8mb4
"
    )
}

/// Makes the account and the tables that sysbench's oltp scripts use.
fn load(c: &mut Connection, rows: u32) -> Result<(), ClientError> {
    let digits =
        |groups: usize| vec!["LPAD(FLOOR(RAND() * 100000000000), 11, '0')"; groups].join(", ");
    c.query(&format!("CREATE DATABASE {SCHEMA}"))?;
    c.query(&format!(
        "CREATE USER {USER}@'%' IDENTIFIED VIA mysql_native_password USING PASSWORD('{PASSWORD}')"
    ))?;
    c.query(&format!("GRANT ALL ON *.* TO {USER}@'%'"))?;
    for n in 1..=TABLES {
        c.query(&format!(
            "CREATE TABLE {SCHEMA}.sbtest{n} (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, \
             c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '')"
        ))?;
        c.query(&format!(
            "INSERT INTO {SCHEMA}.sbtest{n} SELECT seq, FLOOR(1 + RAND() * {rows}), CONCAT_WS('-', {}), CONCAT_WS('-', {}) \
             FROM {SCHEMA}.seq_1_to_{rows}",
            digits(10),
            digits(5)
        ))?;
        c.query(&format!("CREATE INDEX k_{n} ON {SCHEMA}.sbtest{n} (k)"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_account_is_read_from_passwd() {
        assert_eq!(
            ids_of_mysql("mysql:x:103:107:MySQL Server,,,:/nonexistent:/bin/false"),
            Some((103, 107))
        );
        assert_eq!(ids_of_mysql("mysqlrouter:x:1:2::/:/bin/false"), None);
        assert_eq!(ids_of_mysql("mysql:x:y:107"), None);
    }
}
