//! Questions about the conditions of the statement before, when another client has had its connection since: the answers are those
//! that a connection of one's own gives.

mod common;

use common::{Atlas, Bed, Kind, Login, Node, Schema, Wire, config_for};

const STATEMENTS: [&str; 9] = [
    "INSERT INTO t VALUES (1, 1)",
    "INSERT IGNORE INTO t VALUES (1, 1), (2, 2)",
    "SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED) /*master*/",
    "SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)",
    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'it''s so', MYSQL_ERRNO = 1234, TABLE_NAME = 'tt', \
     CONSTRAINT_NAME = 'c', CURSOR_NAME = ''",
    "SELECT nothing FROM t /*master*/",
    "CREATE TABLE IF NOT EXISTS t(a INT)",
    "UPDATE t SET b = b + 1",
    "SELECT 1",
];

const OF_A_CONDITION: &str = "CLASS_ORIGIN, SUBCLASS_ORIGIN, RETURNED_SQLSTATE, MESSAGE_TEXT, MYSQL_ERRNO, \
    CONSTRAINT_CATALOG, CONSTRAINT_SCHEMA, CONSTRAINT_NAME, CATALOG_NAME, SCHEMA_NAME, TABLE_NAME, COLUMN_NAME, CURSOR_NAME";

/// GET DIAGNOSTICS of all that a condition has, into variables whose names begin so.
fn get(number: &str, prefix: &str) -> String {
    let items: Vec<String> = OF_A_CONDITION
        .split(", ")
        .map(|item| format!("@{prefix}{item} = {item}"))
        .collect();
    format!("GET DIAGNOSTICS CONDITION {number} {}", items.join(", "))
}

fn variables(prefixes: &[&str]) -> Vec<String> {
    let names = OF_A_CONDITION.split(", ");
    let of_conditions = names.flat_map(|item| prefixes.iter().map(move |p| format!("@{p}{item}")));
    of_conditions
        .chain(["@n".to_owned(), "@r".to_owned()])
        .collect()
}

/// What is asked, one after the other.
fn questions() -> Vec<Vec<String>> {
    let own = |list: &[&str]| list.iter().map(|sql| (*sql).to_owned()).collect();
    let counts = "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT".to_owned();
    let all = format!("SELECT {}", variables(&["one", "two"]).join(", "));
    vec![
        vec![
            counts.clone(),
            get("1", "one"),
            get("2", "two"),
            all.clone(),
        ],
        vec![get("@i", "one"), counts, "SHOW WARNINGS".to_owned(), all],
        own(&["SHOW WARNINGS", "SHOW ERRORS", "SHOW COUNT(*) WARNINGS"]),
        own(&["SHOW ERRORS LIMIT 1"]),
        own(&["SHOW WARNINGS LIMIT 1, 1"]),
        own(&["SHOW COUNT(*) ERRORS"]),
        own(&["SELECT @@warning_count, @@error_count, ROW_COUNT()"]),
        own(&[
            "GET CURRENT DIAGNOSTICS CONDITION 9 @n = MYSQL_ERRNO",
            "GET DIAGNOSTICS @r = NUMBER",
            "SHOW WARNINGS",
            "SELECT @n, @r",
        ]),
        own(&["GET DIAGNOSTICS @r = ROW_COUNT", "SELECT ROW_COUNT()"]),
        own(&["GET DIAGNOSTICS @r = ROW_COUNT", "SELECT @r"]),
        own(&["GET DIAGNOSTICS @n = NOTHING"]),
    ]
}

fn with_table(bed: &Bed) -> Schema {
    let schema = bed.schema();
    let mut maker = Wire::connect(bed.address(Node::Primary), &Login::app().schema(&schema));
    maker.ok("CREATE TABLE t(a INT PRIMARY KEY, b INT)");
    maker.ok("INSERT INTO t VALUES (1, 1)");
    bed.wait_replicas();
    schema
}

#[test]
fn the_answers_are_those_of_a_connection_of_ones_own() {
    for bed in Bed::both() {
        let (schema, twin) = (with_table(&bed), with_table(&bed));
        // All clients take turns.
        let pool = "[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"10s\"\n";
        let atlas = Atlas::start(config_for(&bed).append(pool));
        let login = Login::app().schema(&schema);
        let mut client = Wire::connect(atlas.address(), &login);
        let mut other = Wire::connect(atlas.address(), &login);
        let mut direct = Wire::connect(bed.address(Node::Primary), &Login::app().schema(&twin));
        let forget: Vec<String> = variables(&["one", "two"])
            .iter()
            .map(|name| format!("{name} = 0"))
            .collect();
        let forget = format!("SET {}, @i = 1", forget.join(", "));
        for is_taken in [true, false] {
            for statement in STATEMENTS {
                for asked in questions() {
                    for sql in [&forget, "DELETE FROM t WHERE a > 1", statement] {
                        let (seen, wanted) = (client.query(sql), direct.query(sql));
                        assert_eq!(seen.error(), wanted.error(), "{sql}");
                    }
                    if is_taken {
                        other.ok("SELECT 1 /*master*/");
                        other.ok("SELECT 1");
                    }
                    for sql in &asked {
                        let (seen, wanted) = (client.query(sql), direct.query(sql));
                        let about = format!("{statement}, then {sql} of {asked:?}");
                        assert_eq!(seen.error(), wanted.error(), "{about}");
                        if wanted.error().is_none() && !wanted.results().is_empty() {
                            assert_eq!(seen.rows(), wanted.rows(), "{about}");
                        }
                    }
                }
            }
        }
    }
}

/// MariaDB keeps warnings while statements without tables follow; the session's own are shown, and none of those that another left.
#[test]
fn statements_without_tables_show_the_sessions_own() {
    for bed in Bed::both() {
        let schema = with_table(&bed);
        let pool = "[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"10s\"\n";
        for sharing in ["transaction", "session"] {
            let account = format!("sharing = \"{sharing}\"");
            let atlas = Atlas::start(config_for(&bed).all_users(&account).append(pool));
            let login = Login::app().schema(&schema);
            for master in ["", " /*master*/"] {
                for own in [
                    None,
                    Some("SELECT CAST('own' AS SIGNED)"),
                    Some("SELECT nothing"),
                ] {
                    for asked in [
                        "SHOW WARNINGS",
                        "SHOW ERRORS",
                        "SELECT @@warning_count, @@error_count",
                        "SHOW COUNT(*) WARNINGS",
                        "SELECT FOUND_ROWS(), @@session.warning_count, ROW_COUNT()",
                        "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT",
                    ] {
                        let mut other = Wire::connect(atlas.address(), &login);
                        other.ok(&format!("SELECT CAST('secret' AS SIGNED){master}"));
                        other.quit();
                        let mut client = Wire::connect(atlas.address(), &login);
                        let mut direct = Wire::connect(bed.address(Node::Primary), &login);
                        // MySQL prepares no such statement.
                        let is_prepared = bed.kind == Kind::MariaDb;
                        let prepared = is_prepared.then(|| client.prepare("SHOW WARNINGS"));
                        let mut say = |sql: &str| {
                            let (seen, wanted) = (client.query(sql), direct.query(sql));
                            let about = format!("{own:?}{master}, {asked}: {sql}");
                            assert_eq!(seen.error(), wanted.error(), "{about}");
                            if wanted.error().is_none() {
                                assert_eq!(seen.rows(), wanted.rows(), "{about}");
                            }
                        };
                        if let Some(sql) = own {
                            say(&format!("{sql}{master}"));
                        }
                        for sql in ["SELECT 1", "SELECT 1, 2"] {
                            say(&format!("{sql}{master}"));
                            say(asked);
                            say("SELECT FOUND_ROWS(), ROW_COUNT()");
                        }
                        say("SELECT @n, @r");
                        if let Some(prepared) = prepared {
                            let shown = format!("{:?}", client.execute(&prepared, &[]));
                            assert!(!shown.contains("secret"), "{shown}");
                        }
                    }
                }
            }
        }
    }
}

/// The same of counts that were prepared, before the statement that leaves the conditions of another or behind it.
#[test]
fn prepared_counts_are_the_sessions_own() {
    // MySQL prepares no such questions.
    let bed = Bed::of(Kind::MariaDb);
    {
        let pool = "[pool]\nmin_idle = 0\nmax_connections = 1\nacquire_timeout = \"10s\"\n";
        let atlas = Atlas::start(config_for(&bed).append(pool));
        for master in ["", " /*master*/"] {
            for silent in ["SELECT 1", "SET @a = 1", "DO 1"] {
                for question in [
                    "SELECT @@warning_count",
                    "SELECT @@error_count, @@session.warning_count",
                    "SELECT @@warning_count, ROW_COUNT()",
                    "SELECT ROW_COUNT()",
                ] {
                    for is_before in [true, false] {
                        let mut other = Wire::connect(atlas.address(), &Login::app());
                        other.ok(&format!("SELECT CAST('secret' AS SIGNED){master}"));
                        other.quit();
                        let answer = |address| {
                            let mut client = Wire::connect(address, &Login::app());
                            let before = is_before.then(|| client.prepare(question));
                            client.ok(&format!("{silent}{master}"));
                            let statement = before.unwrap_or_else(|| client.prepare(question));
                            client.execute(&statement, &[])
                        };
                        let seen = answer(atlas.address());
                        let wanted = answer(bed.address(Node::Primary));
                        let about = format!("{silent}{master}; {question}, first {is_before}");
                        if question.contains("ROW")
                            && silent != "SELECT 1"
                            && seen.error().is_some()
                        {
                            // Nothing takes the conditions away and leaves the number of rows.
                            assert_eq!(seen.error_code(), 1105, "{about}");
                            continue;
                        }
                        assert_eq!(seen.error(), wanted.error(), "{about}");
                        assert_eq!(seen.binary_rows(), wanted.binary_rows(), "{about}");
                    }
                }
            }
        }
    }
}
