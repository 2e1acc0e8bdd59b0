//! Crowds of real drivers on few server connections, and a storm of log-ins. A small form by default; `scripts/crowd` sets
//! `ATLAS_CROWD` (clients) and `ATLAS_CROWD_SECONDS`. What the servers saw is asked of the servers.

mod common;
#[path = "crowd/rust_crowd.rs"]
mod rust_crowd;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{Atlas, Bed, Kind, Login, Node, Schema, Wire, config_for, eventually, unique_name};
use mysql::OptsBuilder;

/// Server connections, of each server.
const FEW: usize = 8;
const SERVERS: [Node; 3] = [Node::Primary, Node::Replica1, Node::Replica2];

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect(name))
}

/// Makes an account of this test alone, by which the servers know its connections.
fn own_account(bed: &Bed) -> String {
    let name = unique_name("crowd");
    let mut root = bed.root(Node::Primary);
    root.ok(&format!("CREATE USER {name}@'%' IDENTIFIED BY 'pw'"));
    root.ok(&format!("GRANT ALL ON *.* TO {name}@'%'"));
    name
}

fn tables(bed: &Bed) -> Schema {
    let schema = bed.schema();
    let mut root = bed.root(Node::Primary);
    root.ok(&format!("USE {}", schema.name()));
    root.ok("CREATE TABLE a(id INT AUTO_INCREMENT PRIMARY KEY, tag VARCHAR(60))");
    root.ok("CREATE TABLE b(tag VARCHAR(60), KEY(tag))");
    root.ok("CREATE TABLE three(n INT)");
    root.ok("INSERT INTO three VALUES (1), (2), (3)");
    bed.wait_replicas();
    schema
}

fn connections(root: &mut Wire, account: &str) -> usize {
    let sql =
        format!("SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{account}'");
    root.query(&sql).cell().parse().expect("a count")
}

/// A program of `tests/crowd` for one driver.
fn program(interpreter: &str, file: &str, args: &[String]) -> Child {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cache = std::env::var_os("ATLAS_BED_CACHE").map_or_else(|| root.join(".bed"), Into::into);
    let clients = cache.join("clients");
    let interpreter = match interpreter {
        "python" => clients.join("python/bin/python"),
        other => other.into(),
    };
    Command::new(interpreter)
        .env("NODE_PATH", clients.join("node_modules"))
        .arg(root.join("tests/crowd").join(file))
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("scripts/bed install clients")
}

fn crowd(kind: Kind) {
    let clients = number("ATLAS_CROWD", 80);
    let seconds = number("ATLAS_CROWD_SECONDS", 6);
    let bed = Bed::of(kind);
    let account = own_account(&bed);
    let schema = tables(&bed);
    let pool = format!(
        "[pool]\nmin_idle = 1\nmax_connections = {FEW}\nconnect_rate = 500\nacquire_timeout = \"300s\"\n\
         [monitor]\nuser = \"app\"\npassword = \"app-pw\""
    );
    let atlas = Atlas::start(config_for(&bed).user(&account, "pw", &[]).append(&pool));
    let address = atlas.address();
    let each = clients.div_ceil(4);
    let args: Vec<String> = [
        address.ip().to_string(),
        address.port().to_string(),
        account.clone(),
        "pw".to_owned(),
        schema.name().to_owned(),
        each.to_string(),
        seconds.to_string(),
        "1".to_owned(),
    ]
    .into();
    let programs = [
        ("PyMySQL", "python", "pymysql_crowd.py"),
        ("mysql2", "node", "mysql2_crowd.js"),
        ("mariadb", "node", "mariadb_crowd.js"),
    ];
    let over = AtomicBool::new(false);
    let most = AtomicUsize::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut roots: Vec<Wire> = SERVERS.iter().map(|node| bed.root(*node)).collect();
            while !over.load(Ordering::Relaxed) {
                for root in &mut roots {
                    // A server lists one that was closed for a moment longer.
                    eventually("there are few", || {
                        let now = connections(root, &account);
                        if now <= FEW {
                            most.fetch_max(now, Ordering::Relaxed);
                        }
                        now <= FEW
                    });
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let running = programs.map(|(name, with, file)| (name, program(with, file, &args)));
        let options = OptsBuilder::new()
            .ip_or_hostname(Some(address.ip().to_string()))
            .tcp_port(address.port())
            .user(Some(account.as_str()))
            .pass(Some("pw"))
            .prefer_socket(false);
        let time = Duration::from_secs(seconds as u64);
        let rust = rust_crowd::run(options, schema.name(), each, time, 1);
        let mut faults = Vec::new();
        for (name, child) in running {
            let output = child.wait_with_output().expect("a program");
            let told = String::from_utf8_lossy(&output.stdout);
            eprintln!("{} {name}: {}", kind.name(), told.trim());
            let all = format!("\"clients\":{each}");
            if !output.status.success() || !told.replace(' ', "").contains(&all) {
                faults.push(format!(
                    "{name}: {}",
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
        }
        over.store(true, Ordering::Relaxed);
        match rust {
            Ok(done) => eprintln!("{} Rust: {done:?}", kind.name()),
            Err(fault) => faults.push(format!("Rust: {fault}")),
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        watch.join().expect("the servers saw few connections");
    });
    eprintln!(
        "{}: {} clients, at most {} connections to a server, {:.1} s",
        kind.name(),
        4 * each,
        most.load(Ordering::Relaxed),
        started.elapsed().as_secs_f64()
    );
    nothing_is_left(&bed, &atlas, &account, &schema);
    bed.root(Node::Primary)
        .ok(&format!("DROP USER {account}@'%'"));
}

/// Whoever comes now finds connections as fresh ones, and the servers hold nothing for those who have gone.
fn nothing_is_left(bed: &Bed, atlas: &Atlas, account: &str, schema: &Schema) {
    let login = Login::new(account, "pw").schema(schema);
    let mut fresh: Vec<Wire> = (0..4 * FEW)
        .map(|_| Wire::connect(atlas.address(), &login))
        .collect();
    for hint in ["/*master*/", ""] {
        for client in &mut fresh {
            let sql = format!(
                "SELECT CONCAT_WS(' ', IFNULL(@v, 'none'), IFNULL(@given, 'none'), @@time_zone, @@div_precision_increment, @@autocommit + 0) {hint}"
            );
            assert_eq!(client.query(&sql).cell(), "none none SYSTEM 4 1");
            let missing = client.query("SELECT tag FROM mine /*master*/");
            assert_eq!(missing.error_code(), 1146);
        }
    }
    let mut root = bed.root(Node::Primary);
    eventually("no transaction is open", || {
        // A server tells the same of these for as long as it is asked again within a tenth of a second.
        std::thread::sleep(Duration::from_millis(150));
        let sql = format!(
            "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p \
             ON p.id = t.trx_mysql_thread_id WHERE p.user = '{account}'"
        );
        // MySQL refuses to list a statement of another test that is not in the list's character set.
        let reply = root.query(&sql);
        reply.error().is_none() && reply.cell() == "0"
    });
    for name in ["py1-0", "m2-1-0", "mdb1-0", "rs1-0", "py1-1", "mdb1-1"] {
        eventually("no lock is held", || {
            root.query(&format!("SELECT IS_FREE_LOCK('{name}')")).cell() == "1"
        });
    }
    // LOCK TABLES would make it wait.
    root.ok(&format!(
        "ALTER TABLE {}.three ADD COLUMN m INT",
        schema.name()
    ));
}

#[test]
fn mariadb_crowd() {
    crowd(Kind::MariaDb);
}

#[test]
fn mysql_crowd() {
    crowd(Kind::MySql);
}

/// Everybody comes at once, while servers are to see few new connections a second.
fn storm(kind: Kind) {
    let clients = number("ATLAS_CROWD", 300);
    let rate = if clients >= 2000 { 50 } else { 20 };
    let bed = Bed::of(kind);
    let account = own_account(&bed);
    let schema = tables(&bed);
    let pool = format!(
        "[pool]\nmin_idle = 0\nmax_connections = 100\nconnect_rate = {rate}\nacquire_timeout = \"60s\"\n\
         [monitor]\nuser = \"app\"\npassword = \"app-pw\""
    );
    let atlas = Atlas::start(config_for(&bed).user(&account, "pw", &[]).append(&pool));
    let login = Login::new(&account, "pw").schema(&schema);
    let marks: Vec<u64> = SERVERS
        .iter()
        .map(|node| std::fs::metadata(&bed.server(*node).general_log).map_or(0, |m| m.len()))
        .collect();
    // As the servers' logs tell the time.
    let clock = match kind {
        Kind::MariaDb => "NOW()",
        Kind::MySql => "UTC_TIMESTAMP()",
    };
    let begun = bed
        .root(Node::Primary)
        .query(&format!("SELECT TIME_TO_SEC(TIME({clock}))"))
        .cell()
        .parse::<usize>()
        .expect("a second of the day");
    let started = Instant::now();
    let all_are_there = Barrier::new(clients);
    std::thread::scope(|scope| {
        for _ in 0..clients {
            let come = || {
                let mut socket = Wire::greet(atlas.address()).expect("a greeting");
                if all_are_there.wait().is_leader() {
                    eprintln!(
                        "{}: {clients} clients came within {:.2} s",
                        kind.name(),
                        started.elapsed().as_secs_f64()
                    );
                }
                socket.set_timeout(Duration::from_secs(100));
                let mut client = socket.log_in(&login).expect("a log-in");
                assert_eq!(client.query("SELECT COUNT(*) FROM three").cell(), "3");
                // Long enough that more connections are wanted than there may be.
                assert_eq!(client.query("SELECT SLEEP(0.05) /*master*/").cell(), "0");
            };
            std::thread::Builder::new()
                .stack_size(512 * 1024)
                .spawn_scoped(scope, come)
                .expect("a thread");
        }
    });
    eprintln!(
        "{}: all were served within {:.1} s",
        kind.name(),
        started.elapsed().as_secs_f64()
    );
    for (node, from) in SERVERS.into_iter().zip(marks) {
        let seconds = connects_by_second(&bed, node, from, begun, &account);
        eprintln!(
            "{} {}: {} new connections, at most {} in a second",
            kind.name(),
            node.name(),
            seconds.values().sum::<usize>(),
            seconds.values().max().unwrap_or(&0)
        );
        // A busy server writes late, never early: what counts is how many there were by the end of each second.
        let mut until = 0;
        for (second, count) in &seconds {
            until += count;
            assert!(
                until <= rate * (second - begun + 1),
                "{seconds:?} since {begun}"
            );
        }
    }
    bed.root(Node::Primary)
        .ok(&format!("DROP USER {account}@'%'"));
}

/// The account's log-ins that the server's general log shows behind that place, by the second of the day.
fn connects_by_second(
    bed: &Bed,
    node: Node,
    from: u64,
    begun: usize,
    account: &str,
) -> BTreeMap<usize, usize> {
    let log = std::fs::read(&bed.server(node).general_log).expect("a general log");
    let from = usize::try_from(from).expect("it fits");
    let text = String::from_utf8_lossy(log.get(from..).unwrap_or_default()).into_owned();
    let mark = format!("Connect\t{account}@");
    let mut seconds = BTreeMap::new();
    let mut now = begun;
    for line in text.lines() {
        // MariaDB writes the time where it differs from that of the line before.
        now = second_of(line).unwrap_or(now).max(begun);
        if line.contains(&mark) {
            *seconds.entry(now).or_insert(0) += 1;
        }
    }
    seconds
}

/// The time before the first tab: `261130  4:01:42` or `2026-11-30T04:01:42.123456Z`.
fn second_of(line: &str) -> Option<usize> {
    let (time, _) = line.split_once('\t')?;
    let clock = time.rsplit(['T', ' ']).next()?;
    let mut parts = clock
        .split(':')
        .map(|part| part.get(..2).unwrap_or(part).parse::<usize>());
    let (hours, minutes, seconds) = (
        parts.next()?.ok()?,
        parts.next()?.ok()?,
        parts.next()?.ok()?,
    );
    Some((hours * 60 + minutes) * 60 + seconds)
}

#[test]
fn mariadb_storm() {
    storm(Kind::MariaDb);
}

#[test]
fn mysql_storm() {
    storm(Kind::MySql);
}
