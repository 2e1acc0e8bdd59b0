//! Session variables: what a client set is there wherever its next statement runs, and what it asked to be told it is told.

use crate::common::Mask;
use crate::compare_scripts;
use crate::script::Script;

/// Statements that set something, then the same question to either server.
fn asked(set: &str, question: &str) -> Script {
    let mut s = Script::of(set);
    s.read(question);
    s.write(&format!("{question} /*master*/")).read(question);
    s
}

#[test]
fn settings_are_the_same_on_both_connections() {
    let charsets = "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection, 'ä', LENGTH('ä')";
    let mut scripts = Vec::new();
    for set in [
        "SET NAMES latin1",
        "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_520_ci",
        "SET NAMES 'utf8mb4'",
        "SET NAMES `binary`",
        "SET NAMES DEFAULT",
        "SET NAMES gbk",
        "SET NAMES sjis",
        "SET CHARACTER SET 'cp1251'",
        "SET CHARACTER SET DEFAULT",
        "SET character_set_results = NULL",
        "SET character_set_client = latin1",
        "SET collation_connection = utf8mb4_bin",
        "SET character_set_connection = latin1, character_set_results = binary",
    ] {
        scripts.push((set, asked(set, charsets)));
    }
    let modes = "SELECT @@sql_mode, 'a' || 'b'";
    for set in [
        "SET sql_mode = ''",
        "SET sql_mode = 'PIPES_AS_CONCAT'",
        "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
        "SET SESSION sql_mode = 'ANSI'",
        "SET @@session.sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')",
        "SET sql_mode = DEFAULT",
        "SET sql_mode = 0",
        "SET sql_mode = (SELECT CONCAT(@@sql_mode, ',PIPES_AS_CONCAT'))",
        "SET SESSION sql_mode = 'NO_SUCH_MODE'",
    ] {
        let mut script = Script::of(set);
        script.query("SELECT @@sql_mode, \"1\", '\\\\', 1 AS \"b\"");
        script.read(modes).write("SELECT @@sql_mode /*master*/");
        scripts.push((set, script));
    }
    let zones = "SELECT @@time_zone, FROM_UNIXTIME(86400)";
    for set in [
        "SET time_zone = '+05:30'",
        "SET time_zone = DEFAULT",
        "SET @@time_zone := '-01:00'",
        "SET time_zone = 'nowhere'",
    ] {
        scripts.push((set, asked(set, zones)));
    }
    compare_scripts(&scripts);
}

#[test]
fn lists_of_settings() {
    let many = "SELECT @@sql_mode, @@auto_increment_increment, @@auto_increment_offset, @@wait_timeout, @@time_zone, @@collation_connection, @@lock_wait_timeout";
    let mut scripts: Vec<(&str, Script)> = [
        (
            "list",
            "SET @@SESSION.sql_mode = '', @@SESSION.auto_increment_increment = 5, @@SESSION.auto_increment_offset = 3, @@SESSION.wait_timeout = 27000",
        ),
        (
            "names in the middle",
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES', NAMES latin1, time_zone = '+02:00'",
        ),
        (
            "batch",
            "SET time_zone = '+01:00'; SET NAMES latin1; SET lock_wait_timeout = 9",
        ),
        (
            "one is wrong",
            "SET lock_wait_timeout = 9, no_such_variable = 1
             SET lock_wait_timeout = 9, time_zone = 'nowhere'",
        ),
        (
            "again and again",
            "SET time_zone = '+01:00'
             SET time_zone = '+02:00'
             SET NAMES latin1
             SET time_zone = '+03:00'
             SET NAMES utf8mb4",
        ),
        (
            "one from another",
            "SET lock_wait_timeout = 77
             SET @@wait_timeout = @@lock_wait_timeout
             SET lock_wait_timeout = 78",
        ),
    ]
    .into_iter()
    .map(|(name, set)| (name, asked(set, many)))
    .collect();

    let mut failing = Script::new();
    failing
        .query("SET lock_wait_timeout = 9; SET no_such_variable = 1; SET lock_wait_timeout = 10");
    failing.query(many);
    failing.query("SET lock_wait_timeout = 11").query(many);
    scripts.push(("batch, one is wrong", failing));

    let mut between = Script::new();
    for zone in 1..9 {
        between.query(&format!("SET time_zone = '+0{zone}:00'"));
        between.read(many);
    }
    scripts.push(("read between", between));

    let mut more = Script::of("< SELECT 1");
    for n in 0..80 {
        more.query(&format!("SET @v{n} = {n}"));
    }
    more.lines(
        "SELECT @v0, @v40, @v79
         SET @v3 = 'x'
         SELECT @v3, @v4",
    );
    scripts.push(("more than is remembered", more));
    compare_scripts(&scripts);
}

/// What a client may ask the server to tell of its state.
#[test]
fn session_tracking() {
    let mut s = Script::of(
        "SET session_track_state_change = ON
         SET @a = 1
         USE {s}
         < SELECT 1
         SET session_track_transaction_info = 'CHARACTERISTICS'
         BEGIN
         SELECT i FROM n3
         INSERT INTO u VALUES (1)
         ROLLBACK
         < SELECT i FROM n3
         START TRANSACTION READ ONLY
         COMMIT
         SET TRANSACTION ISOLATION LEVEL READ COMMITTED
         BEGIN
         COMMIT
         LOCK TABLES n3 READ
         UNLOCK TABLES
         SET session_track_system_variables = 'time_zone,sql_mode'
         SET time_zone = '+01:00'
         SET sql_mode = 'ANSI'
         SET NAMES latin1
         < SELECT 1
         CREATE TEMPORARY TABLE tt(a INT)
         DROP TEMPORARY TABLE tt",
    );
    s.command(&[0x1f]).lines(
        "SET NAMES latin1
         < SELECT 2
         SET session_track_schema = OFF
         USE mysql
         USE {s}
         < SELECT i FROM n3",
    );
    let mut star = Script::new();
    for sql in [
        "SET session_track_system_variables = '*'",
        "SET NAMES utf8mb4",
        "SET lock_wait_timeout = 5",
        "SELECT i FROM n3",
        "INSERT INTO u VALUES (1)",
        "DELETE FROM u",
        "BEGIN",
        "COMMIT",
    ] {
        // Both count statements of the whole server.
        star.query(sql).mask(Mask::Variable("statement_id"));
        star.mask(Mask::Variable("last_gtid"));
    }
    compare_scripts(&[("tracking", s), ("all variables", star)]);
}

/// Texts in character sets whose second bytes look like quotes and backslashes.
#[test]
fn character_sets_with_treacherous_bytes() {
    let mut s = Script::of("SET NAMES gbk");
    for text in [
        &b"\x03SELECT '\xbf\x5c', HEX('\xbf\x5c')"[..],
        b"\x03SELECT '\xbf\x27', 1",
        b"\x03SELECT `\xbf\x5c` FROM n3",
        b"\x03SELECT '\xbf\x5c', '; DELETE FROM n3 -- '",
    ] {
        s.command(text);
    }
    s.query("SET NAMES sjis");
    s.command(b"\x03SELECT '\x83\x5c', HEX('\x83\x5c')");
    s.command(b"\x03SELECT '\x95\x5c\x27', 1");
    s.query("SET NAMES big5");
    s.command(b"\x03SELECT '\xa5\x5c', HEX('\xa5\x5c')");
    s.lines(
        "SET NAMES utf8mb4
         SELECT 'ä😀', HEX('😀')
         < SELECT i FROM n3",
    );
    compare_scripts(&[("character sets", s)]);
}
