//! Variations on the reports about session state, each a script that a server and Atlas must answer with the same bytes, while other
//! clients take the session's connections between its statements and leave settings of their own there.

use super::common::{Config, Kind, Wire, assert_same};
use super::stage::Stage;

/// Other clients of the same account, each with a state of its own.
struct Others(Vec<Wire>);

impl Others {
    fn new(stage: &Stage) -> Self {
        const STATES: [&str; 3] = [
            "SET NAMES latin1, sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES', time_zone = '+05:00', @a = 'o', @b = 9",
            "SET SESSION sql_mode = '', group_concat_max_len = 7, lc_time_names = 'fr_FR', @a = 10",
            "USE mysql",
        ];
        let clients = STATES.iter().map(|state| {
            let mut client = stage.client();
            client.ok(state);
            client
        });
        Self(clients.collect())
    }

    /// One of them asks both kinds of servers, and the next one is another.
    fn ask(&mut self) {
        let client = &mut self.0[0];
        for _ in 0..2 {
            client.query("SELECT 1").assert_ok();
        }
        client.query("SELECT 1 FOR UPDATE").assert_ok();
        self.0.rotate_left(1);
    }
}

/// No more connections than the others and the session need at a time.
fn few(config: Config) -> Config {
    config.append("[pool]\nmin_idle = 0\nmax_connections = 2")
}

/// Plays scripts of one statement a line, on a server and through Atlas.
fn same(kind: Kind, scripts: &[&str]) {
    let stage = Stage::with(kind, "", few);
    let mut others = Others::new(&stage);
    for script in scripts {
        let (mut direct, mut client) = (stage.direct(), stage.client());
        for sql in script.lines().map(str::trim).filter(|sql| !sql.is_empty()) {
            others.ask();
            let what = format!("{sql} in {script}");
            assert_same(&what, &direct.query(sql), &client.query(sql), &[]);
        }
        client.quit();
        direct.quit();
    }
}

fn same_on_both(scripts: &[&str]) {
    for kind in [Kind::MariaDb, Kind::MySql] {
        same(kind, scripts);
    }
}

/// B086, B061: a value is what it was when it was set, whatever is set afterwards.
#[test]
fn b086_values_of_user_variables_stay_when_settings_change() {
    let asked = |set: &str, value: &str, unset: &str| {
        format!(
            "{set}\nSET @a = {value}\n{unset}\nSELECT @a, HEX(@a)\nSELECT @a FROM t LIMIT 1\nSELECT @a FROM t LIMIT 2\n{unset}\nSELECT @a\nSELECT @a"
        )
    };
    let scripts = [
        asked(
            "SET div_precision_increment = 2",
            "1/3",
            "SET div_precision_increment = 8",
        ),
        asked(
            "SET lc_time_names = 'de_DE'",
            "MONTHNAME('2020-03-01')",
            "SET lc_time_names = 'en_US'",
        ),
        asked(
            "SET time_zone = '+01:00'",
            "FROM_UNIXTIME(0)",
            "SET time_zone = '+05:00'",
        ),
        asked(
            "SET default_week_format = 3",
            "WEEK('2020-01-01')",
            "SET default_week_format = 0",
        ),
        asked(
            "SET sql_mode = 'NO_UNSIGNED_SUBTRACTION'",
            "CAST(1 AS UNSIGNED) - 2",
            "SET sql_mode = DEFAULT",
        ),
        asked(
            "SET sql_mode = 'HIGH_NOT_PRECEDENCE'",
            "NOT 1 BETWEEN -5 AND 5",
            "SET sql_mode = DEFAULT",
        ),
        asked(
            "SET sql_mode = ''",
            "STR_TO_DATE('2020-00-00', '%Y-%m-%d')",
            "SET sql_mode = DEFAULT",
        ),
        // Set only once, and never changed afterwards.
        asked(
            "SET lc_time_names = 'de_DE'",
            "MONTHNAME('2020-03-01')",
            "SET @b = 1",
        ),
    ];
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    same_on_both(&scripts);
    let encrypted = asked(
        "SET block_encryption_mode = 'aes-256-ecb'",
        "AES_ENCRYPT('a', 'k')",
        "SET block_encryption_mode = DEFAULT",
    );
    same(Kind::MySql, &[&encrypted]);
}

/// B067, B086: a text has the collation of when it was set, by which it is compared.
#[test]
fn b067_texts_in_user_variables_keep_their_collation() {
    let asked = |before: &str, after: &str| {
        let question = "SELECT @a = 'A', CHARSET(@a), COLLATION(@a)";
        format!(
            "{before}\nSET @a = 'a'\n{after}\n{question}\n{question} FROM t LIMIT 1\n{question}\n{question} FROM t LIMIT 2\nSET @b = 'b'\n{question}\n{question}"
        )
    };
    let scripts = [
        asked("SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET NAMES utf8mb4"),
        asked("SET NAMES utf8mb4", "SET NAMES utf8mb4 COLLATE utf8mb4_bin"),
        asked("SET NAMES latin1", "SET NAMES utf8mb4"),
        asked(
            "SET collation_connection = utf8mb4_bin",
            "SET collation_connection = utf8mb4_general_ci",
        ),
        asked("SET collation_connection = utf8mb4_bin", "DO 1"),
        asked("DO 1", "SET NAMES utf8mb4 COLLATE utf8mb4_bin"),
        asked(
            "SET CHARACTER SET latin1",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
        ),
    ];
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    same_on_both(&scripts);
}

/// B066: what a schema brings with it takes the place of what was set.
#[test]
fn b066_a_schema_brings_its_own_character_set() {
    let question = "SELECT @@character_set_database, @@collation_database";
    let script = format!(
        "SET collation_database = latin1_bin\n{question}\n{question}\nUSE mysql\n{question}\n{question}\nSELECT 1\n{question}"
    );
    same_on_both(&[&script]);
}

/// B073, B086: some state only the connection has that got it.
#[test]
fn b086_random_numbers_go_on_from_their_seeds() {
    same_on_both(&["SET rand_seed1 = 1, rand_seed2 = 2
        SELECT RAND()
        SELECT RAND() FROM t LIMIT 1
        SELECT RAND() FROM t LIMIT 2
        SELECT RAND()"]);
}

/// B073: `sql_auto_is_null`, as ODBC programs have it.
#[test]
fn b073_the_row_inserted_last_is_found_by_null() {
    for kind in [Kind::MariaDb, Kind::MySql] {
        let stage = Stage::with(kind, "", few);
        let mut others = Others::new(&stage);
        let mut client = stage.client();
        client.ok("SET sql_auto_is_null = 1");
        for v in ["91", "92"] {
            others.ask();
            client.ok(&format!("INSERT INTO t(v) VALUES ({v})"));
            others.ask();
            let found = client.query("SELECT v FROM t WHERE id IS NULL");
            assert_eq!(super::stage::table(&found), [v]);
        }
        client.ok("SET sql_auto_is_null = 0");
        let found = client.query("SELECT v FROM t WHERE id IS NULL");
        assert!(super::stage::table(&found).is_empty());
    }
}

/// B176: nothing says that something changed to a client that has not asked to be told.
#[test]
fn b176_no_reply_has_a_flag_that_the_server_would_not_set() {
    same(
        Kind::MySql,
        &["BEGIN
            ROLLBACK AND CHAIN
            COMMIT AND CHAIN
            ROLLBACK
            SET completion_type = 1
            BEGIN
            COMMIT
            ROLLBACK
            SET completion_type = 0
            COMMIT"],
    );
    same(
        Kind::MariaDb,
        &["SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT 1
            SET STATEMENT max_statement_time = 9 FOR SELECT id FROM t WHERE id = 1
            SET STATEMENT max_statement_time = 9 FOR UPDATE t SET v = v WHERE id = 1
            SELECT 1"],
    );
}

/// B047: a driver that says for each transaction whether it is read-only does not end on the primary for good.
#[test]
fn b047_access_modes_may_be_set_again_and_again() {
    for stage in Stage::both() {
        let mut client = stage.client();
        for n in 0..100 {
            client.ok("SET SESSION TRANSACTION READ ONLY");
            let level = ["READ COMMITTED", "REPEATABLE READ"][n % 2];
            client.ok(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
            client.ok("SET SESSION TRANSACTION READ WRITE");
            client.ok(&format!("SET time_zone = '+0{}:00'", n % 7));
        }
        let question =
            "SELECT @@time_zone, @@transaction_isolation, @@transaction_read_only FROM t LIMIT 1";
        let question = if stage.is_mariadb() {
            question.replace("transaction_", "tx_")
        } else {
            question.to_owned()
        };
        let reply = stage.on_replica(&mut client, &question);
        assert_eq!(super::stage::table(&reply), ["+01:00,REPEATABLE-READ,0"]);
    }
}

/// B162: what ends the connection on the server ends it here, however it was said.
#[test]
fn b162_transactions_that_end_their_connection() {
    for stage in Stage::both() {
        let ended = |client: &mut Wire, how: &str| {
            assert!(client.try_query("SELECT 1").is_err(), "behind {how}");
        };
        for how in ["2", "'RELEASE'"] {
            let mut client = stage.client();
            client.ok(&format!("SET completion_type = {how}"));
            client.ok("BEGIN");
            client.ok("ROLLBACK NO RELEASE");
            client.ok("SELECT 1");
            client.ok("COMMIT");
            ended(&mut client, how);
        }
        for how in ["COMMIT RELEASE", "ROLLBACK AND NO CHAIN RELEASE"] {
            let mut client = stage.client();
            client.ok("CREATE TEMPORARY TABLE tt(i INT)");
            client.ok("DROP TEMPORARY TABLE tt");
            let statement = client.prepare(how);
            client.execute(&statement, &[]).assert_ok();
            ended(&mut client, how);
        }
        let mut client = stage.client();
        client.ok("SET completion_type = 2");
        client.ok("SET completion_type = 0");
        client.ok("COMMIT");
        client.ok("SELECT 1");
    }
}

/// B130: what a view asks is asked by whoever reads it, not by who made it.
#[test]
fn b130_a_view_is_stored_as_it_was_said() {
    for stage in Stage::both() {
        let (mut direct, mut client) = (stage.direct(), stage.client());
        let asked = "SELECT ROW_COUNT() AS r, FOUND_ROWS() AS f, CONNECTION_ID() AS c, LAST_INSERT_ID() AS l";
        for begin in [
            "CREATE VIEW vq AS",
            "CREATE OR REPLACE VIEW vq AS",
            "ALTER VIEW vq AS",
        ] {
            let stored = |maker: &mut Wire| {
                maker.ok("SELECT 1 FROM t");
                maker.ok(&format!("{begin} {asked}"));
                super::stage::table(&stage.direct().query("SHOW CREATE VIEW vq"))
            };
            let expected = stored(&mut direct);
            let undo = if begin.starts_with("CREATE VIEW") {
                "DROP VIEW vq"
            } else {
                "CREATE OR REPLACE VIEW vq AS SELECT 1"
            };
            direct.ok(undo);
            assert_eq!(stored(&mut client), expected, "{begin}");
        }
    }
}

/// B077: the numbers of warnings and errors are described as a server describes them, whoever answers.
#[test]
fn b077_numbers_of_warnings_are_unsigned() {
    same_on_both(&["SELECT @@warning_count
        SELECT @@error_count, @@warning_count FROM t LIMIT 1
        SELECT CAST('abc' AS SIGNED)
        SELECT @@warning_count
        DROP TABLE IF EXISTS nosuch
        SELECT @@warning_count, @@session.error_count
        SELECT 1
        SELECT @@error_count"]);
}
