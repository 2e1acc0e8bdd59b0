//! Names in statements that are seen piece by piece.

use std::sync::Arc;

use super::placement;
use crate::shard::Lookout;
use crate::sql::{Charset, Dialect, Server};

const D: Dialect = Dialect::new(Server::MySql, 90_700);

/// Whether a name is seen, in whatever pieces the text comes.
fn sees(text: &str, d: &Dialect, quotes: Option<bool>) -> bool {
    let placement = Arc::new(placement());
    let in_pieces = |size: usize| {
        let mut lookout = Lookout::new(&placement, d, quotes);
        let mut found = false;
        for piece in text.as_bytes().chunks(size) {
            found |= lookout.sees(piece);
        }
        found | lookout.ends()
    };
    let found = in_pieces(text.len().max(1));
    for size in 1..8 {
        assert_eq!(in_pieces(size), found, "{text} in pieces of {size}");
    }
    found
}

#[test]
fn names_are_seen_where_tables_can_stand() {
    for text in [
        "SELECT a FROM b UNION SELECT c FROM ord",
        "SELECT a FROM b, `ord`",
        "SELECT a FROM t1.ord WHERE x",
        "SELECT a FROM b JOIN\nitem",
        "INSERT INTO x SELECT * FROM zone",
        "SELECT 'it''s', 'a\\'b', \"x\" FROM ord",
        "SELECT 1 -- '\nFROM ord",
        "SELECT 1 # '\nFROM ord",
        "SELECT 1 /* ' */ FROM ord",
        "SELECT 1 /**/ FROM ord",
        "SELECT 1 /***/ FROM ord",
        "SELECT 1 /*/ ' */ FROM ord",
        "SELECT 1--1 FROM ord",
        "SELECT 1 FROM /*!50000ord */",
        "SELECT 1 FROM /*M! ord */",
        "SELECT 1 /*Mary's*/ FROM ord",
        "SELECT 1 /*!99999 ' */ FROM ord",
        "SELECT 1 FROM `sk-list`",
        "SELECT `a``'b` FROM ord",
        "UPDATE a SET b = 1; DELETE FROM ord",
        "SELECT a FROM ORD",
        "SELECT a FROM (SELECT 1) x, ord",
        "SELECT a FROM (SELECT a FROM b WHERE c IN (1)) x, ord",
        "SELECT a FROM b IGNORE INDEX FOR ORDER BY (c), ord",
    ] {
        assert!(sees(text, &D, Some(false)), "{text}");
    }
    for text in [
        "SELECT a FROM b WHERE ord = 1",
        "INSERT INTO b VALUES (' FROM ord ', ' \\' FROM ord', 'it''s FROM ord')",
        "INSERT INTO b VALUES (\" FROM ord \")",
        "SELECT a FROM b -- FROM ord",
        "SELECT a FROM b # FROM ord",
        "SELECT a FROM b /* FROM ord */ WHERE c",
        "SELECT a FROM order_b, border, ord1",
        "SELECT (SELECT 1 FROM b), ord FROM b",
        "",
    ] {
        assert!(!sees(text, &D, Some(false)), "{text}");
    }
}

#[test]
fn where_quotes_are_not_known_all_is_looked_at() {
    let string = "INSERT INTO b VALUES (' FROM ord ')";
    let gbk = Dialect {
        charset: Charset::Gbk,
        ..D
    };
    assert!(sees(string, &gbk, Some(false)));
    assert!(sees(string, &D, None));
    let raw = Dialect {
        no_backslash_escapes: true,
        ..D
    };
    assert!(sees("SELECT 'a\\' FROM ord", &raw, Some(false)));
    assert!(!sees("SELECT 'a\\' FROM ord", &D, Some(false)));
    assert!(sees("SELECT a FROM \"ord\"", &D, Some(true)));
}
