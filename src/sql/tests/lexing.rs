//! Where tokens end, as the servers end them.

use super::*;

fn check(rows: &[(&[u8], &str, &str)]) {
    for (sql, mariadb, mysql) in rows {
        let text = String::from_utf8_lossy(sql);
        assert_eq!(tokens(sql, &MARIADB), *mariadb, "MariaDB: {text}");
        assert_eq!(tokens(sql, &MYSQL), *mysql, "MySQL: {text}");
    }
}

fn check_both(rows: &[(&[u8], &str)]) {
    for (sql, expected) in rows {
        check(&[(sql, expected, expected)]);
    }
}

#[test]
fn comments() {
    check_both(&[
        (b"5--1", "1--1"),
        (b"5-- 1", "1"),
        (b"5--\x011", "1"),
        (b"5--\x7f1", "1"),
        (b"5--\n+1", "1+1"),
        (b"5--", "1"),
        (b"5-", "1-"),
        ("5--\u{a0}1".as_bytes(), "1--w"),
        (b"5 # x\r+1\n+1", "1+1"),
        (b"5 #", "1"),
        (b"5/**/+1", "1+1"),
        (b"5 /*/ +1 */ +1", "1+1"),
        (b"5 /* a /* b */ +1", "1+1"),
        (b"5 /* ' */ +1", "1+1"),
        (b"5 -- '\n+1", "1+1"),
        (b"2 */**/ 3", "1*1"),
        (b"2 */* x */ 3", "1*1"),
        (b"6 //* x */ 3", "1/1"),
        (b"1 */ 2", "1*/1"),
        (b"5 /* a", "1$"),
        (b"5 /*", "1$"),
        (b"5 /", "1/"),
        (b"5 /*/", "1$"),
        (b"5 /* x\0 */ +1", "1+1"),
        (b"/*+ '*/ 1 -- ' */ 2", "1"),
        (b"/*+ ' */ 2", "1"),
    ]);
}

#[test]
fn version_comments() {
    check(&[
        (b"1 /*! +1 */", "1+1!", "1+1!"),
        (b"1 /*!+1*/", "1+1!", "1+1!"),
        (b"1 /* ! +1 */", "1", "1"),
        (b"1 /*!40101 +1 */", "1+1!", "1+1!"),
        (b"1 /*!40101+1 */", "1+1!", "1+1!"),
        (b"1 /*!4010 */", "11!", "11!"),
        // MariaDB does not run what asks for MySQL 5.7 to 9.
        (b"1 /*!50699 +1 */", "1+1!", "1+1!"),
        (b"1 /*!50700 +1 */", "1", "1+1!"),
        (b"1 /*!80000 +1 */", "1", "1+1!"),
        (b"1 /*!90704 +1 */", "1", "1+1!"),
        (b"1 /*!90705 +1 */", "1", "1"),
        (b"1 /*!99999 +1 */", "1", "1"),
        (b"1 /*!100000 +1 */", "1+1!", "1"),
        (b"1 /*!101119 +1 */", "1+1!", "1"),
        (b"1 /*!101120 +1 */", "1", "1"),
        (b"1 /*!999999 +1 */", "1", "1"),
        // Six digits: always one number on MariaDB, before a blank on MySQL.
        (b"1 /*!100000+1 */", "1+1!", "11+1!"),
        (b"1 /*!401011*/", "1", "11!"),
        (b"1 /*!401011 +1 */", "1", "1"),
        (b"1 /*!4010199*/", "1", "11!"),
        (b"1 /*!080000 +1 */", "1", "1+1!"),
        (b"1 /*!080000\t+1 */", "1", "1+1!"),
        (b"1 /*!080000*/", "1", "11!"),
        (b"1 /*!080000-7*/", "1", "11-1!"),
        (b"1 /*!010000 +1 */", "1+1!", "1+1!"),
        (b"1 /*!0800001 +1 */", "1", "11+1!"),
        // MariaDB's own.
        (b"1 /*M! +1 */", "1+1!", "1"),
        (b"1 /*M!100000 +1 */", "1+1!", "1"),
        (b"1 /*M!80000 +1 */", "1+1!", "1"),
        (b"1 /*M!50700 +1 */", "1+1!", "1"),
        (b"1 /*M!999999 +1 */", "1", "1"),
        (b"1 /*m! +1 */", "1", "1"),
        // Nesting: one level in those that are skipped, plain comments in those that run.
        (b"1 /*!99999 /* x */ +1 */ +1", "1+1", "1+1"),
        (b"1 /*!99999 /* x /* y */ +1 */ +1 */", "1+1*/", "1+1*/"),
        (b"1 /*!99999 ' */ ' */ +1", "1s$", "1s$"),
        (b"1 /*!99999 # */ +1", "1+1", "1+1"),
        (b"1 /*!99999 x", "1$", "1$"),
        (b"1 /*!99999 /* x */", "1$", "1$"),
        (b"1 /*!40101 /* x */ +1 */ +1", "1+1+1!", "1+1+1!"),
        (b"1 /*!40101 /*!40101 +1 */ +1", "1+1+1!", "1+1+1!"),
        (b"1 /*!40101 /*!40101 +1 */ +1 */", "1+1+1*/!", "1+1+1*/!"),
        (b"1 /*!40101 /*!999999 +1 */ +1 */ +1", "1+1+1!", "1+1+1!"),
        (b"1 /*!40101 '*/' */", "1s!", "1s!"),
        (b"1 /*!40101 -- */ \n +1 */ +1", "1+1+1!", "1+1+1!"),
        (b"1 /*!40101 # */ +1 \n +1 */ +1", "1+1+1!", "1+1+1!"),
        (b"1 /*!40101 +1", "1+1!$", "1+1!$"),
        (b"/*!40101 SELECT 1; */ SELECT 2", "w1;w1!?", "w1;w1!?"),
        (b"/*!40101 SELECT 1 */; SELECT 2", "w1;w1!", "w1;w1!"),
    ]);
}

#[test]
fn version_comments_follow_the_version() {
    let tokens_at = |server, version| tokens(b"1 /*!80013 +1 */", &Dialect::new(server, version));
    assert_eq!(tokens_at(Server::MySql, 8_00_12), "1");
    assert_eq!(tokens_at(Server::MySql, 8_00_13), "1+1!");
    assert_eq!(tokens_at(Server::MySql, 0), "1+1!?");
    assert_eq!(tokens_at(Server::MariaDb, 0), "1");
    let old = |version| tokens(b"1 /*!50000 +1 */", &Dialect::new(Server::MySql, version));
    assert_eq!(old(0), "1+1!");
    // Five digits only, before 8.1.
    let six = |version| tokens(b"1 /*!080000 +1 */", &Dialect::new(Server::MySql, version));
    assert_eq!(six(8_00_36), "11+1!");
    assert_eq!(six(8_01_00), "1+1!");
}

#[test]
fn strings_and_quoted_names() {
    check_both(&[
        (b"'a' 'b'", "ss"),
        (b"'a''b'", "ss"),
        (b"'a\\'b'", "s"),
        (b"'a\\\\' , 1", "s,1"),
        (b"'\\' , 1", "s$"),
        (b"'\\", "s$"),
        (b"'", "s$"),
        (b"\"a\\\"b\"", "s"),
        (b"'a\"' 1", "s1"),
        (b"'a\0b' 1", "s1"),
        (b"`a\\` 1", "n1"),
        (b"`a``b` 1", "n1"),
        (b"`a``", "n$"),
        (b"`", "n$"),
        (b"`a\0b` 1", "nwn?$"),
        (b"x'4D' 1", "ws1"),
        (b"N'a\\'b' 1", "ws1"),
        (b"_utf8mb4'a\\'b' 1", "ws1"),
        (b"n 'a'", "ws"),
    ]);
    let ansi = |d| Dialect {
        ansi_quotes: true,
        ..d
    };
    let plain = |d| Dialect {
        no_backslash_escapes: true,
        ..d
    };
    for d in BOTH {
        assert_eq!(tokens(b"\"a\\\" 1", &ansi(d)), "n1");
        assert_eq!(tokens(b"\"a\"\"b\" 1", &ansi(d)), "n1");
        assert_eq!(tokens(b"'a\\' 1'", &ansi(d)), "s");
        assert_eq!(tokens(b"@\"a\\\" 1", &ansi(d)), "@1");
        assert_eq!(tokens(b"@\"a\\\" 1", &d), "@$");
        assert_eq!(tokens(b"'\\' , 1", &plain(d)), "s,1");
        assert_eq!(tokens(b"\"\\\" , 1", &plain(d)), "s,1");
        assert_eq!(tokens(b"'\\'' , 1", &plain(d)), "ss$");
    }
}

#[test]
fn numbers_and_names() {
    check_both(&[
        (b"1FROM", "w"),
        (b"1e5FROM", "1w"),
        (b"1e+5FROM", "1w"),
        (b"1e-5 ", "1"),
        (b"1e", "w"),
        (b"1e+", "w+"),
        (b"1ex", "w"),
        (b"1.FROM", "1w"),
        (b"1.5FROM", "1w"),
        (b"1.5e3FROM", "1w"),
        (b".5FROM", "1w"),
        (b"SELECT.5", "w.w"), // servers refuse it
        (b"SELECT .5", "w1"),
        (b"a .5", "w1"),
        (b"0x4D F", "1w"),
        (b"0x4DFROM", "w"),
        (b"0x", "w"),
        (b"0X4D", "w"),
        (b"0b01 F", "1w"),
        (b"0b01FROM", "w"),
        (b"0b2", "w"),
        (b"t.1e5", "w.w"),
        (b"t.1", "w.w"),
        (b"db.1t", "w.w"),
        (b"1a", "w"),
        (b"a$b _c $d", "www"),
        (b"1..5", "11"),
        (b"9223372036854775808", "1"),
        ("caf\u{e9} \u{4e2d}".as_bytes(), "ww"),
        (b"SELECT\x0b1\x0c1", "w11"),
        (b"SELECT\x1f1", "w\x1f1"),
        (b"5 \0 +1", "1\0+1?"),
        (b"1:=2", "1=1"),
        (b":x", ":w"),
    ]);
    check(&[(b"\\NFROM", "1w", "1w")]);
}

#[test]
fn variables() {
    check_both(&[
        (b"@a.b 1", "@1"),
        (b"@`a b` 1", "@1"),
        (b"@'a b' 1", "@1"),
        (b"@\"a b\" 1", "@1"),
        (b"@$x,@_y", "@,@"),
        (b"@ a", "@w"),
        (b"@", "@"),
        (b"@a:=1", "@=1"),
        (b"@@version", "vw"),
        (b"@@session . autocommit", "vw.w"),
        (b"@@session.`autocommit`", "vw.n"),
        ("@\u{e9} 1".as_bytes(), "@1"),
    ]);
}

#[test]
fn dollar_quotes() {
    check(&[
        (b"$$ ' ; $$ x", "ws$", "sw"),
        (b"$a$ ' $b$ $a$ x", "ws$", "sw"),
        (b"$a$ ' $A$ $a$ x", "ws$", "sw"),
        (b"$1$ ' $1$ x", "ws$", "sw"),
        ("$\u{e9}$ ' $\u{e9}$ x".as_bytes(), "ws$", "sw"),
        (b"$a b$ ' x", "wws$", "wws$"),
        (b"$a ' x", "ws$", "ws$"),
        (b"$$ ' x", "ws$", "s$"),
        (b"t.$$ ' x", "w.ws$", "w.ws$"),
        (b"a$$ ' x", "ws$", "ws$"),
        (b"1$$ ' x", "ws$", "ws$"),
        (b"@$$ ' x", "@s$", "@s$"),
    ]);
    assert_eq!(
        tokens(b"$$ ' $$ x", &Dialect::new(Server::MySql, 8_00_36)),
        "sw?"
    );
}

#[test]
fn b282_trail_bytes_are_not_quotes() {
    use Charset::{Big5, Gb18030, Gbk, Plain, Sjis};
    // Rows: the set, a text that begins a string, and how the servers read it.
    let rows: &[(Charset, &[u8], &str)] = &[
        (Gbk, b"'\xbf\x5c', 1", "s,1"),
        (Gbk, b"\"\xbf\x5c\", 1", "s,1"),
        (Gbk, b"'\x81\x5c', 1", "s,1"),
        (Gbk, b"'\xfe\x5c', 1", "s,1"),
        (Gbk, b"'\x80\x5c', 1", "s$"),
        (Gbk, b"'\xff\x5c', 1", "s$"),
        // One byte is skipped behind a backslash, even the first of a character.
        (Gbk, b"'\\\xbf\x5c', 1", "s$"),
        (Gbk, b"'\\\xbf\x5c'', 1", "s,1"),
        // A first byte before a quote stands for itself.
        (Gbk, b"'\xbf', 1", "s,1"),
        (Gbk, b"'\xbf\x5c'', 1", "ss$"),
        (Gbk, b"`\xbf\x60` 1", "n1"),
        (Gbk, b"\xbf\x60 1", "w1"),
        (Gb18030, b"'\x81\x5c', 1", "s,1"),
        (Gb18030, b"'\x81\x30\x81\x30', 1", "s,1"),
        (Gb18030, b"'\x81\x30', 1", "s,1"),
        (Gb18030, b"'\xff\x5c', 1", "s$"),
        (Big5, b"'\xa1\x5c', 1", "s,1"),
        (Big5, b"'\x81\x5c', 1", "s$"),
        (Sjis, b"'\x83\x5c', 1", "s,1"),
        (Sjis, b"'\xe0\x5c', 1", "s,1"),
        (Sjis, b"'\xfc\x5c', 1", "s,1"),
        (Sjis, b"'\xfd\x5c', 1", "s$"),
        (Sjis, b"'\xa0\x5c', 1", "s$"),
        (Sjis, b"'\x80\x5c', 1", "s$"),
        (Sjis, b"'\xb1\x5c', 1", "s$"),
        (Plain, b"'\xbf\x5c', 1", "s$"),
    ];
    for (charset, sql, expected) in rows {
        for d in BOTH {
            assert_eq!(
                tokens(sql, &with_charset(d, *charset)),
                *expected,
                "{charset:?} {sql:02x?}"
            );
        }
    }
}

#[test]
fn bytes_of_8_bit_sets_may_be_blanks() {
    let rows: &[(&[u8], &[u8], &str)] = &[
        (b"latin1", b"SELECT\xa05", "w1"),
        (b"latin1", b"FOR\xa0UPDATE", "ww"),
        (b"latin1", b"5--\xa01", "1"),
        (b"latin2", b"SELECT\xa05", "w1"),
        (b"latin1", b"SELECT\xff5", "w"),
        (b"cp866", b"SELECT\xff5", "w1"),
        (b"utf8mb4", b"SELECT\xa05", "w"),
        (b"cp1251", b"SELECT\xa05", "w"),
        (b"cp850", b"SELECT\xff5", "w"),
        (b"hp8", b"5--\x801", "1--w?"),
        (b"latin1", b"@a\xa0b", "@w"),
    ];
    for (charset, sql, expected) in rows {
        for d in BOTH {
            let d = with_charset(d, Charset::from_name(charset));
            assert_eq!(tokens(sql, &d), *expected, "{charset:?} {sql:02x?}");
        }
    }
}

#[test]
fn character_sets_by_name_and_number() {
    for (name, id, set) in [
        ("gbk", 28, Charset::Gbk),
        ("GBK", 87, Charset::Gbk),
        ("gb18030", 248, Charset::Gb18030),
        ("big5", 1, Charset::Big5),
        ("sjis", 13, Charset::Sjis),
        ("cp932", 95, Charset::Sjis),
        ("latin1", 8, Charset::SingleByte { blank: 0xa0 }),
        ("cp866", 36, Charset::SingleByte { blank: 0xff }),
        ("utf8mb4", 45, Charset::Plain),
        ("utf8mb4", 255, Charset::Plain),
        ("ujis", 12, Charset::Plain),
        ("euckr", 19, Charset::Plain),
        ("nonsense", 0, Charset::Plain),
        // MariaDB's NOPAD collations.
        ("gbk", 1052, Charset::Gbk),
        ("latin1", 1032, Charset::SingleByte { blank: 0xa0 }),
        ("utf8mb4", 1069, Charset::Plain),
        ("utf8mb4", 2048, Charset::Plain),
    ] {
        assert_eq!(Charset::from_name(name.as_bytes()), set, "{name}");
        assert_eq!(Charset::from_collation_id(id), set, "{id}");
    }
}
