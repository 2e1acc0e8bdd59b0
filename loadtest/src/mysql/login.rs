//! The client's side of the log-in: Protocol::HandshakeV10, HandshakeResponse41, AuthSwitchRequest, mysql_native_password.

use super::ClientError;
use super::sha1::sha1;

const CONNECT_WITH_DB: u32 = 0x8;
const PROTOCOL_41: u32 = 0x200;
const TRANSACTIONS: u32 = 0x2000;
const SECURE_CONNECTION: u32 = 0x8000;
const MULTI_RESULTS: u32 = 0x2_0000;
const PLUGIN_AUTH: u32 = 0x8_0000;

const NATIVE: &[u8] = b"mysql_native_password";

/// The answer to the server's greeting.
pub(super) fn response(
    greeting: &[u8],
    user: &str,
    password: &str,
    schema: &str,
) -> Result<Vec<u8>, ClientError> {
    let nonce = nonce(greeting)?;
    let capabilities = CONNECT_WITH_DB
        | PROTOCOL_41
        | TRANSACTIONS
        | SECURE_CONNECTION
        | MULTI_RESULTS
        | PLUGIN_AUTH;
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(&capabilities.to_le_bytes());
    out.extend_from_slice(&(1u32 << 30).to_le_bytes());
    out.push(45); // utf8mb4_general_ci
    out.extend_from_slice(&[0; 23]);
    out.extend_from_slice(user.as_bytes());
    out.push(0);
    let scramble = scramble(password, &nonce);
    out.push(u8::try_from(scramble.len()).unwrap_or(0));
    out.extend_from_slice(&scramble);
    out.extend_from_slice(schema.as_bytes());
    out.push(0);
    out.extend_from_slice(NATIVE);
    out.push(0);
    Ok(out)
}

/// What to send after a packet of the log-in; `None` when the client is in.
pub(super) fn next(packet: &[u8], password: &str) -> Result<Option<Vec<u8>>, ClientError> {
    match packet.split_first() {
        Some((0x00, _)) => Ok(None),
        Some((0xfe, rest)) => {
            let end = rest
                .iter()
                .position(|b| *b == 0)
                .ok_or(ClientError::Protocol("an auth switch"))?;
            let (plugin, data) = rest.split_at(end);
            if plugin != NATIVE {
                return Err(ClientError::Protocol(
                    "an auth switch: only mysql_native_password is spoken here",
                ));
            }
            let nonce = data
                .get(1..21)
                .and_then(|n| n.try_into().ok())
                .ok_or(ClientError::Protocol("an auth switch"))?;
            Ok(Some(scramble(password, nonce)))
        }
        _ => Err(error_packet(packet).unwrap_or(ClientError::Protocol("a log-in"))),
    }
}

/// The server's error in an ERR packet, `None` when it is another packet.
pub(super) fn error_packet(packet: &[u8]) -> Option<ClientError> {
    let (&[0xff, low, high], text) = packet.split_first_chunk::<3>()? else {
        return None;
    };
    // '#' and five characters of SQLSTATE, except for errors before the log-in
    let text = if text.first() == Some(&b'#') {
        text.get(6..).unwrap_or_default()
    } else {
        text
    };
    Some(ClientError::Server(
        u16::from_le_bytes([low, high]),
        String::from_utf8_lossy(text).into_owned(),
    ))
}

/// The 20 bytes that the password is mixed with.
fn nonce(greeting: &[u8]) -> Result<[u8; 20], ClientError> {
    const WHERE: ClientError = ClientError::Protocol("a greeting");
    if let Some(refused) = error_packet(greeting) {
        return Err(refused);
    }
    let rest = greeting.strip_prefix(&[10]).ok_or(WHERE)?;
    let version_end = rest.iter().position(|b| *b == 0).ok_or(WHERE)?;
    // after the version: 4 bytes thread id, 8 bytes nonce, then 19 bytes to the rest of the nonce
    let at = version_end + 1 + 4;
    let mut nonce = [0; 20];
    let (first, second) = nonce.split_at_mut(8);
    first.copy_from_slice(rest.get(at..at + 8).ok_or(WHERE)?);
    second.copy_from_slice(rest.get(at + 27..at + 39).ok_or(WHERE)?);
    Ok(nonce)
}

/// SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password))); nothing for no password.
fn scramble(password: &str, nonce: &[u8; 20]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = sha1(password.as_bytes());
    let mut mixed = nonce.to_vec();
    mixed.extend_from_slice(&sha1(&once));
    once.iter().zip(sha1(&mixed)).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting() -> Vec<u8> {
        let mut g = vec![10];
        g.extend_from_slice(b"5.5.5-10.11.19-MariaDB\0");
        g.extend_from_slice(&[7, 0, 0, 0]);
        g.extend_from_slice(b"12345678\0");
        g.extend_from_slice(&[0; 18]);
        g.extend_from_slice(b"abcdefghijkl\0mysql_native_password\0");
        g
    }

    #[test]
    fn the_nonce_is_put_together() {
        assert_eq!(
            &nonce(&greeting()).expect("a nonce"),
            b"12345678abcdefghijkl"
        );
        for cut in 0..greeting().len() - 23 {
            assert!(nonce(&greeting()[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_scramble_is_undone_by_the_stored_hash() {
        let nonce = *b"12345678abcdefghijkl";
        let sent = scramble("secret", &nonce);
        // The server keeps SHA1(SHA1(password)) and gets SHA1(password) back.
        let stored = sha1(&sha1(b"secret"));
        let mut mixed = nonce.to_vec();
        mixed.extend_from_slice(&stored);
        let once: Vec<u8> = sent.iter().zip(sha1(&mixed)).map(|(a, b)| a ^ b).collect();
        assert_eq!(sha1(&once), stored);
        assert!(scramble("", &nonce).is_empty());
    }

    #[test]
    fn log_in_answers() {
        assert!(matches!(next(&[0, 0, 0, 2, 0, 0, 0], "p"), Ok(None)));
        let refused = b"\xff\x15\x04#28000Access denied";
        assert!(
            matches!(next(refused, "p"), Err(ClientError::Server(1045, text)) if text == "Access denied")
        );
        let mut switch = vec![0xfe];
        switch.extend_from_slice(b"mysql_native_password\0aaaaaaaaaaaaaaaaaaaa\0");
        assert!(matches!(next(&switch, "p"), Ok(Some(s)) if s.len() == 20));
        assert!(next(b"\xfecaching_sha2_password\0aaaaaaaaaaaaaaaaaaaa\0", "p").is_err());
        assert!(next(b"\xfe", "p").is_err() && next(b"", "p").is_err());
    }
}
