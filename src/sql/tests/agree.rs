//! The scanner and the naive lexer agree on any text in any dialect, and no text is too odd.

use proptest::prelude::*;

use super::naive::Naive;
use super::*;
use crate::sql::scan::Token;

fn agree(sql: &[u8], d: Dialect) {
    let (expected, expected_found) = Naive::new(sql, d).all();
    let mut scan = Scanner::new(sql, &d);
    let mut tokens = Vec::new();
    loop {
        let Token { tok, start, end } = scan.next();
        if tok == Tok::End {
            break;
        }
        tokens.push((tok, start, end));
    }
    assert_eq!(tokens, expected, "{d:?} {:?}", String::from_utf8_lossy(sql));
    assert_eq!(
        scan.found,
        expected_found,
        "{d:?} {:?}",
        String::from_utf8_lossy(sql)
    );
}

/// Pieces that begin, end or hide things.
const PIECES: &[&[u8]] = &[
    b"'",
    b"\"",
    b"`",
    b"\\",
    b"/*",
    b"*/",
    b"/",
    b"*",
    b"/*!",
    b"/*M!",
    b"/*!40101",
    b"/*!80000 ",
    b"/*!080000 ",
    b"/*!999999",
    b"-- ",
    b"--",
    b"-",
    b"#",
    b"\n",
    b" ",
    b"\t",
    b"\0",
    b"@",
    b"@@",
    b":=",
    b":",
    b";",
    b"(",
    b")",
    b",",
    b".",
    b"=",
    b"\\N",
    b"$",
    b"$$",
    b"$a$",
    b"a",
    b"FOR",
    b"UPDATE",
    b"select",
    b"x",
    b"N",
    b"0",
    b"1",
    b"12",
    b"0x",
    b"0b",
    b"1e",
    b"e5",
    b"+",
    b"\xbf\x5c",
    b"\xbf\x60",
    b"\x81",
    b"\x5c",
    b"\x60",
    b"\xa0",
    b"\xff",
    b"\x81\x30",
    b"\x83\x5c",
    b"\xa1\x5c",
    b"\xc3\xa9",
    b"master",
    b"replica",
];

pub(super) fn dialect() -> impl Strategy<Value = Dialect> {
    let charset = prop_oneof![
        3 => Just(Charset::Plain),
        1 => Just(Charset::SingleByte { blank: 0xa0 }),
        1 => Just(Charset::Gbk),
        1 => Just(Charset::Gb18030),
        1 => Just(Charset::Big5),
        1 => Just(Charset::Sjis),
    ];
    let server = prop_oneof![
        Just((Server::MariaDb, 10_11_19)),
        Just((Server::MySql, 9_07_04)),
        Just((Server::MySql, 8_00_36)),
        Just((Server::MySql, 0)),
        Just((Server::MariaDb, 0)),
    ];
    (server, charset, any::<bool>(), any::<bool>()).prop_map(
        |((server, version), charset, ansi_quotes, no_backslash_escapes)| Dialect {
            server,
            version,
            charset,
            ansi_quotes,
            no_backslash_escapes,
        },
    )
}

pub(super) fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![8 => prop::sample::select(PIECES).prop_map(<[u8]>::to_vec), 1 => any::<u8>().prop_map(|b| vec![b])];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_scanner_reads_as_the_naive_lexer(sql in text(), d in dialect()) {
        agree(&sql, d);
    }

    #[test]
    fn nothing_panics_and_tokens_lie_in_order(sql in prop::collection::vec(any::<u8>(), 0..200), d in dialect()) {
        agree(&sql, d);
        let _ = classify(&sql, &d).wants_primary();
        let _ = crate::sql::classify_prefix(&sql, &d);
        let _ = crate::sql::kill_target(&sql, &d);
        let _ = crate::sql::explain_route_target(&sql, &d);
        crate::sql::effects(&sql, &d, &mut |_| {});
    }

    #[test]
    fn no_text_panics_behind_any_first_words(
        head in prop::sample::select(&["SET ", "SET @a=", "CREATE ", "DROP TABLE ", "EXPLAIN ", "SHOW ", "BEGIN ", "KILL "][..]),
        tail in text(),
        d in dialect(),
    ) {
        let sql = [head.as_bytes(), &tail].concat();
        let _ = classify(&sql, &d);
        let _ = crate::sql::kill_target(&sql, &d);
        let _ = crate::sql::explain_route_target(&sql, &d);
        let mut spans_are_inside = true;
        crate::sql::effects(&sql, &d, &mut |effect| {
            if let crate::sql::Effect::SetVariable { value, .. } = effect {
                spans_are_inside &= sql.as_ptr_range().contains(&value.text.as_ptr());
            }
        });
        prop_assert!(spans_are_inside);
    }
}

/// Words of statements, from which odd statements are made.
const WORDS: &str = "SELECT SET @a @b @@sql_mode := = , ; ( ) a b 1 'x' `n` INTO FROM t FOR UPDATE SHARE LOCK IN MODE WITH AS \
    CREATE TEMPORARY TABLE PROCEDURE TRIGGER EVENT PACKAGE BEGIN END IF THEN CASE LOOP WHILE REPEAT DROP ALTER RENAME TO EXPLAIN \
    ANALYZE FORMAT DESC SHOW TABLES WARNINGS LAST ROUTE USE PREPARE EXECUTE DEALLOCATE UNLOCK BACKUP STAGE FLUSH READ HANDLER OPEN \
    CLOSE CALL GET DIAGNOSTICS LOAD DATA INDEX STATEMENT SESSION GLOBAL TRANSACTION NAMES COLLATE DEFAULT PASSWORD ROLE INSERT \
    DELETE REPLACE NOT ATOMIC WORK START XA BINLOG KILL . ff( MAX( NEXT VALUE /*!40101 /*!99999 */ /*master*/ DATABASE EXPORT \
    FROBNICATE ROLLBACK COMMIT RECURSIVE VALUES DO";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_is_said_of_a_statement_agrees_with_itself(
        words in prop::collection::vec(prop::sample::select(WORDS.split_whitespace().collect::<Vec<_>>()), 0..16),
        choice in any::<u8>(),
    ) {
        let text = words.join(" ");
        crate::fuzzing::sql_statement(&[&[choice], text.as_bytes()].concat());
    }
}
