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

/// A server's side of the key exchange, for tests.
#[cfg(test)]
pub(crate) mod testing {
    use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
    use aws_lc_rs::rsa::{
        KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey,
    };

    pub(crate) struct ServerKey {
        /// As the server sends it.
        pub(crate) pem: Vec<u8>,
        private: OaepPrivateDecryptingKey,
    }

    impl ServerKey {
        pub(crate) fn generate() -> Self {
            let private = PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap();
            let der: PublicKeyX509Der<'_> = private.public_key().as_der().unwrap();
            let mut pem = b"-----BEGIN PUBLIC KEY-----\n".to_vec();
            for line in encode(der.as_ref()).as_bytes().chunks(64) {
                pem.extend_from_slice(line);
                pem.push(b'\n');
            }
            pem.extend_from_slice(b"-----END PUBLIC KEY-----\n");
            Self {
                pem,
                private: OaepPrivateDecryptingKey::new(private).unwrap(),
            }
        }

        /// What the server reads: the password and its zero byte.
        pub(crate) fn decrypt(&self, sent: &[u8], nonce: &[u8; 20]) -> Vec<u8> {
            let mut plain = vec![0; self.private.min_output_size()];
            let plain = self
                .private
                .decrypt(&OAEP_SHA1_MGF1SHA1, sent, &mut plain, None)
                .unwrap();
            plain
                .iter()
                .enumerate()
                .map(|(i, byte)| byte ^ nonce[i % nonce.len()])
                .collect()
        }
    }

    pub(super) fn encode(bytes: &[u8]) -> String {
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::new();
        for chunk in bytes.chunks(3) {
            let mut word = [0; 4];
            word[1..=chunk.len()].copy_from_slice(chunk);
            let word = u32::from_be_bytes(word);
            for i in 0..4 {
                let at = usize::try_from(word >> (18 - 6 * i) & 63).unwrap();
                out.push(if i <= chunk.len() {
                    char::from(ALPHABET[at])
                } else {
                    '='
                });
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::testing::{ServerKey, encode};
    use super::*;

    /// Written by openssl.
    const OPENSSL_2048: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAmENlDP74rAbBp9eOhpdz
EVY28EWhYqu2S9IY5bR6LtAhucBedSykPVcbTDFmQ0q7+lWRXSBwTcDwTLadbj9C
4Tj5xwQmtRmvPtm+fVoiQK5JOTnQx0m1XVsrF+FJOdB2WsyyeU9WRUxhE23H1b1/
ejP5j4IYlfgYdsPYsdg66oR5WMdyDGQ784sqDKOMvOEAyzgnBlmcaWYHSnbnzHfO
+QRM+LuQFMqnrxSB2YHHpLbHsHXy2JYrk0/ACs0YY4ENbmWfiUTWhlkQpqNYBqLm
VP0X9Oyy/yN2NkRA07Jf5swn+ICgj7fq8T66EgrXCqKXBCNfzKlCxJmxSnAWQX84
GwIDAQAB
-----END PUBLIC KEY-----
";
    const OPENSSL_1024: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDxDBDQDAkbvje3toJwfKiU0fVD
pd99CIjScrHpwQ0okmr/t3iGwGomxvLWT476nsw0yFkr/OC0H5oSZCf6RdqQLPKW
eiBTRcTOPqHyetvv8aIDTa6wngxvi+0F9YAx+VjF4TDufCNnZhIAB2jgqKZZSxbD
Y4jBy6ml0GWoSHotsQIDAQAB
-----END PUBLIC KEY-----
";
    const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";

    #[test]
    fn a_server_reads_the_password_back() {
        let key = ServerKey::generate();
        // 256 - 42 bytes fit, with the zero byte.
        for len in [0, 1, 19, 20, 21, 40, 213] {
            let password = vec![b'p'; len];
            let sent = encrypt_password(&password, NONCE, &key.pem).unwrap();
            assert_eq!(sent.len(), 256);
            assert_eq!(
                key.decrypt(&sent, NONCE),
                [&password[..], &[0]].concat(),
                "{len}"
            );
        }
        assert_eq!(
            encrypt_password(&[b'p'; 214], NONCE, &key.pem),
            Err(RsaError::PasswordTooLong)
        );
    }

    #[test]
    fn keys_as_openssl_writes_them() {
        assert_eq!(
            encrypt_password(b"pw", NONCE, OPENSSL_2048.as_bytes())
                .unwrap()
                .len(),
            256
        );
        let windows = OPENSSL_2048.replace('\n', "\r\n");
        assert_eq!(
            encrypt_password(b"pw", NONCE, windows.as_bytes())
                .unwrap()
                .len(),
            256
        );
        let with_nul = format!("{OPENSSL_2048}\0");
        assert_eq!(
            encrypt_password(b"pw", NONCE, with_nul.as_bytes())
                .unwrap()
                .len(),
            256
        );
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for pem in [
            "",
            "\x03",
            "-----BEGIN PUBLIC KEY-----",
            "-----BEGIN PUBLIC KEY----------END PUBLIC KEY-----",
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
            "-----BEGIN PUBLIC KEY-----\nA\n-----END PUBLIC KEY-----",
            "-----BEGIN PUBLIC KEY-----\n****\n-----END PUBLIC KEY-----",
            OPENSSL_1024,
            &OPENSSL_2048.replace("PUBLIC", "PRIVATE"),
            &OPENSSL_2048.replace("GwIDAQAB", "GwIDAQA"),
            &OPENSSL_2048[..400],
        ] {
            assert_eq!(
                encrypt_password(b"pw", NONCE, pem.as_bytes()),
                Err(RsaError::Key),
                "{pem}"
            );
        }
        assert_eq!(
            encrypt_password(b"pw", NONCE, &[0xff; 40]),
            Err(RsaError::Key)
        );
    }

    proptest! {
        #[test]
        fn base64_round_trip(bytes: Vec<u8>) {
            prop_assert_eq!(base64(encode(&bytes).as_bytes()), Some(bytes));
        }

        #[test]
        fn base64_of_anything_is_whole_or_nothing(text: Vec<u8>) {
            if let Some(bytes) = base64(&text) {
                let letters = text.iter().filter(|c| !c.is_ascii_whitespace() && **c != b'=').count();
                prop_assert_eq!(bytes.len(), letters * 3 / 4);
            }
        }
    }
}
