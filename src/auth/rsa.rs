//! The public key that a MySQL server sends during full authentication, and the encryption of a password with it.

use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use zeroize::Zeroizing;

/// Why a password could not be encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RsaError {
    /// The text is no PEM block `PUBLIC KEY` with an RSA key in it that may be used.
    Key,
    /// The password, with its final zero byte, does not fit into one block of this key.
    PasswordTooLong,
}

/// RSA-OAEP-SHA1 of (password, one zero byte) XOR nonce, as `sha256_password` and `caching_sha2_password` want it. The nonce
/// (20 bytes) is repeated as often as needed.
pub(super) fn encrypt_password(
    password: &[u8],
    nonce: &[u8; 20],
    pem: &[u8],
) -> Result<Vec<u8>, RsaError> {
    let der = public_key_der(pem).ok_or(RsaError::Key)?;
    let key = PublicEncryptingKey::from_der(&der).map_err(|_| RsaError::Key)?;
    let key = OaepPublicEncryptingKey::new(key).map_err(|_| RsaError::Key)?;
    let plain: Zeroizing<Vec<u8>> = Zeroizing::new(
        password
            .iter()
            .chain(&[0])
            .zip(nonce.iter().cycle())
            .map(|(p, n)| p ^ n)
            .collect(),
    );
    if plain.len() > key.max_plaintext_size(&OAEP_SHA1_MGF1SHA1) {
        return Err(RsaError::PasswordTooLong);
    }
    let mut out = vec![0; key.ciphertext_size()];
    let len = key
        .encrypt(&OAEP_SHA1_MGF1SHA1, &plain, &mut out, None)
        .map_err(|_| RsaError::Key)?
        .len();
    out.truncate(len);
    Ok(out)
}

/// The DER bytes between `-----BEGIN PUBLIC KEY-----` and `-----END PUBLIC KEY-----`; `None` for anything else.
fn public_key_der(pem: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(pem).ok()?;
    let (_, rest) = text.split_once("-----BEGIN PUBLIC KEY-----")?;
    let (body, _) = rest.split_once("-----END PUBLIC KEY-----")?;
    base64(body.as_bytes())
}

/// Decodes base64 with padding; white space between characters is skipped, anything else is an error.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count, mut padding) = (0_u32, 0_u32, 0_u32);
    for &c in text {
        let value = match c {
            b' ' | b'\t' | b'\r' | b'\n' => continue,
            b'=' => {
                padding += 1;
                if padding > 2 {
                    return None;
                }
                continue;
            }
            _ if padding > 0 => return None,
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 1;
        if count == 4 {
            let [_, a, b, c] = bits.to_be_bytes();
            out.extend([a, b, c]);
            (bits, count) = (0, 0);
        }
    }
    match (count, padding) {
        (0, 0) => {}
        (2, 2) => out.push((bits >> 4).to_be_bytes()[3]),
        (3, 1) => out.extend([(bits >> 10).to_be_bytes()[3], (bits >> 2).to_be_bytes()[3]]),
        _ => return None,
    }
    Some(out)
}
