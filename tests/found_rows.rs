//! FOUND_ROWS() behind statements of all kinds, where another client has had the server's connection in between: the same as on a
//! connection of one's own.

mod common;

use common::{Atlas, Bed, Config, Login, Node, Schema, Wire, config_for};

/// What a bed has for the statements below; each case begins with these rows again.
const MAKE: &[&str] = &[
    "CREATE TABLE t(a INT PRIMARY KEY, b INT)",
    "INSERT INTO t VALUES (1,1),(2,2),(3,3),(4,4),(5,5),(6,6),(7,7),(8,8),(9,9)",
    "CREATE TABLE w(a INT PRIMARY KEY, b INT)",
    "CREATE TABLE w0(a INT PRIMARY KEY, b INT)",
    "CREATE TABLE w1(a INT PRIMARY KEY, b INT)",
    "CREATE PROCEDURE p() SELECT a FROM t LIMIT 4",
    "CREATE PROCEDURE none() BEGIN END",
    "CREATE PROCEDURE changes() UPDATE w0 SET b = b + 1",
    "CREATE PROCEDURE fails() BEGIN SELECT a FROM t LIMIT 4; SELECT * FROM nosuch; END",
    "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN (SELECT COUNT(*) FROM t)",
];
const FILL: &[&str] = &[
    "DELETE FROM w",
    "DELETE FROM w0",
    "DELETE FROM w1",
    "DROP TABLE IF EXISTS made",
    "INSERT INTO w0 VALUES (1,1),(2,9),(3,3),(4,4),(5,5)",
    "INSERT INTO w1 VALUES (1,1),(2,9),(3,3),(4,4),(5,5)",
];

/// In texts; those that one of the two does not know are errors there, behind which there is a number too.
const TEXTS: &[&str] = &[
    "INSERT INTO w VALUES (1,1),(2,2)",
    "INSERT INTO w SELECT a, a FROM t",
    "INSERT INTO w SELECT a, a FROM t LIMIT 2",
    "INSERT INTO w SELECT a, a FROM t LIMIT 2, 3",
    "INSERT INTO w SELECT a, a FROM t WHERE a > 1000",
    "INSERT INTO w SELECT 3, 4",
    "INSERT IGNORE INTO w SELECT a % 2, a FROM t",
    "INSERT INTO w SELECT a, a FROM t UNION ALL SELECT a + 100, a FROM t LIMIT 3",
    "INSERT INTO w SELECT COUNT(*), 1 FROM t",
    "INSERT INTO w SELECT a % 2, a FROM t",
    "INSERT INTO w VALUES (1, (SELECT COUNT(*) FROM t))",
    "INSERT INTO w VALUES (1, f())",
    "INSERT INTO w SET a = 1",
    "INSERT INTO w TABLE t",
    "INSERT INTO w VALUES (1,1) RETURNING a",
    "INSERT INTO w SELECT a, a FROM t RETURNING a",
    "INSERT INTO w VALUES (1,1),(1,1)",
    "REPLACE INTO w VALUES (1,1),(1,2)",
    "REPLACE INTO w SELECT a % 2, a FROM t",
    "CREATE TABLE made AS SELECT a FROM t",
    "CREATE TABLE made(x INT)",
    "CREATE TABLE IF NOT EXISTS t AS SELECT 1",
    "SELECT COUNT(*) INTO @x FROM t",
    "SELECT a INTO @x FROM t LIMIT 1",
    "SELECT a INTO @x FROM t WHERE a = 1000",
    "SELECT a INTO @x FROM t",
    "SELECT 5 INTO @x",
    "SELECT a FROM t LIMIT 3, 1 INTO @x",
    "SET @x = (SELECT COUNT(*) FROM t)",
    "SET @x = (SELECT a FROM t WHERE a > 2)",
    "SET @x = 1",
    "DO (SELECT COUNT(*) FROM t)",
    "DO 1",
    "DO f()",
    "UPDATE w0 SET b = b + 1",
    "UPDATE w0 SET b = b",
    "UPDATE w0 SET b = b + 1 WHERE a < 3",
    "UPDATE w0 SET b = b + 1 WHERE a = 1000",
    "UPDATE w0 SET b = b + 1 WHERE 0",
    "UPDATE w0 SET b = b + 1 WHERE a = 1 AND a = 2",
    "UPDATE w0 SET b = b + 1 LIMIT 2",
    "UPDATE w0 SET b = (SELECT COUNT(*) FROM t)",
    "UPDATE w0 SET b = 1 WHERE a IN (SELECT a FROM t)",
    "UPDATE w0 SET b = 1 WHERE a = (SELECT MAX(a) FROM t)",
    "UPDATE w0 SET a = 1",
    "UPDATE w0 SET b = f()",
    "UPDATE w0 JOIN t USING (a) SET w0.b = 9",
    "UPDATE w0, t SET w0.b = 9 WHERE w0.a = t.a AND t.a < 3",
    "UPDATE w0, t SET w0.b = 9, t.b = t.b WHERE 0",
    "UPDATE IGNORE w0 SET a = 1",
    "UPDATE LOW_PRIORITY w0 AS x SET b = 3 WHERE a < 3",
    "WITH x AS (SELECT a FROM t) UPDATE w0 SET b = 1 WHERE a IN (SELECT a FROM x)",
    "DELETE FROM w0",
    "DELETE FROM w0 WHERE a = 1000",
    "DELETE FROM w0 WHERE a IN (SELECT a FROM t WHERE a < 3)",
    "DELETE w0 FROM w0 JOIN t USING (a) WHERE t.a < 3",
    "DELETE w0 FROM w0 WHERE w0.a < 4",
    "DELETE w0, w1 FROM w0 JOIN w1 USING (a) WHERE w0.a < 3",
    "DELETE FROM w0 USING w0 JOIN t USING (a)",
    "DELETE FROM w0 WHERE a < 3 RETURNING a",
    "TRUNCATE w0",
    "EXPLAIN SELECT a FROM t",
    "EXPLAIN SELECT 1",
    "EXPLAIN SELECT a FROM t UNION SELECT a FROM w0",
    "EXPLAIN ANALYZE SELECT a FROM t",
    "ANALYZE SELECT a FROM t",
    "ANALYZE UPDATE w0 SET b = b + 1",
    "EXPLAIN UPDATE w0 SET b = 1",
    "DESCRIBE t",
    "DESC t a",
    "SHOW TABLES",
    "SHOW FULL TABLES LIKE 'zz%'",
    "SHOW TABLE STATUS",
    "SHOW COLUMNS FROM t",
    "SHOW INDEX FROM t",
    "SHOW DATABASES LIKE 'x'",
    "SHOW SESSION VARIABLES LIKE 'sql_m%'",
    "SHOW GLOBAL STATUS LIKE 'Thr%'",
    "SHOW STORAGE ENGINES",
    "SHOW PRIVILEGES",
    "SHOW CHARACTER SET",
    "SHOW COLLATION LIKE 'latin1%'",
    "SHOW WARNINGS",
    "SHOW ERRORS",
    "SHOW COUNT(*) WARNINGS",
    "SHOW PROCESSLIST",
    "SHOW GRANTS",
    "SHOW CREATE TABLE t",
    "SHOW TRIGGERS",
    "SHOW PROCEDURE STATUS LIKE 'zz%'",
    "SHOW ENGINE INNODB STATUS",
    "SHOW BINARY LOGS",
    "SHOW PLUGINS",
    "SHOW PROFILES",
    "CHECK TABLE t, w0",
    "ANALYZE TABLE t",
    "CHECKSUM TABLE t",
    "HELP 'SELECT'",
    "CALL p()",
    "CALL none()",
    "CALL changes()",
    "CALL fails()",
    "SELECT f()",
    "BEGIN NOT ATOMIC SELECT a FROM t LIMIT 2; DO 1; END",
    "ALTER TABLE w1 COMMENT = 'x'",
    "COMMIT",
    "USE information_schema",
    "SELECT * FROM nosuch",
    "SELECT a FROM t WHERE",
    "SELECT 1/0, a FROM t",
    "VALUES (1),(2)",
    "VALUES ROW(1),ROW(2)",
    "TABLE t LIMIT 2",
    "SELECT a FROM t EXCEPT SELECT a FROM t WHERE a < 3 LIMIT 1",
    "SELECT a FROM t ORDER BY b OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY",
    "SELECT a FROM t ORDER BY b FETCH FIRST 2 ROWS WITH TIES",
    "SELECT a FROM t LIMIT 0",
    "SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 0",
    "EXECUTE IMMEDIATE 'SELECT a FROM t LIMIT 8'",
    "SIGNAL SQLSTATE '01000'",
    "KILL QUERY 99999999",
];

/// Errors in the midst of a query, which MariaDB counts to there. None that comes where the plan has it, since a replica may have another.
const FAILING: &[&str] = &[
    "SELECT EXP(a * 500) FROM t",
    "SELECT a, EXP(a * 100) FROM t",
    "SELECT (SELECT a FROM t) FROM t",
    "SELECT a FROM t WHERE a > EXP(1000)",
];

fn with_tables(bed: &Bed) -> Schema {
    let schema = bed.schema();
    let mut maker = Wire::connect(bed.address(Node::Primary), &Login::app().schema(&schema));
    for sql in MAKE {
        maker.ok(sql);
    }
    bed.wait_replicas();
    schema
}

/// Those behind which the session keeps its connection.
const KEEPING: &[&str] = &[
    "SELECT COUNT(*) INTO @x FROM t",
    "SELECT a INTO @x FROM t LIMIT 1",
    "SELECT a INTO @x FROM t WHERE a = 1000",
    "SELECT a INTO @x FROM t",
    "SELECT 5 INTO @x",
    "SELECT a FROM t LIMIT 3, 1 INTO @x",
    "SET @x = (SELECT COUNT(*) FROM t)",
    "SET @x = (SELECT a FROM t WHERE a > 2)",
    "CALL p()",
    "CALL none()",
    "CALL changes()",
    "CALL fails()",
    "SELECT f()",
    "BEGIN NOT ATOMIC SELECT a FROM t LIMIT 2; DO 1; END",
];

const NOBODY: &str = "[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"10s\"\n";

struct Scene<'a> {
    bed: &'a Bed,
    atlas: Atlas,
    login: Login,
    other: Wire,
    maker: Wire,
}

/// The numbers that FOUND_ROWS() has before the statement.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// That of the session.
    own: u32,
    /// That of the connection that it gets.
    others: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum How {
    Text,
    Execution,
    /// By a client that has not asked for the number before.
    NotAsked,
}

impl<'a> Scene<'a> {
    fn new(bed: &'a Bed, schema: &Schema, config: Config) -> Self {
        let atlas = Atlas::start(config);
        let login = Login::app().schema(schema);
        let other = Wire::connect(atlas.address(), &login);
        let maker = Wire::connect(bed.address(Node::Primary), &login);
        Self {
            bed,
            atlas,
            login,
            other,
            maker,
        }
    }

    /// Another client has both connections, and leaves this number there.
    fn others(&mut self, rows: u32) {
        for hint in ["", "/*master*/ "] {
            self.other.ok(&format!("{hint}{}", read(rows)));
        }
    }

    /// What is answered behind the statement, through Atlas and directly. A session's connections are its own if nobody else needs one.
    fn answers(&mut self, sql: &str, before: Before, how: How, is_shared: bool) -> [String; 2] {
        let direct = self.bed.address(Node::Primary);
        [self.atlas.address(), direct].map(|address| {
            for sql in FILL {
                self.maker.ok(sql);
            }
            let mut client = Wire::connect(address, &self.login);
            if how != How::NotAsked {
                client.ok("SELECT FOUND_ROWS()");
            }
            client.ok(&read(before.own));
            if is_shared {
                self.others(before.others);
            }
            match how {
                How::Text | How::NotAsked => drop(client.query(sql)),
                How::Execution => {
                    if let Ok(statement) = client.try_prepare(sql) {
                        client.execute(&statement, &[]);
                    }
                }
            }
            if is_shared && !KEEPING.contains(&sql) {
                self.others(before.others);
            }
            let answer = client.query("SELECT FOUND_ROWS()");
            let answer = match answer.error() {
                Some((code, _, _)) => format!("error {code}"),
                None => format!("{:?}", answer.rows()),
            };
            // That was a statement too.
            let again = client.query("SELECT FOUND_ROWS(), ROW_COUNT()");
            format!("{answer} {:?}", again.rows())
        })
    }

    fn compare(&mut self, texts: &[&str], before: &[Before], how: How, is_shared: bool) {
        let mut wrong = Vec::new();
        for sql in texts {
            for before in before {
                let [seen, wanted] = self.answers(sql, *before, how, is_shared);
                if seen != wanted {
                    wrong.push(format!("{sql} {before:?}: {seen}, not {wanted}"));
                }
            }
        }
        assert!(wrong.is_empty(), "{:?} {how:?}: {wrong:#?}", self.bed.kind);
    }
}

/// A query that finds so many rows.
fn read(rows: u32) -> String {
    match rows {
        0..=9 => format!("SELECT a FROM t LIMIT {rows}"),
        _ => format!("SELECT 1 FROM t AS a, t AS b, t AS c, t AS d LIMIT {rows}"),
    }
}

const fn before(own: u32, others: u32) -> Before {
    Before { own, others }
}

const BEFORE: [Before; 4] = [before(7, 7), before(7, 6), before(0, 9), before(6, 0)];

#[test]
fn behind_texts() {
    for bed in Bed::both() {
        let schema = with_tables(&bed);
        let mut scene = Scene::new(&bed, &schema, config_for(&bed).append(NOBODY));
        scene.compare(TEXTS, &BEFORE, How::Text, true);
    }
}

#[test]
fn behind_executions() {
    for bed in Bed::both() {
        let schema = with_tables(&bed);
        let mut scene = Scene::new(&bed, &schema, config_for(&bed).append(NOBODY));
        scene.compare(TEXTS, &BEFORE[1..3], How::Execution, true);
    }
}

/// The query ran on a replica, and what follows does not: the session has both connections to itself.
#[test]
fn where_connections_are_not_shared() {
    for bed in Bed::both() {
        let schema = with_tables(&bed);
        let config = config_for(&bed).all_users("sharing = \"session\"");
        let mut scene = Scene::new(&bed, &schema, config);
        scene.compare(TEXTS, &BEFORE[1..2], How::Text, false);
        scene.compare(TEXTS, &BEFORE[1..2], How::Execution, false);
    }
}

/// A number that the connection cannot be brought to, and one that it can.
#[test]
fn behind_queries_that_found_many_rows() {
    for bed in Bed::both() {
        let schema = with_tables(&bed);
        let mut scene = Scene::new(&bed, &schema, config_for(&bed).append(NOBODY));
        let texts = [
            "INSERT INTO w VALUES (1,1)",
            "INSERT INTO w SELECT a, a FROM t",
            "EXPLAIN SELECT a FROM t",
            "DELETE FROM w0 WHERE a = 1000",
        ];
        let many = [before(11, 3), before(1000, 3)];
        scene.compare(&texts, &many, How::Text, true);
        let too_many = before(1001, 3);
        for sql in texts {
            let [seen, wanted] = scene.answers(sql, too_many, How::Text, true);
            if sql.starts_with("EXPLAIN") {
                // It has left the number as it was, or has set it to that.
                assert!(seen.starts_with("error 1105 "), "{:?} {seen}", bed.kind);
            } else {
                assert_eq!(seen, wanted, "{:?} {sql}", bed.kind);
            }
        }
    }
}

/// Never another session's number; and where there is none to be told, an error.
#[test]
fn doubts_are_told() {
    for bed in Bed::both() {
        let schema = with_tables(&bed);
        let mut scene = Scene::new(&bed, &schema, config_for(&bed).append(NOBODY));
        let mut told = 0;
        for (sql, how) in (FAILING.iter().map(|sql| (*sql, How::Text)))
            .chain(NONE_MATCHED.iter().map(|sql| (*sql, How::NotAsked)))
        {
            for before in BEFORE.into_iter().chain([before(7, 1)]) {
                let [seen, wanted] = scene.answers(sql, before, how, true);
                let is_told = seen.starts_with("error 1105 ");
                told += u32::from(is_told);
                assert!(
                    is_told || seen == wanted,
                    "{sql} {before:?}: {seen}, not {wanted}"
                );
            }
        }
        // Of 35: what is not in doubt is not called so.
        assert!(told < 10, "{:?} {told}", bed.kind);
    }
}

/// What MySQL does not tell apart.
const NONE_MATCHED: &[&str] = &[
    "UPDATE w0 SET b = b + 1 WHERE a = 1000",
    "UPDATE w0 SET b = b + 1 WHERE a = 1 AND a = 2",
    "UPDATE w0 SET b = b + 1 LIMIT 0",
];

#[test]
fn behind_commands() {
    for bed in Bed::both() {
        let schema = with_tables(&bed);
        let mut scene = Scene::new(&bed, &schema, config_for(&bed).append(NOBODY));
        let login = scene.login.clone();
        let addresses = [scene.atlas.address(), bed.address(Node::Primary)];
        let numbers = addresses.map(|address| {
            let mut client = Wire::connect(address, &login);
            let mut seen = Vec::new();
            let mut say = |client: &mut Wire, what: &dyn Fn(&mut Wire)| {
                client.ok(&read(7));
                scene.others(4);
                what(client);
                scene.others(3);
                seen.push(client.query("SELECT FOUND_ROWS()").rows());
            };
            say(&mut client, &|client| drop(client.command(b"\x1f")));
            say(&mut client, &|client| {
                client.change_user(&login).expect("changes");
            });
            say(&mut client, &|client| drop(client.command(b"\x0e")));
            say(&mut client, &|client| {
                client.command(b"\x02mysql");
                client.command(&[b"\x02", schema.name().as_bytes()].concat());
            });
            seen
        });
        assert_eq!(numbers[0], numbers[1], "{:?}", bed.kind);
    }
}
