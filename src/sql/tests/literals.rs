//! Literals to bytes and back.

use proptest::prelude::*;

use super::*;
use crate::sql::{decode, push_name, push_string};

#[test]
fn words_and_strings_are_decoded_as_the_servers_do() {
    let rows: &[(&[u8], Option<&[u8]>)] = &[
        (b"utf8mb4", Some(b"utf8mb4")),
        (b" 'utf8mb4' ", Some(b"utf8mb4")),
        (b"\"a'b\"", Some(b"a'b")),
        (b"'a''b'", Some(b"a'b")),
        (b"'a' 'b' \"c\"", Some(b"abc")),
        (b"'a'\"b\"", Some(b"ab")),
        (b"''", Some(b"")),
        (b"''''", Some(b"'")),
        (b"`a``b`", Some(b"a`b")),
        (
            b"'a\\'b\\\\\\n\\t\\0\\Z\\r\\b\\q'",
            Some(b"a'b\\\n\t\0\x1a\r\x08q"),
        ),
        (b"'\\%\\_'", Some(b"\\%\\_")),
        (b"/* x */ 'a' -- b", Some(b"a")),
        (b"'a", None),
        (b"'a' + 'b'", None),
        (b"N'a'", None),
        (b"_utf8'a'", None),
        (b"5", None),
        (b"a b", None),
        (b"@a", None),
        (b"", None),
    ];
    for d in BOTH {
        for (text, expected) in rows {
            assert_eq!(
                decode(text, &d).as_deref(),
                *expected,
                "{:?}",
                String::from_utf8_lossy(text)
            );
        }
    }
    let plain = Dialect {
        no_backslash_escapes: true,
        ..MYSQL
    };
    assert_eq!(decode(b"'a\\n'", &plain).as_deref(), Some(&b"a\\n"[..]));
    let ansi = Dialect {
        ansi_quotes: true,
        ..MYSQL
    };
    assert_eq!(decode(b"\"a\"\"b\"", &ansi).as_deref(), Some(&b"a\"b"[..]));
    let gbk = with_charset(MYSQL, Charset::Gbk);
    assert_eq!(
        decode(b"'\xbf\x5c'", &gbk).as_deref(),
        Some(&b"\xbf\x5c"[..])
    );
}

#[test]
fn what_no_name_can_be_is_not_quoted() {
    let gbk = with_charset(MYSQL, Charset::Gbk);
    for (name, d, is_name) in [
        (&b"a`b"[..], MYSQL, true),
        (b"\xbf\x60", gbk, true),
        (b"\xbf", gbk, false),
        (b"a\0b", MYSQL, false),
        (b"\xbf", MYSQL, true),
    ] {
        let mut out = b"x.".to_vec();
        assert_eq!(push_name(&mut out, name, &d), is_name, "{name:02x?}");
        assert_eq!(out.len() > 2, is_name);
    }
}

proptest! {
    #[test]
    fn what_is_quoted_is_one_token_and_comes_back(value in agree::text(), d in agree::dialect()) {
        let (mut string, mut name) = (Vec::new(), Vec::new());
        push_string(&mut string, &value, &d);
        prop_assert_eq!(decode(&string, &d), Some(value.clone()));
        // Nothing that follows is drawn into it.
        string.extend_from_slice(b", x");
        prop_assert!(tokens(&string, &d).trim_start_matches('s') == ",w");
        if push_name(&mut name, &value, &d) {
            prop_assert_eq!(decode(&name, &d), Some(value));
            name.extend_from_slice(b", x");
            prop_assert_eq!(tokens(&name, &d), "n,w");
        } else {
            prop_assert!(name.is_empty());
        }
    }
}
