//! Texts of the configuration file turned into values: durations, sizes, addresses, networks, versions.
//! Every function is total: the error is the sentence that the user reads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};

use super::{HostAddress, ListenAddress};

/// The port of a host address that names none: MySQL's own.
const DEFAULT_PORT: u16 = 3306;

/// MySQL's SERVER_VERSION_LENGTH: what a server announces is never longer, and old clients copy it into a buffer of that size.
const VERSION_BYTES_MAX: usize = 60;

/// `500ms`, `10s`, `5m`, `1h`, `1d`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "`{text}` is not a duration: write a whole number with ms, s, m, h or d, such as \"500ms\" or \"10s\""
        )
    };
    let (digits, unit) = split_number(text);
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let millis = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        "d" => number.checked_mul(86_400_000),
        _ => return Err(wrong()),
    };
    millis.map(Duration::from_millis).ok_or_else(wrong)
}

/// `64MiB`, `512KiB`, `1GiB`, `4096B`: bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "`{text}` is not a size: write a whole number with B, KiB, MiB or GiB, such as \"64MiB\""
        )
    };
    let (digits, unit) = split_number(text);
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let factor = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).ok_or_else(wrong)
}

/// Digits at the start, and what follows them (one space may stand between).
fn split_number(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits, rest.strip_prefix(' ').unwrap_or(rest))
}

/// Prints a duration in the way [`duration`] reads it, for messages.
pub(super) fn print_duration(value: Duration) -> String {
    let millis = value.as_millis();
    for (unit, size) in [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
    ] {
        if millis > 0 && millis.is_multiple_of(size) {
            return format!("{}{unit}", millis / size);
        }
    }
    if millis == 0 {
        "0s".to_owned()
    } else {
        format!("{millis}ms")
    }
}

/// `0.0.0.0:1234`, `[::]:1234` or `unix:/path`.
pub(crate) fn listen_address(text: &str) -> Result<ListenAddress, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return unix_path(path).map(ListenAddress::Unix);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(ListenAddress::Tcp(address));
    }
    Err(format!(
        "`{text}` is not an address to listen on: write IP:PORT such as \"0.0.0.0:1234\" or \"[::]:1234\", or \"unix:/path/to.sock\""
    ))
}

/// `10.0.0.1:3306`, `[::1]:3306`, `db1.example:3306` or `unix:/path`. Without a port: 3306.
pub(crate) fn host_address(text: &str) -> Result<HostAddress, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return unix_path(path).map(HostAddress::Unix);
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        if address.port() == 0 {
            return Err(format!("`{text}`: port 0 cannot be connected to"));
        }
        return Ok(HostAddress::Ip(address));
    }
    if let Ok(ip) = text
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>()
    {
        return Ok(HostAddress::Ip(SocketAddr::new(ip, DEFAULT_PORT)));
    }
    let wrong = || {
        format!(
            "`{text}` is not a server address: write HOST:PORT such as \"10.0.0.1:3306\", \"[::1]:3306\" or \"db1.example:3306\", or \"unix:/path/to.sock\""
        )
    };
    if let Some((address, weight)) = text.split_once('@') {
        return Err(format!(
            "`{text}` is not a server address: write {{ address = \"{address}\", weight = {weight} }}"
        ));
    }
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (
            name,
            port.parse::<u16>()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(wrong)?,
        ),
        None => (text, DEFAULT_PORT),
    };
    if is_host_name(name) {
        Ok(HostAddress::Name(name.to_ascii_lowercase(), port))
    } else {
        Err(wrong())
    }
}

/// Letters, digits, hyphen and underscore in labels of 1 to 63 bytes, 253 in all (RFC 1123, and underscores, which
/// service names use). A name of digits and dots only is a mistyped IP address.
fn is_host_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253
        && name.split('.').all(is_label)
        && !name.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Bytes of the path of a unix socket: what the kernel takes, without the zero behind it.
pub(super) const SOCKET_PATH_MAX: usize = 107;

pub(super) fn socket_path_too_long() -> String {
    format!("the path of a socket has at most {SOCKET_PATH_MAX} bytes")
}

/// What the kernel takes as the address of a unix socket.
fn unix_path(path: &str) -> Result<PathBuf, String> {
    if !path.starts_with('/') {
        return Err(format!(
            "`unix:{path}`: the path of a socket must be absolute, such as \"unix:/run/atlas/atlas.sock\""
        ));
    }
    if path.contains('\0') {
        return Err(format!("`unix:{path}`: a path cannot contain a NUL byte"));
    }
    if path.len() > SOCKET_PATH_MAX {
        return Err(format!("`unix:{path}`: {}", socket_path_too_long()));
    }
    Ok(PathBuf::from(path))
}

/// `10.0.0.0/8`, `2001:db8::/32`, a single address, or the original's prefixes of one to three octets (`192.168.1`, `192.168.`).
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let wrong = || {
        format!(
            "`{text}` is not a network: write \"10.0.0.0/8\", \"2001:db8::/32\", a single address, or leading octets such as \"192.168.1\""
        )
    };
    if let Ok(net) = text.parse::<IpNet>() {
        if net.trunc() != net {
            return Err(format!(
                "`{text}` has bits set behind its prefix: write \"{}\"",
                net.trunc()
            ));
        }
        return Ok(net);
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(IpNet::from(ip));
    }
    let prefix = text
        .strip_suffix(".*")
        .or_else(|| text.strip_suffix('.'))
        .unwrap_or(text);
    let mut octets = [0_u8; 4];
    let mut bits = 0_u8;
    for (index, part) in prefix.split('.').enumerate() {
        // Four octets without an IP address parsed above, or a prefix of four with a dot: both are mistakes.
        let octet = octets
            .get_mut(index)
            .filter(|_| index < 3)
            .ok_or_else(wrong)?;
        if part.is_empty()
            || (part.len() > 1 && part.starts_with('0'))
            || !part.bytes().all(|b| b.is_ascii_digit())
        {
            return Err(wrong());
        }
        *octet = part.parse().map_err(|_| wrong())?;
        bits = bits.saturating_add(8);
    }
    Ipv4Net::new(Ipv4Addr::from(octets), bits)
        .map(IpNet::V4)
        .map_err(|_| wrong())
}

/// A version that drivers can parse: three numbers joined by dots, then anything printable (`8.0.36-log`,
/// `5.5.5-10.11.6-MariaDB`). Drivers were seen to fail on two numbers.
pub(super) fn server_version(text: &str) -> Result<String, String> {
    if text.len() > VERSION_BYTES_MAX {
        return Err(format!(
            "the version has {} bytes: at most {VERSION_BYTES_MAX} are allowed",
            text.len()
        ));
    }
    if !text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Err("the version may have printable ASCII characters only".to_owned());
    }
    let mut rest = text;
    for index in 0..3 {
        if index > 0 {
            rest = rest.strip_prefix('.').unwrap_or("");
        }
        let (digits, after) = rest.split_at(
            rest.find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len()),
        );
        if digits.is_empty() || digits.len() > 4 {
            return Err(format!(
                "`{text}` is not a server version: three numbers are needed, such as \"8.0.36\" or \"8.0.36-myproxy\", or \"auto\""
            ));
        }
        rest = after;
    }
    Ok(text.to_owned())
}

/// The name of a schema, table or column: 1 to 64 characters, as on the servers.
pub(super) fn schema_name(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| !c.is_control() && c != '`';
    if text.is_empty() || text.chars().count() > 64 || !text.chars().all(is_allowed) {
        return Err(format!(
            "`{}` is not a name: 1 to 64 characters are needed",
            text.escape_debug()
        ));
    }
    Ok(text.to_owned())
}

/// `schema.table`.
pub(crate) fn table_name(text: &str) -> Result<(String, String), String> {
    let (schema, table) = text
        .split_once('.')
        .ok_or_else(|| format!("`{text}` is not a table: write schema.table"))?;
    Ok((schema_name(schema)?, schema_name(table)?))
}

/// The name of an account: at most 128 characters (MariaDB's limit; MySQL's is 32).
pub(super) fn account_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("an account needs a name".to_owned());
    }
    if text.chars().count() > 128 || text.contains('\0') {
        return Err("an account's name has at most 128 characters, none of them NUL".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("0s", 0),
            ("500ms", 500),
            ("10s", 10_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("2d", 172_800_000),
            ("10 s", 10_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "10",
            "s",
            "-1s",
            "1.5s",
            "1h30m",
            "10S",
            "99999999999999999999s",
            "18446744073709551615d",
            "1s ",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        for (millis, text) in [
            (0, "0s"),
            (1, "1ms"),
            (1_500, "1500ms"),
            (60_000, "1m"),
            (7_200_000, "2h"),
            (86_400_000, "1d"),
        ] {
            assert_eq!(print_duration(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0B", 0),
            ("64MiB", 64 << 20),
            ("1GiB", 1 << 30),
            ("512 KiB", 512 << 10),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "64", "64MB", "64mib", "-1B", "18446744073709551615GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn listen_addresses() {
        for text in [
            "0.0.0.0:1234",
            "127.0.0.1:0",
            "[::]:1234",
            "unix:/run/atlas.sock",
        ] {
            assert!(listen_address(text).is_ok(), "{text}");
        }
        let long = format!("unix:/{}", "x".repeat(107));
        for text in [
            "",
            "1234",
            ":1234",
            "localhost:1234",
            "0.0.0.0",
            "0.0.0.0:99999",
            "unix:",
            "unix:atlas.sock",
            "unix:/a\0b",
            &long,
        ] {
            assert!(listen_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn host_addresses() {
        let ip = |text: &str| HostAddress::Ip(text.parse().unwrap());
        for (text, want) in [
            ("10.0.0.1:3306", ip("10.0.0.1:3306")),
            ("10.0.0.1", ip("10.0.0.1:3306")),
            ("[::1]:3307", ip("[::1]:3307")),
            ("::1", ip("[::1]:3306")),
            ("[::1]", ip("[::1]:3306")),
            (
                "DB1.example:3307",
                HostAddress::Name("db1.example".to_owned(), 3307),
            ),
            ("my_db", HostAddress::Name("my_db".to_owned(), 3306)),
            (
                "unix:/run/mysqld.sock",
                HostAddress::Unix(PathBuf::from("/run/mysqld.sock")),
            ),
        ] {
            assert_eq!(host_address(text), Ok(want), "{text}");
        }
        for text in [
            "",
            ":3306",
            "10.0.0.1:",
            "10.0.0.1:0",
            "10.0.0:3306",
            "300.0.0.1:3306",
            "db:99999",
            "-db:1",
            "a b:1",
            "a..b:1",
            "db:1:2",
            "unix:x",
        ] {
            assert!(host_address(text).is_err(), "{text}");
        }
        assert!(
            host_address("10.0.0.2:3306@3")
                .unwrap_err()
                .contains("weight = 3")
        );
    }

    #[test]
    fn networks() {
        for (text, want) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("192.168.1", "192.168.1.0/24"),
            ("192.168.", "192.168.0.0/16"),
            ("192.168.*", "192.168.0.0/16"),
            ("10", "10.0.0.0/8"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::1", "::1/128"),
        ] {
            assert_eq!(
                network(text).map(|n| n.to_string()),
                Ok(want.to_owned()),
                "{text}"
            );
        }
        for text in [
            "",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "256",
            "1.2.3.4.",
            "1.2.3.4.5",
            "a.b",
            "10..1",
            "010.1",
            "10.+1",
        ] {
            assert!(network(text).is_err(), "{text}");
        }
        assert!(network("10.0.0.1/8").unwrap_err().contains("10.0.0.0/8"));
    }

    /// B270.
    #[test]
    fn versions() {
        for text in [
            "8.0.36",
            "8.0.36-myproxy",
            "5.5.5-10.11.6-MariaDB",
            "10.11.6-MariaDB-1:10.11.6+maria~deb12",
        ] {
            assert_eq!(server_version(text), Ok(text.to_owned()));
        }
        let long = format!("8.0.36-{}", "x".repeat(293));
        for text in [
            "",
            "8",
            "8.0",
            "8.0.",
            "8.0.x",
            "8 .0.36",
            ".8.0.36",
            "8..0.36",
            "a8.0.36",
            "8.0.36\0",
            "8.0.36\n",
            "8.0.36-é",
            &long,
        ] {
            assert!(server_version(text).is_err(), "{text}");
        }
    }
}
