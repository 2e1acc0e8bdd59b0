//! Texts of entries, and that nobody can make up one.

use std::net::{IpAddr, Ipv4Addr};
use std::time::UNIX_EPOCH;

use super::*;
use crate::sql::Server;

fn dialect() -> Dialect {
    Dialect::new(Server::MySql, 80_036)
}

fn entry(what: What) -> Entry {
    Entry {
        at: UNIX_EPOCH + Duration::from_micros(1_796_048_577_120_000),
        connection: 16_777_217,
        client: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 5))),
        account: Some(0),
        claimed: Vec::new(),
        what,
    }
}

fn statement(said: Said) -> Statement {
    Statement {
        said,
        dialect: dialect(),
        schema: Some(b"shop".as_slice().into()),
        kind: Kind::Read,
        is_write: false,
        place: Place::Server {
            route: "replica",
            reason: "plain-read",
            host: 1,
            connection: 45,
        },
        since: Duration::ZERO,
        took: Duration::from_micros(1_200_345),
        acquired: Duration::from_micros(17),
        synced: Duration::ZERO,
        rows: 3,
        affected: None,
        error: 0,
        is_aborted: false,
        groups: Vec::new(),
    }
}

fn text(sql: &str) -> Said {
    Said::Text {
        text: sql.into(),
        len: sql.len(),
    }
}

fn labels() -> BTreeMap<String, String> {
    [("business".to_owned(), "web shop".to_owned())].into()
}

fn names(labels: &BTreeMap<String, String>) -> Names<'_> {
    Names {
        account: b"shop",
        labels: Some(labels),
        server: "10.0.0.2:3306".to_owned(),
        group: "main",
        groups: vec!["main", "g1"],
    }
}

fn slow(statement: Statement) -> String {
    let entry = entry(What::Statement(Box::new(statement)));
    let What::Statement(statement) = &entry.what else {
        unreachable!()
    };
    let (mut out, labels) = (Vec::new(), labels());
    write_slow(&mut out, &entry, statement, &names(&labels));
    String::from_utf8(out).unwrap()
}

fn json(what: What, how: AuditText) -> String {
    let (mut out, labels) = (Vec::new(), labels());
    write_json(&mut out, &entry(what), &names(&labels), how);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_slow_entry() {
    assert_eq!(
        slow(statement(text("SELECT *\nFROM t WHERE a = 'x;y'; "))),
        "# Time: 2026-11-30T14:22:57.120000Z\n\
         # User@Host: shop[shop] @  [10.0.0.5]  Id: 16777217\n\
         # Query_time: 1.200345  Lock_time: 0.000000  Rows_sent: 3  Rows_examined: 0  Rows_affected: 0\n\
         # Schema: shop  Last_errno: 0  Killed: 0\n\
         # Route: replica  Reason: plain-read  Group: main  Server: 10.0.0.2:3306  Server_connection: 45\n\
         # Acquire_time: 0.000017  Sync_time: 0.000000  Kind: read  Digest: 51a652bed4d75cfc\n\
         # Label_business: web_shop\n\
         use shop;\n\
         SET timestamp=1796048577;\n\
         SELECT *\nFROM t WHERE a = 'x;y';\n"
    );
}

/// A reader splits entries where a line that ends with `;` is followed by one that begins with `#`.
#[test]
fn a_text_makes_up_no_entry() {
    let forged = "# Time: 2020\nSELECT 1;\n# Time: 2026-01-01T00:00:00Z\n# User@Host: root[root] @ []\r# x\n#";
    let out = slow(statement(text(forged)));
    assert_eq!(out.matches("\n#").count(), 6, "{out}");
    assert_eq!(out.matches(";\n#").count(), 0, "{out}");
    assert!(out.ends_with("\n # Time: 2020\nSELECT 1;\n # Time: 2026-01-01T00:00:00Z\n # User@Host: root[root] @ []\r # x\n #;\n".trim_start_matches('\n')), "{out}");
    let mut odd = statement(text("SELECT 1"));
    odd.schema = Some(b"a;\n# Time: x".as_slice().into());
    let out = slow(odd);
    assert!(out.contains("\nuse a__#_Time:_x;\n"), "{out}");
}

#[test]
fn what_is_cut_says_so() {
    let cut = Said::Text {
        text: b"INSERT INTO t VALUES ('ab".to_vec(),
        len: 70_000,
    };
    let out = slow(statement(cut));
    assert!(
        out.contains("# Cut: Yes  Statement_bytes: 70000\n"),
        "{out}"
    );
    assert!(
        out.ends_with("\nINSERT INTO t VALUES ('ab /* cut: the statement has 70000 bytes */;\n")
    );
}

/// Cases: no password in any log.
#[test]
fn passwords_are_masked() {
    for sql in [
        "CREATE USER u IDENTIFIED BY 'Secr3t'",
        "SET PASSWORD = 'Secr3t'",
        "alter user u identified with x as 'Secr3t'",
        "CHANGE REPLICATION SOURCE TO SOURCE_USER='r', SOURCE_PASSWORD='Secr3t'",
        "UPDATE mysql.user SET authentication_string = 'Secr3t'",
        "SELECT PASSWORD('Secr3t') /* Secr3t */",
        // Cut in the middle of it.
        "CREATE USER u IDENTIFIED BY 'Secr3t",
    ] {
        let out = slow(statement(text(sql)));
        assert!(!out.contains("Secr3t") && out.contains('?'), "{out}");
        let what = What::Statement(Box::new(statement(text(sql))));
        let out = json(what, AuditText::Full);
        assert!(!out.contains("Secr3t") && out.contains('?'), "{out}");
    }
    // As a value of a parameter.
    let said = execution(
        "ALTER USER u IDENTIFIED BY ?",
        &[0xfd, 0],
        b"\x06Secr3t",
        0,
        1,
    );
    assert!(slow(statement(said)).ends_with("identified by ?;\n"));
}

#[test]
fn json_lines() {
    let what = |sql: &str| What::Statement(Box::new(statement(text(sql))));
    let head = "{\"time\":\"2026-11-30T14:22:57.120000Z\",\"event\":\"statement\",\"connection\":16777217,\
                \"account\":\"shop\",\"client\":\"10.0.0.5\",\"labels\":{\"business\":\"web shop\"},\"schema\":\"shop\",\
                \"kind\":\"read\",\"digest\":";
    let tail = "\"route\":\"replica\",\"reason\":\"plain-read\",\"group\":\"main\",\"server\":\"10.0.0.2:3306\",\
                \"server_connection\":45,\"rows\":3,\"error\":0,\"milliseconds\":1200.345,\
                \"acquire_milliseconds\":0.017,\"sync_milliseconds\":0.000}\n";
    let sql = "SELECT \"a\\\"\" ,\n 'x'";
    for (how, statement) in [
        (
            AuditText::Full,
            "\"statement\":\"SELECT \\\"a\\\\\\\"\\\" ,\\n 'x'\",",
        ),
        (AuditText::Masked, "\"statement\":\"select ?, ...\","),
        (AuditText::None, ""),
    ] {
        let line = json(what(sql), how);
        assert!(line.starts_with(head), "{line}");
        let rest = line[head.len()..].split_once(',').unwrap().1;
        assert_eq!(rest, format!("{statement}{tail}"));
    }
    // One line, whatever is in it.
    let odd = Said::Text {
        text: b"SELECT '\xff\x01\x7f\n\xe2\x80\xa8\xc2\x85'".to_vec(),
        len: 18,
    };
    let line = json(What::Statement(Box::new(statement(odd))), AuditText::Full);
    assert_eq!(
        line.trim_end().chars().filter(|c| c.is_control()).count(),
        0
    );
    assert!(
        line.contains("\"statement\":\"SELECT '\u{fffd}\\u0001\\u007f\\n\\u2028\\u0085'\",\"statement_hex\":\"53454c45435420"),
        "{line}"
    );
    let mut broken = statement(text("DELETE FROM t"));
    broken.place = Place::Shards;
    broken.affected = Some(7);
    broken.error = 1105;
    broken.is_aborted = true;
    let line = json(What::Statement(Box::new(broken)), AuditText::None);
    assert!(
        line.contains(
            "\"route\":\"sharded\",\"groups\":[\"main\",\"g1\"],\"rows\":3,\"affected\":7,\"error\":1105,\"aborted\":true,"
        ),
        "{line}"
    );
}

#[test]
fn coming_and_going() {
    let head = "{\"time\":\"2026-11-30T14:22:57.120000Z\",\"event\":";
    let schema = Some(b"s".as_slice().into());
    let line = json(What::LogIn { schema }, AuditText::Full);
    assert_eq!(
        line,
        format!(
            "{head}\"log-in\",\"connection\":16777217,\"account\":\"shop\",\"client\":\"10.0.0.5\",\"labels\":{{\"business\":\"web shop\"}},\"schema\":\"s\"}}\n"
        )
    );
    let mut refused = entry(What::Refused(1045));
    (refused.account, refused.client) = (None, None);
    refused.claimed = b"root\" or".to_vec();
    let mut out = Vec::new();
    write_json(&mut out, &refused, &Names::default(), AuditText::Full);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        format!(
            "{head}\"log-in-refused\",\"connection\":16777217,\"account\":\"root\\\" or\",\"client\":\"localhost\",\"error\":1045}}\n"
        )
    );
}

/// An execution of a text with parameters of these types, whose values are these bytes.
fn execution(sql: &str, types: &[u8], values: &[u8], nulls: u8, params: u16) -> Said {
    let mut packet = b"\x17\x01\0\0\0\0\x01\0\0\0".to_vec();
    packet.push(nulls);
    packet.push(1);
    packet.extend_from_slice(types);
    packet.extend_from_slice(values);
    Said::Execution {
        text: sql.into(),
        len: sql.len(),
        packet,
        params,
        types: None,
        capabilities: Capabilities::NONE,
    }
}

#[test]
fn values_take_the_places_of_parameters() {
    let filled = |said: &Said| String::from_utf8(values::filled(said, &dialect())).unwrap();
    let one = |kind: u8, flags: u8, value: &[u8]| {
        filled(&execution(
            "SELECT '?', ? /* ? */",
            &[kind, flags],
            value,
            0,
            1,
        ))
        .strip_prefix("SELECT '?', ")
        .and_then(|rest| rest.strip_suffix(" /* ? */"))
        .unwrap()
        .to_owned()
    };
    for (kind, flags, value, literal) in [
        (1, 0, &b"\xff"[..], "-1"),
        (1, 0x80, b"\xff", "255"),
        (2, 0, b"\xfe\xff", "-2"),
        (3, 0x80, b"\xff\xff\xff\xff", "4294967295"),
        (8, 0, b"\xfd\xff\xff\xff\xff\xff\xff\xff", "-3"),
        (5, 0, b"\0\0\0\0\0\0\xf8\x3f", "1.5e0"),
        (246, 0, b"\x0512.50", "12.50"),
        (246, 0, b"\x031 1", "'1 1'"),
        (253, 0, b"\x05it's\\", "'it''s\\\\'"),
        (252, 0, b"\x02\xff\x01", "x'ff01'"),
        (253, 0, b"\x02a\0", "x'6100'"),
        (10, 0, b"\x04\xea\x07\x0b\x1e", "'2026-11-30'"),
        (12, 0, b"\0", "'0000-00-00 00:00:00'"),
        (
            12,
            0,
            b"\x07\xea\x07\x0b\x1e\x0e\x16\x39",
            "'2026-11-30 14:22:57'",
        ),
        (
            7,
            0,
            b"\x0b\xea\x07\x0b\x1e\x0e\x16\x39\x01\0\0\0",
            "'2026-11-30 14:22:57.000001'",
        ),
        (11, 0, b"\x08\x01\x01\0\0\0\x02\x03\x04", "'-26:03:04'"),
        (11, 0, b"\0", "'00:00:00'"),
        // A value that is not there, one that is too long, and a type that nobody knows.
        (3, 0, b"\x01\0", "?"),
        (1, 0, b"\x01\x02", "?"),
        (99, 0, b"\x01", "?"),
    ] {
        assert_eq!(one(kind, flags, value), literal, "{kind} {value:?}");
    }
    let said = execution("SELECT ?, ?, ?", &[1, 0, 253, 0, 1, 0], b"\x01\x02", 2, 3);
    assert_eq!(filled(&said), "SELECT 1, NULL, 2");
    // Types as they were sent before.
    let mut said = execution("SELECT ?", &[], b"", 0, 1);
    if let Said::Execution { packet, types, .. } = &mut said {
        packet.truncate(11);
        packet.extend_from_slice(b"\0\x07");
        assert_eq!(filled_or_not(&said_of(packet, None)), "SELECT ?");
        *types = Some(Arc::from(&[1_u8, 0][..]));
    }
    assert_eq!(filled(&said), "SELECT 7");
}

fn said_of(packet: &[u8], types: Option<Arc<[u8]>>) -> Said {
    Said::Execution {
        text: b"SELECT ?".to_vec(),
        len: 8,
        packet: packet.to_vec(),
        params: 1,
        types,
        capabilities: Capabilities::NONE,
    }
}

fn filled_or_not(said: &Said) -> String {
    String::from_utf8(values::filled(said, &dialect())).unwrap()
}

proptest::proptest! {
    /// No packet and no text makes more than one entry, or none.
    #[test]
    fn whatever_is_said_is_one_entry(sql: Vec<u8>, packet: Vec<u8>, params in 0_u16..4, types: Option<Vec<u8>>) {
        let said = Said::Execution {
            len: sql.len(),
            text: sql,
            packet,
            params,
            types: types.map(Into::into),
            capabilities: Capabilities::NONE,
        };
        let entry = entry(What::Statement(Box::new(statement(said))));
        let labels = labels();
        let mut out = Vec::new();
        write_json(&mut out, &entry, &names(&labels), AuditText::Full);
        proptest::prop_assert_eq!(out.iter().filter(|b| **b == b'\n').count(), 1);
        out.clear();
        if let What::Statement(statement) = &entry.what {
            write_slow(&mut out, &entry, statement, &names(&labels));
        }
        let heads = out.windows(2).filter(|w| w == b"\n#").count();
        proptest::prop_assert_eq!(heads, 6);
        proptest::prop_assert!(out.starts_with(b"# Time: ") && out.ends_with(b";\n"));
    }
}
