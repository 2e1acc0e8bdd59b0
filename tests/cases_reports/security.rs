//! Reports about what must not leak, be guessed, or be slipped past.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::atlas::wire::{Capabilities, Status};

use super::common::{Ended, Kind, Login, Node, Part, Refused, Wire};
use super::raw_login::Raw;
use super::stage::{Stage, flags, table};

#[test]
fn b278_local_files_are_the_clients() {
    for stage in Stage::both_with("CREATE TABLE bl1(b VARCHAR(100))") {
        let path = stage.atlas.dir().join("secret.txt");
        fs::write(&path, "of the proxy's host\n").expect("write");
        for sql in [
            format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE bl1", path.display()),
            format!(
                "LOAD /* c */ DATA CONCURRENT LOCAL INFILE '{}' INTO TABLE bl1",
                path.display()
            ),
            format!(
                "/*!50000 LOAD DATA */ LOCAL INFILE '{}' INTO TABLE bl1",
                path.display()
            ),
            format!(
                "DO 1; LOAD DATA LOCAL INFILE '{}' INTO TABLE bl1",
                path.display()
            ),
        ] {
            let mut client = stage.client();
            client.ok("DELETE FROM bl1");
            let reply = client.query_with_file(&sql, b"of the client\n", 100);
            reply.assert_ok();
            let asked = reply
                .packets
                .iter()
                .find(|packet| packet.part == Part::FileRequest)
                .expect("the client is asked");
            assert!(
                asked
                    .payload
                    .ends_with(path.display().to_string().as_bytes())
            );
            let stored = client.query("SELECT b FROM bl1 LOCK IN SHARE MODE");
            assert_eq!(table(&stored), ["of the client"]);
        }
        // A client that has not offered it gets the server's refusal.
        let login = stage.login().without(Capabilities::LOCAL_FILES);
        let sql = format!("LOAD DATA LOCAL INFILE '{}' INTO TABLE bl1", path.display());
        let refused = stage.client_as(&login).query(&sql);
        let direct = Wire::connect(stage.bed.address(Node::Primary), &login).query(&sql);
        assert!(refused.error().is_some());
        assert_eq!(refused.error(), direct.error());
    }
}

#[test]
fn b279_nothing_of_one_session_answers_another() {
    for stage in Stage::both() {
        // There is no cache; what a session depends on is looked at on the servers each time.
        let mut root = stage.root();
        let other = stage.bed.schema();
        root.ok(&format!(
            "CREATE TABLE {other}.t(id INT PRIMARY KEY, v INT, s VARCHAR(40))"
        ));
        root.ok(&format!("INSERT INTO {other}.t VALUES (1,99,'ä')"));
        root.ok(&format!(
            "INSERT INTO {}.t(id,v,s) VALUES (7,7,'ä')",
            stage.schema
        ));
        stage.bed.wait_replicas();
        let mut one = stage.client();
        let mut two = stage.client_as(&Login::app().schema(&other));
        let mut latin = stage.client_as(&stage.login().charset(8));
        for _ in 0..3 {
            assert_eq!(one.query("SELECT v FROM t WHERE id=1").cell(), "10");
            assert_eq!(two.query("SELECT v FROM t WHERE id=1").cell(), "99");
            let cell = |reply: super::common::Reply| {
                reply
                    .packets
                    .iter()
                    .find(|p| p.part == Part::Row)
                    .expect("a row")
                    .payload
                    .clone()
            };
            assert_eq!(
                cell(one.query("SELECT s FROM t WHERE id=7")),
                b"\x02\xc3\xa4"
            );
            assert_eq!(cell(latin.query("SELECT s FROM t WHERE id=7")), b"\x01\xe4");
        }
        one.ok("SET @x=5");
        one.ok("INSERT INTO t(v) VALUES(1)");
        assert_ne!(one.query("SELECT LAST_INSERT_ID()").cell(), "0");
        assert_eq!(two.query("SELECT LAST_INSERT_ID()").cell(), "0");
        assert_eq!(table(&two.query("SELECT @x")), ["NULL"]);
        let first = one.query("SELECT RAND(), UUID()");
        assert_ne!(first.rows(), one.query("SELECT RAND(), UUID()").rows());
    }
}

#[test]
fn b280_passwords_do_not_reach_the_log() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, "", |config| config.append("[log]\nlevel = \"trace\""));
        let mut client = stage.client_as(&Login::app().schema(&stage.schema));
        let user = super::common::unique_name("x").replace('_', "");
        client.ok(&format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'Secr3t1'"));
        let set = if stage.is_mariadb() {
            "PASSWORD('Secr3t3')"
        } else {
            "'Secr3t3'"
        };
        client.ok(&format!("SET PASSWORD FOR {user} = {set}"));
        for sql in [
            format!("ALTER USER {user} IDENTIFIED WITH p AS 'Secr3t2'"),
            format!(
                "GRANT SELECT ON {}.* TO {user}@'%' IDENTIFIED BY 'Secr3t5'",
                stage.schema
            ),
            "CHANGE MASTER 'nosuch' TO MASTER_PASSWORD='Secr3t4'".to_owned(),
            format!("CREATE USER {user}2 IDENTIFIED BY 'Secr3t6' BOGUS"),
            format!("EXPLAIN ROUTE CREATE USER {user}3 IDENTIFIED BY 'Secr3t7'"),
            "SHOW LAST ROUTE".to_owned(),
        ] {
            let reply = client.query(&sql);
            let said: Vec<u8> = reply
                .packets
                .iter()
                .flat_map(|packet| packet.payload.clone())
                .collect();
            let said = String::from_utf8_lossy(&said).into_owned();
            // A server quotes what stands behind a mistake; Atlas adds nothing to that.
            assert!(!said.contains("Secr3t7"), "{said}");
        }
        let wrong = Wire::try_connect(stage.atlas.address(), &Login::new(&user, "Secr3t8"));
        assert!(
            matches!(wrong, Err(Refused::Error { code: 1045, .. })),
            "{wrong:?}"
        );
        let change = client.change_user(&Login::new("app", "Secr3t9"));
        assert!(change.is_err());
        let log = stage.atlas.log();
        assert!(
            !log.contains("Secr3t") && !log.contains("app-pw") && !log.contains("plain-pw"),
            "{log}"
        );
        let mut root = stage.root();
        root.ok(&format!("DROP USER {user}@'%'"));
    }
}

/// A statement of bytes.
fn query(client: &mut Wire, sql: &[u8]) -> super::common::Reply {
    let payload = client.query_payload(sql);
    client.command(&payload)
}

/// Where the only statement ran that has this in it.
fn place(stage: &Stage, text: &str) -> Node {
    let trail = stage.trail();
    let found: Vec<_> = trail
        .iter()
        .filter(|seen| seen.entry.text.contains(text))
        .collect();
    assert_eq!(found.len(), 1, "{trail:?}");
    found[0].node
}

#[test]
fn b282_second_bytes_that_look_like_quotes_and_backslashes() {
    for stage in Stage::both() {
        for (charset, lead) in [
            ("gbk", 0xbf),
            ("sjis", 0x83),
            ("big5", 0xa4),
            ("gb18030", 0xbf),
        ] {
            if charset == "gb18030" && stage.is_mariadb() {
                continue;
            }
            let mut client = stage.client();
            client.ok(&format!("SET NAMES {charset}"));
            stage.trail();
            let trick =
                |head: &str, tail: &str| [head.as_bytes(), &[lead, 0x5c], tail.as_bytes()].concat();
            // The string ends behind the second byte, so the lock is code.
            let locking = trick("SELECT '", "' AS g, id FROM t WHERE id=1 FOR UPDATE -- '");
            query(&mut client, &locking).assert_ok();
            assert_eq!(place(&stage, "AS g, id FROM t"), Node::Primary, "{charset}");
            let reply = query(
                &mut client,
                &trick("SELECT '", "'; DELETE FROM t WHERE id=2; -- '"),
            );
            reply.assert_ok();
            assert!(
                stage.trail().iter().all(|seen| seen.node == Node::Primary),
                "{charset}"
            );
            assert_eq!(
                stage.count("t WHERE id=2"),
                0,
                "{charset}: the DELETE is code"
            );
            stage
                .root()
                .ok(&format!("INSERT INTO {}.t VALUES (2,20,'b')", stage.schema));
            // A quoted name whose second byte is the backquote.
            let name = [
                &b"SELECT 1 AS `"[..],
                &[lead, 0x60],
                b"` FROM t FOR UPDATE -- `",
            ]
            .concat();
            if charset == "gbk" || charset == "sjis" {
                let reply = query(&mut client, &name);
                assert!(
                    stage.trail().iter().all(|seen| seen.node == Node::Primary),
                    "{charset}: {reply:?}"
                );
            }
            // The same bytes as UTF-8: the backslash is one, and the string goes on to the last quote.
            client.ok("SET NAMES utf8mb4");
            stage.trail();
            // No proper UTF-8, so servers may refuse it, and either of them may be asked: once.
            let reply = query(&mut client, &locking);
            assert!(
                reply.error().is_none() || reply.error_code() == 3854,
                "{reply:?}"
            );
            place(&stage, "AS g, id FROM t");
        }
        // As the log-in's character set.
        let mut client = stage.client_as(&stage.login().charset(28));
        let locking = [
            &b"SELECT '"[..],
            &[0xbf, 0x5c],
            b"' AS h, id FROM t WHERE id=1 FOR UPDATE -- '",
        ]
        .concat();
        query(&mut client, &locking).assert_ok();
        assert_eq!(place(&stage, "AS h, id FROM t"), Node::Primary);
        // And as character_set_client alone, also by a value that only the server knows.
        for set in [
            "SET character_set_client=gbk",
            "SET character_set_client=CONCAT('gb','k')",
        ] {
            let mut client = stage.client();
            client.ok(set);
            query(&mut client, &locking).assert_ok();
            assert_eq!(place(&stage, "AS h, id FROM t"), Node::Primary, "{set}");
        }
    }
}

#[test]
fn b283_backslashes_follow_the_sql_mode() {
    for stage in Stage::both() {
        let mut client = stage.client();
        let read = "SELECT v FROM t WHERE id=1";
        let locking = r"SELECT '\' , id FROM t WHERE id=1 FOR UPDATE -- '";
        stage.on_replica(&mut client, read);
        let plain = stage.on_replica(&mut client, locking);
        assert_eq!(table(&plain), ["' , id FROM t WHERE id=1 FOR UPDATE -- "]);
        client.ok("SET sql_mode='NO_BACKSLASH_ESCAPES'");
        assert_eq!(table(&stage.on_primary(&mut client, locking)), [r"\,1"]);
        let status = |reply: &super::common::Reply| {
            flags(reply) & (Status::NO_BACKSLASH_ESCAPES | Status::AUTOCOMMIT).0
        };
        assert_eq!(status(&stage.on_replica(&mut client, read)), 0x0202);
        assert_eq!(
            status(&client.query("SELECT v FROM t WHERE id=1 FOR UPDATE")),
            0x0202
        );
        client.ok("SET sql_mode=DEFAULT");
        assert_eq!(status(&stage.on_replica(&mut client, read)), 0x0002);
        assert_eq!(
            status(&client.query("SELECT v FROM t WHERE id=1 FOR UPDATE")),
            0x0002
        );
        stage.on_replica(&mut client, locking);
        // A reset undoes it too.
        client.ok("SET sql_mode='NO_BACKSLASH_ESCAPES,ANSI_QUOTES'");
        stage.on_primary(&mut client, locking);
        client.command(&[0x1f]).assert_ok();
        stage.on_replica(&mut client, locking);
        // Quotes of identifiers: here the lock stands outside a string, there inside.
        let quoted = r#"SELECT "' , id FROM t WHERE id=1 FOR UPDATE -- '" FROM t WHERE id=1"#;
        stage.on_replica(&mut client, quoted);
        client.ok("SET sql_mode='ANSI_QUOTES'");
        let named = r#"SELECT id AS "x' FOR UPDATE -- '" FROM t WHERE id=1"#;
        stage.on_replica(&mut client, named);
    }
}

#[test]
fn b286_errors_before_the_log_in_say_nothing_foreign() {
    let stage = Stage::mariadb();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let done = Arc::new(AtomicBool::new(false));
    let steady = {
        let (mut client, done) = (stage.client(), done.clone());
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                assert_eq!(
                    client.query("SELECT 'of another session'").cell(),
                    "of another session"
                );
            }
        })
    };
    for round in 0..1500 {
        let mut wire = Wire::greet(stage.atlas.address()).expect("a greeting");
        let mut raw = Raw::native(&wire).with(Capabilities::CONNECT_WITH_DB);
        let len = usize::try_from(random() % 400).expect("small");
        // Letters, so that what is quoted can be looked for; now and then no end.
        raw.user = (0..len)
            .map(|_| b'a' + u8::try_from(random() % 26).expect("a letter"))
            .collect();
        raw.schema = Some(b"nosuch");
        let mut payload = raw.payload();
        if round % 3 == 0 {
            payload.truncate(usize::try_from(random()).unwrap_or(0) % payload.len());
        }
        wire.send_as(1, &payload);
        let mut packet = wire.try_packet();
        // Asked again by another plugin, it answers nothing of use.
        if packet.as_ref().is_ok_and(|packet| packet.first() == 0xfe) {
            wire.send_as(3, b"no answer");
            packet = wire.try_packet();
        }
        let packet = match packet {
            Ok(packet) => packet,
            Err(Ended::Closed { .. } | Ended::Reset) => continue,
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(packet.first(), 0xff, "{packet:?}");
        assert!(packet.payload.len() < 600, "{packet:?}");
        let text =
            String::from_utf8(packet.payload[9..].to_vec()).expect("the client sent letters");
        if let Some(rest) = text.strip_prefix("Access denied for user '") {
            let (user, rest) = rest.split_once('\'').expect("the end of the name");
            assert!(raw.user.starts_with(user.as_bytes()), "{text}");
            assert!(rest.starts_with("@'127.0.0.1' (using password: "), "{text}");
        } else {
            assert_eq!(text, "Bad handshake");
        }
    }
    done.store(true, Ordering::Relaxed);
    steady.join().expect("the other session");
    // Unknown user and wrong password: the same words.
    let say =
        |user: &str| match Wire::try_connect(stage.atlas.address(), &Login::new(user, "wrong")) {
            Err(Refused::Error { text, .. }) => text.replace(user, "?"),
            other => panic!("{other:?}"),
        };
    assert_eq!(say("plain"), say("nobody"));
}
