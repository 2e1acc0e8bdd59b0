//! Pins that end: what ties a session to its connection ties it for as long as it is there, and no longer. All clients of a test take
//! turns on one connection to the primary, so that one that is given back serves the next, who finds nothing on it.

mod common;

use common::{Atlas, Bed, Login, Node, Param, Schema, Wire, config_for, unique_name};

/// One connection to the primary for everybody.
fn start(bed: &Bed) -> Atlas {
    Atlas::start(
        config_for(bed)
            .append("[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"1500ms\"\n"),
    )
}

fn with_table(bed: &Bed) -> Schema {
    let schema = bed.schema();
    let mut maker = Wire::connect(bed.address(Node::Primary), &Login::app().schema(&schema));
    maker.ok("CREATE TABLE t(a INT AUTO_INCREMENT PRIMARY KEY, b INT)");
    maker.ok("INSERT INTO t(b) VALUES (1), (2)");
    bed.wait_replicas();
    schema
}

/// What `EXPLAIN ROUTE` names as the session's pin.
fn pin(client: &mut Wire) -> String {
    let rows = client.query("EXPLAIN ROUTE SELECT 1").rows();
    let pin = rows
        .into_iter()
        .find(|row| row[0].as_deref() == Some("pins"));
    pin.and_then(|mut row| row.remove(1)).expect("a pin's name")
}

/// Whether another client gets the connection.
fn is_given_back(other: &mut Wire) -> bool {
    let reply = other.query("SELECT 1 /*master*/");
    match reply.error() {
        None => true,
        Some((1203, _, _)) => false,
        Some(error) => panic!("{error:?}"),
    }
}

/// A client through Atlas, one with a connection of its own that is said the same, and a third who wants the connection.
struct Three {
    client: Wire,
    direct: Wire,
    other: Wire,
    _atlas: Atlas,
}

impl Three {
    fn new(bed: &Bed, schema: &Schema) -> Self {
        let login = Login::app().schema(schema);
        let atlas = start(bed);
        Self {
            client: Wire::connect(atlas.address(), &login),
            direct: Wire::connect(bed.address(Node::Primary), &login),
            other: Wire::connect(atlas.address(), &login),
            _atlas: atlas,
        }
    }

    /// Says it on both; the answers are the same, and afterwards this is the pin.
    fn says(&mut self, sql: &str, wanted: &str) {
        let (seen, direct) = (self.client.query(sql), self.direct.query(sql));
        assert_eq!(seen.error(), direct.error(), "{sql}");
        if direct.error().is_none() {
            assert_eq!(seen.results().len(), direct.results().len(), "{sql}");
            assert_eq!(seen.rows(), direct.rows(), "{sql}");
        }
        assert_eq!(pin(&mut self.client), wanted, "{sql}");
        if wanted == "none" {
            assert!(is_given_back(&mut self.other), "{sql}");
        }
    }

    /// The next who has the connection finds this.
    fn leaves(&mut self, sql: &str, error: u16) {
        assert_eq!(self.other.query(sql).error_code(), error, "{sql}");
    }
}

#[test]
fn statements_prepared_by_sql_end_with_the_last() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let mut three = Three::new(&bed, &schema);
        for (sql, pin) in [
            (
                "PREPARE s FROM 'SELECT b FROM t WHERE a = ?'",
                "prepared-sql",
            ),
            ("SET @a = 2", "prepared-sql"),
            ("EXECUTE s USING @a", "prepared-sql"),
            (
                "PREPARE S FROM 'INSERT INTO t(b) VALUES (3)'",
                "prepared-sql",
            ),
            ("PREPARE `two` FROM 'SELECT 2'", "prepared-sql"),
            ("EXECUTE TWO", "prepared-sql"),
            ("DEALLOCATE PREPARE s", "prepared-sql"),
            ("EXECUTE s", "prepared-sql"),
            ("DROP PREPARE two", "none"),
            ("EXECUTE two", "none"),
            ("DEALLOCATE PREPARE two", "none"),
            ("SELECT @a", "none"),
        ] {
            three.says(sql, pin);
        }
        three.leaves("EXECUTE s", 1243);
        three.says("PREPARE s FROM 'SELECT 1'", "prepared-sql");
        assert!(!is_given_back(&mut three.other));
        // One that a failed PREPARE has removed is counted until the client tries to end it.
        for (sql, pin) in [
            ("PREPARE s FROM 'SELECT 1'", "prepared-sql"),
            ("PREPARE s FROM 'SELECTED'", "prepared-sql"),
            ("DEALLOCATE PREPARE s", "none"),
        ] {
            three.says(sql, pin);
        }
    }
}

#[test]
fn what_an_execution_changes_is_the_sessions_own() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let mut three = Three::new(&bed, &schema);
        for (sql, pin) in [
            (
                "PREPARE s FROM 'SET @v = 7, time_zone = ''+03:00'''",
                "prepared-sql",
            ),
            ("EXECUTE s", "prepared-sql"),
            ("DEALLOCATE PREPARE s", "none"),
            ("SELECT @v, @@time_zone", "none"),
            (
                "PREPARE s FROM 'CREATE TEMPORARY TABLE tt(a INT)'",
                "prepared-sql",
            ),
            ("EXECUTE s", "temporary-table"),
            ("DEALLOCATE PREPARE s", "temporary-table"),
            ("SELECT COUNT(*) FROM tt", "temporary-table"),
            ("DROP TEMPORARY TABLE tt", "none"),
            ("SET @q = 'SELECT b FROM t ORDER BY a LIMIT 1'", "none"),
            ("PREPARE s FROM @q", "prepared-sql"),
            ("EXECUTE s", "prepared-sql"),
            ("DROP PREPARE s", "none"),
            (
                "PREPARE s FROM 'SELECT SQL_CALC_FOUND_ROWS b FROM t LIMIT 1'",
                "prepared-sql",
            ),
            ("EXECUTE s", "prepared-sql"),
            ("DROP PREPARE s", "none"),
            ("SELECT FOUND_ROWS()", "none"),
            ("PREPARE s FROM 'SELECT ROW_COUNT()'", "prepared-question"),
            ("SELECT b FROM t", "prepared-question"),
            ("EXECUTE s", "prepared-question"),
            ("DROP PREPARE s", "none"),
            ("SET @w = CONCAT('SELECT ', 1)", "none"),
            (
                "PREPARE s FROM 'SELECT b INTO @v FROM t WHERE a = 2'",
                "prepared-sql",
            ),
            ("EXECUTE s", "user-variables"),
            ("DROP PREPARE s", "user-variables"),
            ("SELECT @v", "user-variables"),
            ("SET @v = 8", "none"),
            ("SELECT @v", "none"),
        ] {
            three.says(sql, pin);
        }
        assert_eq!(three.other.query("SELECT @v IS NULL").cell(), "1");
        assert_eq!(three.other.query("SELECT @@time_zone").cell(), "SYSTEM");
        // Of a text that nobody read it is not known what it did.
        three.says(
            "SET @w = (SELECT CONCAT('SET @', 'x = 1') FROM t LIMIT 1)",
            "user-variables",
        );
        three.says("PREPARE s FROM @w", "user-variables");
        three.says("EXECUTE s", "unseen-change");
        three.says("DROP PREPARE s", "unseen-change");
        three.says("SELECT @x", "unseen-change");
    }
}

#[test]
fn mariadb_executes_at_once() {
    let bed = Bed::mariadb();
    let schema = with_table(&bed);
    let mut three = Three::new(&bed, &schema);
    for (sql, pin) in [
        (
            "EXECUTE IMMEDIATE 'SELECT b FROM t WHERE a = ?' USING 2",
            "none",
        ),
        ("EXECUTE IMMEDIATE 'SET @v = 3'", "none"),
        ("SELECT @v", "none"),
        ("EXECUTE IMMEDIATE CONCAT('SELECT ', 1)", "session-state"),
    ] {
        three.says(sql, pin);
    }
}

#[test]
fn handlers_end_with_the_last() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let mut three = Three::new(&bed, &schema);
        for (sql, pin) in [
            ("HANDLER t OPEN", "prepared-sql"),
            ("HANDLER t OPEN", "prepared-sql"),
            ("HANDLER t OPEN AS u", "prepared-sql"),
            ("HANDLER T CLOSE", "prepared-sql"),
            ("HANDLER u READ FIRST", "prepared-sql"),
            ("HANDLER u READ NEXT", "prepared-sql"),
            ("HANDLER U CLOSE", "none"),
            ("HANDLER u CLOSE", "none"),
        ] {
            three.says(sql, pin);
        }
        three.leaves("HANDLER u READ FIRST", 1109);
        // The server closes it with its table, and says so when it is to be closed.
        let Three { client, other, .. } = &mut three;
        client.ok("HANDLER t OPEN AS u");
        client.ok("ALTER TABLE t ADD c INT");
        assert!(!is_given_back(other));
        assert_eq!(client.query("HANDLER u CLOSE").error_code(), 1109);
        assert!(is_given_back(other));
    }
}

#[test]
fn a_lock_that_was_not_got_ties_nothing() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let atlas = start(&bed);
        let login = Login::app().schema(&schema);
        let mut client = Wire::connect(atlas.address(), &login);
        let mut other = Wire::connect(atlas.address(), &login);
        let mut holder = Wire::connect(bed.address(Node::Primary), &login);
        let (taken, free) = (unique_name("taken"), unique_name("free"));
        holder.ok(&format!("DO GET_LOCK('{taken}', 0)"));

        let gets = |client: &mut Wire, name: &str, wanted: &str| {
            let sql = format!("SELECT GET_LOCK('{name}', 0)");
            assert_eq!(client.query(&sql).cell(), wanted);
        };
        gets(&mut client, &taken, "0");
        assert_eq!(pin(&mut client), "none");
        assert!(is_given_back(&mut other));
        gets(&mut client, &free, "1");
        gets(&mut client, &taken, "0");
        assert!(!is_given_back(&mut other));
        client.ok(&format!("SELECT RELEASE_LOCK('{taken}')"));
        assert!(!is_given_back(&mut other));
        client.ok(&format!("SELECT RELEASE_LOCK('{free}')"));
        assert!(is_given_back(&mut other));

        // The same with names that are parameters.
        let get = client.prepare("SELECT GET_LOCK(?, 0)");
        let release = client.prepare("SELECT RELEASE_LOCK(?)");
        client
            .execute(&get, &[Param::from(taken.as_str())])
            .assert_ok();
        assert_eq!(pin(&mut client), "none");
        assert!(is_given_back(&mut other));
        for _ in 0..2 {
            client
                .execute(&get, &[Param::from(free.as_str())])
                .assert_ok();
        }
        for is_over in [false, true] {
            assert_eq!(pin(&mut client), "user-lock");
            assert!(!is_given_back(&mut other));
            client
                .execute(&release, &[Param::from(free.as_str())])
                .assert_ok();
            assert_eq!(is_given_back(&mut other), is_over);
        }
        // DO gives no answer, so the lock counts as taken.
        client.ok(&format!("DO GET_LOCK('{taken}', 0)"));
        assert!(!is_given_back(&mut other));
        client.ok(&format!("SELECT RELEASE_LOCK('{taken}')"));
        assert!(is_given_back(&mut other));
        let used = format!("SELECT IS_FREE_LOCK('{free}')");
        assert_eq!(holder.query(&used).cell(), "1");
    }
}

#[test]
fn variables_are_known_again_when_they_are_set() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let mut three = Three::new(&bed, &schema);
        for (sql, pin) in [
            ("SELECT @a := b FROM t WHERE a = 2", "user-variables"),
            (
                "SELECT b, a INTO @b, @c FROM t WHERE a = 1",
                "user-variables",
            ),
            ("SET @a = 'x', @b = 2", "user-variables"),
            ("SELECT @a, @b, @c", "user-variables"),
            ("SET @c = NULL", "none"),
            ("SELECT @a, @b, @c", "none"),
            ("SET @n = (SELECT MAX(b) FROM t)", "user-variables"),
            ("SELECT @n", "user-variables"),
            ("SET @n = 1", "none"),
        ] {
            three.says(sql, pin);
        }
        assert_eq!(three.other.query("SELECT @a IS NULL").cell(), "1");
    }
}

#[test]
fn reads_leave_a_routine_that_changed_nothing() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let login = Login::app().schema(&schema);
        let mut maker = Wire::connect(bed.address(Node::Primary), &login);
        for sql in [
            "CREATE PROCEDURE quiet() SELECT b FROM t",
            "CREATE PROCEDURE tells() SET time_zone = '+02:00'",
            "CREATE PROCEDURE makes() CREATE TEMPORARY TABLE t(x INT)",
            "CREATE PROCEDURE keeps() SELECT 5 INTO @kept",
            "CREATE PROCEDURE fails() BEGIN CREATE TEMPORARY TABLE t(x INT); SIGNAL SQLSTATE '45000'; END",
        ] {
            maker.ok(sql);
        }
        bed.wait_replicas();
        let atlas = start(&bed);
        for (call, wanted, reads_leave) in [
            ("CALL quiet()", "user-variables", true),
            ("CALL tells()", "unseen-change", false),
            ("CALL makes()", "unseen-change", false),
            ("CALL keeps()", "user-variables", true),
            ("CALL fails()", "call", false),
        ] {
            let mut client = Wire::connect(atlas.address(), &login);
            client.query(call);
            assert_eq!(pin(&mut client), wanted, "{call}");
            let marks = bed.marks();
            let tag = unique_name("routine");
            client.ok(&format!("SELECT '{tag}', COUNT(*) FROM t"));
            assert_ne!(marks.only_on(&tag, &[Node::Primary]), reads_leave, "{call}");
            // What may be on the connection only is asked of it.
            let kept = client.query("SELECT COALESCE(@kept, 0)").cell();
            assert_eq!(kept, if call == "CALL keeps()" { "5" } else { "0" });
        }
    }
}
