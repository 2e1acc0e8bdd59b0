//! Uses a server through the Rust crate mysql. See README.md beside this file.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{
    Conn, OptsBuilder, Params, Pool, PoolConstraints, PoolOpts, SslOpts, TxOpts, Value, params,
};

pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, user, password, schema] = args.as_slice() else {
        eprintln!("usage: rust-driver HOST PORT USER PASSWORD SCHEMA");
        return ExitCode::from(2);
    };
    let Ok(port) = port.parse() else {
        eprintln!("{port} is no port");
        return ExitCode::from(2);
    };
    let ca = std::env::var_os("DRIVERS_TLS_CA").map(PathBuf::from);
    match run(host, port, user, password, schema, ca) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}

/// The whole program; `tests/drivers.rs` calls it without a process of its own.
pub(crate) fn run(
    host: &str,
    port: u16,
    user: &str,
    password: &str,
    schema: &str,
    ca: Option<PathBuf>,
) -> Result<(), Fault> {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some(host))
        .tcp_port(port)
        .user(Some(user))
        .pass(Some(password))
        .db_name(Some(schema))
        // Without this the crate goes from 127.0.0.1 to the server's unix socket, past whatever stands between.
        .prefer_socket(false)
        .ssl_opts(ca.map(|ca| SslOpts::default().with_root_cert_path(Some(ca))));
    let mut db = Conn::new(options.clone())?;
    let current: Option<String> = db.query_first("SELECT DATABASE()")?;
    same("schema", &current.as_deref(), &Some(schema))?;
    db.ping()?;
    values(&mut db)?;
    transactions(&mut db)?;
    state(&mut db)?;
    several_results(&mut db)?;
    errors(&mut db, &options)?;
    sizes(&mut db)?;
    pool(&options)?;
    db.query_drop("DROP TABLE rs_values")?;
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, want: &T) -> Result<(), Fault> {
    if got == want {
        return Ok(());
    }
    let cut = |value: &T| format!("{value:?}").chars().take(300).collect::<String>();
    Err(format!("{what}: got {}, want {}", cut(got), cut(want)).into())
}

/// Until it is so several times in a row, so that every replica has answered.
fn eventually<T: PartialEq + std::fmt::Debug>(
    what: &str,
    want: &T,
    mut read: impl FnMut() -> Result<T, Fault>,
) -> Result<(), Fault> {
    let end = Instant::now() + Duration::from_secs(10);
    let mut right = 0;
    while right < 8 {
        let got = read()?;
        right = if got == *want { right + 1 } else { 0 };
        if Instant::now() > end {
            return same(what, &got, want);
        }
        if right == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

fn values(db: &mut Conn) -> Result<(), Fault> {
    db.query_drop("DROP TABLE IF EXISTS rs_values")?;
    db.query_drop(
        "CREATE TABLE rs_values(id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, u BIGINT UNSIGNED, f DOUBLE,
            t VARCHAR(200) CHARACTER SET utf8mb4, b BLOB)",
    )?;
    let bytes: Vec<u8> = (0..=255).collect();
    db.exec_drop(
        "INSERT INTO rs_values(n, u, f, t, b) VALUES (:n, :u, :f, :t, :b)",
        params! { "n" => i64::MIN, "u" => u64::MAX, "f" => 1.5, "t" => TEXT, "b" => bytes.clone() },
    )?;
    same("insert id", &db.last_insert_id(), &1)?;
    same("affected rows", &db.affected_rows(), &1)?;
    let last: Option<u64> = db.query_first("SELECT LAST_INSERT_ID()")?;
    same("LAST_INSERT_ID()", &last, &Some(1))?;
    db.exec_batch(
        "INSERT INTO rs_values(n) VALUES (?)",
        (0..200).map(|n| (n,)),
    )?;
    eventually("committed rows", &Some(201), || {
        Ok(db.query_first("SELECT COUNT(*) FROM rs_values")?)
    })?;
    type Row = (i64, u64, f64, String, Vec<u8>);
    let select = "SELECT n, u, f, t, b FROM rs_values WHERE id = 1";
    let want: Option<Row> = Some((i64::MIN, u64::MAX, 1.5, TEXT.to_owned(), bytes));
    same("text row", &db.query_first(select)?, &want)?;
    same("binary row", &db.exec_first(select, ())?, &want)?;
    let nulls: Option<(Value, String)> = db.exec_first("SELECT ?, ?", (Value::NULL, ""))?;
    same(
        "NULL and empty",
        &nulls,
        &Some((Value::NULL, String::new())),
    )
}

fn transactions(db: &mut Conn) -> Result<(), Fault> {
    let mut transaction = db.start_transaction(TxOpts::default())?;
    transaction.query_drop("DELETE FROM rs_values")?;
    let count: Option<u32> = transaction.query_first("SELECT COUNT(*) FROM rs_values")?;
    same("seen inside", &count, &Some(0))?;
    transaction.rollback()?;
    let mut transaction = db.start_transaction(TxOpts::default())?;
    let count: Option<u32> =
        transaction.exec_first("SELECT COUNT(*) FROM rs_values WHERE id > ?", (0,))?;
    same("after a rollback", &count, &Some(201))?;
    transaction.commit()?;
    Ok(())
}

fn state(db: &mut Conn) -> Result<(), Fault> {
    db.query_drop("SET @answer = 42, time_zone = '+03:00'")?;
    let answer: Option<i64> = db.exec_first("SELECT @answer + ?", (1,))?;
    same("user variable", &answer, &Some(43))?;
    db.query_drop("CREATE TEMPORARY TABLE rs_temporary(a INT)")?;
    db.exec_drop("INSERT INTO rs_temporary VALUES (?), (?)", (1, 2))?;
    let sum: Option<i64> = db.query_first("SELECT SUM(a) FROM rs_temporary")?;
    same("temporary table", &sum, &Some(3))?;
    // Many statements, more than the crate keeps: it closes the oldest.
    for number in 0..100 {
        let got: Option<i64> = db.exec_first(format!("SELECT {number} + ?"), (1,))?;
        same("own statement", &got, &Some(number + 1))?;
    }
    db.reset()?;
    let answer: Option<Value> = db.query_first("SELECT @answer")?;
    same("after a reset", &answer, &Some(Value::NULL))?;
    let is_default: Option<bool> = db.query_first("SELECT @@time_zone = @@global.time_zone")?;
    same("time zone after a reset", &is_default, &Some(true))
}

fn several_results(db: &mut Conn) -> Result<(), Fault> {
    let mut results = db.query_iter("SELECT 1; DO 0; SELECT 2 UNION SELECT 3")?;
    let mut got = Vec::new();
    while let Some(rows) = results.iter() {
        for row in rows {
            got.push(mysql::from_row::<u32>(row?));
        }
    }
    drop(results);
    same("several results", &got, &vec![1, 2, 3])
}

fn errors(db: &mut Conn, options: &OptsBuilder) -> Result<(), Fault> {
    for (sql, code) in [
        ("SELEC 1", 1064),
        ("SELECT no_such", 1054),
        ("INSERT INTO rs_values(id) VALUES (1)", 1062),
    ] {
        same(sql, &code_of(db.query_drop(sql)), &code)?;
        same(sql, &code_of(db.exec_drop(sql, Params::Empty)), &code)?;
    }
    let wrong = Conn::new(options.clone().pass(Some("wrong")));
    same("wrong password", &code_of(wrong.map(|_| ())), &1045)
}

fn code_of(result: mysql::Result<()>) -> u16 {
    match result {
        Err(mysql::Error::MySqlError(error)) => error.code,
        _ => 0,
    }
}

fn sizes(db: &mut Conn) -> Result<(), Fault> {
    let limit: Option<usize> = db.query_first("SELECT @@max_allowed_packet")?;
    let limit = limit.unwrap_or(0);
    for size in [250, 251, 0xffff, 0x1_0000, 0xff_ff_ff, 0x100_0000, 17 << 20] {
        if size + 100 < limit {
            let got: Option<usize> = db.exec_first("SELECT LENGTH(?)", ("a".repeat(size),))?;
            same("bytes to the server", &got, &Some(size))?;
            let got: Option<String> = db.query_first(format!("SELECT REPEAT('b', {size})"))?;
            same(
                "bytes to the client",
                &got.map(|text| text.len()),
                &Some(size),
            )?;
        }
    }
    Ok(())
}

fn pool(options: &OptsBuilder) -> Result<(), Fault> {
    let constraints = PoolConstraints::new(0, 8).ok_or("bounds")?;
    let own = PoolOpts::default().with_constraints(constraints);
    let pool = Pool::new(options.clone().pool_opts(own))?;
    let workers: Vec<_> = (0..16u32)
        .map(|number| {
            let pool = pool.clone();
            std::thread::spawn(move || -> Result<(), Fault> {
                for i in 0..50u32 {
                    let mut db = pool.get_conn()?;
                    let got: Option<(u32, u32)> = db.exec_first("SELECT ?, ?", (number, i))?;
                    same("own answer", &got, &Some((number, i)))?;
                }
                Ok(())
            })
        })
        .collect();
    for worker in workers {
        worker.join().map_err(|_| "a thread panicked")??;
    }
    Ok(())
}

const TEXT: &str = "naïve 漢字 🐬 'quoted' \\ \"double\" `tick` -- no comment";
