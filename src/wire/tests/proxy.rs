//! PROXY headers: what each says, cut at every byte, and what is none.

use std::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;

use super::hex;
use crate::wire::ProxyHeader;

const SIGNATURE: &str = "0d0a0d0a000d0a515549540a";

fn client(address: &str) -> ProxyHeader {
    ProxyHeader::Client(address.parse().unwrap())
}

fn v2(digits: &str) -> Vec<u8> {
    hex(&format!("{SIGNATURE}{digits}"))
}

/// What is said, whole and with more behind it; nothing is said by a beginning.
fn assert_says(bytes: &[u8], header: ProxyHeader) {
    for cut in 0..bytes.len() {
        assert_eq!(ProxyHeader::parse(&bytes[..cut]), Ok(None), "at {cut}");
    }
    let behind = [bytes, b"\x01\x02"].concat();
    for bytes in [bytes, &behind] {
        let said = ProxyHeader::parse(bytes).unwrap().unwrap();
        assert_eq!(said, (header, behind.len() - 2));
    }
}

#[test]
fn lines() {
    for (line, header) in [
        ("TCP4 10.1.2.3 10.0.0.1 56324 3306", client("10.1.2.3")),
        (
            "TCP4 255.255.255.255 255.255.255.255 65535 0",
            client("255.255.255.255"),
        ),
        ("TCP6 2001:db8::7 ::1 1 2", client("2001:db8::7")),
        ("TCP6 ::ffff:10.1.2.3 ::1 1 2", client("10.1.2.3")),
        (
            "TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535",
            client("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ),
        ("UNKNOWN", ProxyHeader::Own),
        ("UNKNOWN what ever 1", ProxyHeader::Own),
    ] {
        assert_says(format!("PROXY {line}\r\n").as_bytes(), header);
    }
}

#[test]
fn binary() {
    let v4 = "0a010203 0a000001 dc04 0cea";
    let v6 = "20010db8000000000000000000000007 00000000000000000000000000000001 dc04 0cea";
    let unix = "2f".repeat(216);
    for (digits, header) in [
        (format!("21 11 000c {v4}"), client("10.1.2.3")),
        // A name of the TLS server, and an empty field.
        (
            format!("21 11 0014 {v4} 02 0002 6162 04 0000"),
            client("10.1.2.3"),
        ),
        (format!("21 21 0024 {v6}"), client("2001:db8::7")),
        // A health check, with addresses and without.
        (format!("20 11 000c {v4}"), ProxyHeader::Own),
        ("20 00 0000".to_owned(), ProxyHeader::Own),
        ("20 11 0000".to_owned(), ProxyHeader::Own),
        // Nobody, a datagram, a unix socket.
        ("21 00 0000".to_owned(), ProxyHeader::Own),
        (format!("21 12 000c {v4}"), ProxyHeader::Own),
        (format!("21 31 00d8 {unix}"), ProxyHeader::Own),
    ] {
        assert_says(&v2(&digits), header);
    }
    // The longest that is taken.
    let field = "00".repeat(4096 - 12 - 3);
    assert_says(
        &v2(&format!("21 11 1000 {v4} ee 0ff1 {field}")),
        client("10.1.2.3"),
    );
}

#[test]
fn no_headers() {
    let v4 = "0a010203 0a000001 dc04 0cea";
    for bytes in [
        b"GET / HTTP/1.1\r\n".to_vec(),
        b"\x20\0\0\x01".to_vec(),
        b"PROXY\r\n".to_vec(),
        b"PROXY TCP4 10.1.2.3 10.0.0.1 56324 3306\n".to_vec(),
        b"PROXY TCP5 10.1.2.3 10.0.0.1 56324 3306\r\n".to_vec(),
        b"PROXY TCP4 ::1 10.0.0.1 56324 3306\r\n".to_vec(),
        b"PROXY TCP4 010.1.2.3 10.0.0.1 56324 3306\r\n".to_vec(),
        b"PROXY TCP4 10.1.2.3 10.0.0.1 56324 65536\r\n".to_vec(),
        b"PROXY TCP4 10.1.2.3 10.0.0.1 +5 3306\r\n".to_vec(),
        b"PROXY TCP4 10.1.2.3 10.0.0.1 56324\r\n".to_vec(),
        b"PROXY TCP4 10.1.2.3 10.0.0.1 56324 3306 1\r\n".to_vec(),
        b"PROXY TCP4  10.1.2.3 10.0.0.1 56324 3306\r\n".to_vec(),
        [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 93]].concat(),
        v2("11 11 000c"),
        v2("22 11 000c"),
        v2(&format!("21 41 000c {v4}")),
        v2("21 11 1001"),
        v2("21 11 000b 0a010203 0a000001 dc04 0c"),
        v2(&format!("21 11 000e {v4} 0200")),
        v2(&format!("21 11 0010 {v4} 02 0002 61")),
    ] {
        assert!(
            ProxyHeader::parse(&bytes).is_err(),
            "{}",
            bytes.escape_ascii()
        );
    }
}

proptest! {
    /// Whatever arrives, in whatever pieces: the verdict on a beginning is never taken back.
    #[test]
    fn a_verdict_stays(
        start in 0..3_usize,
        tail in vec(any::<u8>(), 0..200),
        source in any::<IpAddr>(),
    ) {
        let line = match source {
            IpAddr::V4(_) => format!("PROXY TCP4 {source} 1.2.3.4 1 2\r\n"),
            IpAddr::V6(_) => format!("PROXY TCP6 {source} ::1 1 2\r\n"),
        };
        let head = [line.into_bytes(), hex(SIGNATURE), Vec::new()][start].clone();
        let bytes = [head, tail].concat();
        let mut verdict = None;
        for cut in 0..=bytes.len() {
            let now = ProxyHeader::parse(&bytes[..cut]);
            match verdict {
                None => {
                    if now != Ok(None) {
                        verdict = Some(now);
                    }
                }
                Some(before) => prop_assert_eq!(before, now),
            }
            if let Ok(Some((_, len))) = now {
                prop_assert!(len <= cut && len <= ProxyHeader::LEN_MAX);
            }
        }
        if start == 0 {
            let said = verdict.unwrap().unwrap().unwrap().0;
            prop_assert_eq!(said, ProxyHeader::Client(source.to_canonical()));
        }
    }
}
