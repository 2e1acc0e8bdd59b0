//! Reports about passwords that are changed while Atlas runs: those of accounts, and that of the checks.

use std::time::Duration;

use super::common::{Atlas, Login, Node, Refused, Wire, config_for, eventually, unique_name};
use super::stage::Stage;

#[test]
fn b143_a_password_is_changed_without_an_outage() {
    for stage in Stage::both() {
        let user = unique_name("r").replace('_', "");
        let mut root = stage.root();
        root.ok(&format!("CREATE USER {user}@'%' IDENTIFIED BY 'old-pw'"));
        root.ok(&format!("GRANT ALL ON {}.* TO {user}@'%'", stage.schema));
        stage.bed.wait_replicas();
        // Checks log in by this account too.
        let config = config_for(&stage.bed).append(&format!(
            "[[users]]\nname = \"{user}\"\npassword = [\"old-pw\", \"new-pw\"]\n[monitor]\nuser = \"{user}\"\npassword = [\"new-pw\", \"old-pw\"]"
        ));
        let atlas = Atlas::start(config);
        assert!(
            !atlas.log().contains("refuses the monitor"),
            "{}",
            atlas.log()
        );
        let login = |password: &str| {
            let login = Login::new(&user, password).schema(&stage.schema);
            let mut wire = Wire::try_connect(atlas.address(), &login)?;
            wire.ok("INSERT INTO t(v) VALUES(1)");
            assert_eq!(wire.query("SELECT v FROM t WHERE id=1").cell(), "10");
            Ok::<_, Refused>(wire)
        };
        let mut early = login("old-pw").expect("the old password");
        login("new-pw").expect("the new password, though the servers know only the old one");
        assert!(matches!(
            login("other-pw"),
            Err(Refused::Error { code: 1045, .. })
        ));
        // Under load.
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut runners = Vec::new();
            for password in ["old-pw", "new-pw"] {
                let (login, stop) = (&login, &stop);
                runners.push(scope.spawn(move || {
                    let mut count = 0;
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) || count == 0 {
                        login(password).expect("a listed password");
                        count += 1;
                    }
                }));
            }
            root.ok(&format!("ALTER USER {user}@'%' IDENTIFIED BY 'new-pw'"));
            stage.bed.wait_replicas();
            for password in ["old-pw", "new-pw"] {
                login(password).expect("a listed password");
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            for runner in runners {
                runner.join().expect("no refusal");
            }
        });
        early.ok("INSERT INTO t(v) VALUES(2)");
        // The side connection that kills what a vanished client left running tries both too.
        let sleep = "SELECT SLEEP(60) FROM t FOR UPDATE";
        let mut leaver = login("old-pw").expect("a listed password");
        stage.trail();
        let payload = leaver.query_payload(sleep.as_bytes());
        leaver.send(&payload);
        let mut found = None;
        eventually("it runs", || {
            found = stage.trail().into_iter().find(|seen| seen.is(sleep));
            found.is_some()
        });
        let id = found.expect("it runs").entry.connection.to_string();
        drop(leaver);
        eventually("the sleep is gone", || {
            let rows = root.query("SHOW PROCESSLIST").rows();
            !rows.iter().any(|row| row[0].as_deref() == Some(&id))
        });
        // The same for COM_CHANGE_USER, whose connections are new ones.
        for password in ["old-pw", "new-pw"] {
            early
                .change_user(&Login::new(&user, password).schema(&stage.schema))
                .expect("a listed password");
            assert_eq!(early.query("SELECT v FROM t WHERE id=1").cell(), "10");
        }
        root.ok(&format!("DROP USER {user}@'%'"));
    }
}

#[test]
fn b145_a_monitor_that_is_refused_does_not_take_the_primary_away() {
    for stage in Stage::both() {
        let user = unique_name("m").replace('_', "");
        let mut root = stage.root();
        root.ok(&format!("CREATE USER {user}@'%' IDENTIFIED BY 'old-pw'"));
        stage.bed.wait_replicas();
        let config = config_for(&stage.bed).append(&format!(
            "[monitor]\nuser = \"{user}\"\npassword = \"old-pw\"\ninterval = \"50ms\"\nfall = 2"
        ));
        let atlas = Atlas::start(config);
        let mut client = Wire::connect(atlas.address(), &stage.login());
        client.ok("INSERT INTO t(v) VALUES(1)");
        assert!(!atlas.log().contains("refuses the monitor"));
        root.ok(&format!("ALTER USER {user}@'%' IDENTIFIED BY 'new-pw'"));
        stage.bed.wait_replicas();
        // The checks' connections are old ones: they go on until they are cut.
        for node in [Node::Primary, Node::Replica1, Node::Replica2] {
            let mut root = stage.bed.root(node);
            for row in root.query("SHOW PROCESSLIST").rows() {
                if row[1].as_deref() == Some(&user) {
                    root.query(&format!("KILL {}", row[0].as_deref().expect("an id")));
                }
            }
        }
        for node in [Node::Primary, Node::Replica1, Node::Replica2] {
            let address = stage.bed.address(node);
            atlas.wait_log(&format!(
                "server {address} refuses the monitor's account: 1045"
            ));
        }
        // Many more checks are refused: the log says so once, and nobody is taken for dead.
        std::thread::sleep(Duration::from_millis(400));
        let log = atlas.log();
        assert_eq!(
            log.matches("refuses the monitor's account").count(),
            3,
            "{log}"
        );
        assert!(!log.contains("is out"), "{log}");
        // Old and new sessions write, and read from replicas.
        client.ok("INSERT INTO t(v) VALUES(2)");
        let mut client = Wire::connect(atlas.address(), &stage.login());
        client.ok("INSERT INTO t(v) VALUES(3)");
        assert_eq!(
            stage
                .on_replica(&mut client, "SELECT v FROM t WHERE id=1")
                .cell(),
            "10"
        );
        root.ok(&format!("DROP USER {user}@'%'"));
    }
}
