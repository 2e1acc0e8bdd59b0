//! Passwords as they may stand in a file: `enc:v1:…`, sealed with AES-256-GCM under a key that lies in a file of its own.
//! Both formats are at home here; reading and making the files, and random bytes, are the caller's.
//!
//! `enc:v1:` is followed by base64 (the URL alphabet, no padding) of key id (4 bytes), nonce (12), ciphertext, tag (16).
//! The key id is no secret. It tells a value that was sealed with another key from one that was damaged.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use base64ct::{Base64UrlUnpadded, Encoding};
use zeroize::Zeroizing;

use super::Secret;

/// What a sealed value starts with.
pub const SEALED_PREFIX: &str = "enc:v1:";

/// What the line with the key starts with.
const KEY_PREFIX: &str = "atlas-key:v1:";

const KEY_LEN: usize = 32;
const KEY_ID_LEN: usize = 4;
const TAG_LEN: usize = 16;

/// The text of a new key file, from random bytes.
#[must_use]
pub fn key_file_text(random: &[u8; KEY_LEN]) -> Zeroizing<String> {
    let key = Zeroizing::new(Base64UrlUnpadded::encode_string(random));
    Zeroizing::new(format!(
        "# The key of the enc:v1: values in Atlas's configuration. Who has both can read the passwords.\n{KEY_PREFIX}{}\n",
        key.as_str()
    ))
}

/// Why the text of a file is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no key file of Atlas: a line `{KEY_PREFIX}` with 43 characters behind it is needed"
)]
pub struct NotAKey;

/// Why a sealed value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsealError {
    /// It does not start as sealed values do.
    #[error("not a value that `atlas encrypt` prints: those start with {SEALED_PREFIX}")]
    Format,
    /// It was sealed with another key (or what names the key was damaged).
    #[error("encrypted with another key than this one")]
    OtherKey,
    /// It is not what was printed when the password was sealed.
    #[error("damaged: characters were changed, added or lost")]
    Damaged,
}

/// A key that seals passwords. Never printed.
pub struct SealKey {
    key: LessSafeKey,
    id: [u8; KEY_ID_LEN],
}

impl SealKey {
    /// Reads the text of a key file: one line with the key; empty lines and comments (`#`) may stand around it.
    ///
    /// # Errors
    /// The text is something else.
    pub fn parse(text: &[u8]) -> Result<Self, NotAKey> {
        let text = std::str::from_utf8(text).map_err(|_| NotAKey)?;
        let mut lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let (Some(line), None) = (lines.next(), lines.next()) else {
            return Err(NotAKey);
        };
        let encoded = line.strip_prefix(KEY_PREFIX).ok_or(NotAKey)?;
        let mut bytes = Zeroizing::new([0; KEY_LEN]);
        let decoded =
            Base64UrlUnpadded::decode(encoded, bytes.as_mut_slice()).map_err(|_| NotAKey)?;
        if decoded.len() != KEY_LEN {
            return Err(NotAKey);
        }
        let key = UnboundKey::new(&AES_256_GCM, bytes.as_slice()).map_err(|_| NotAKey)?;
        let mut named = Zeroizing::new(b"atlas key id ".to_vec());
        named.extend_from_slice(bytes.as_slice());
        let mut id = [0; KEY_ID_LEN];
        for (to, from) in id.iter_mut().zip(digest(&SHA256, &named).as_ref()) {
            *to = *from;
        }
        Ok(Self {
            key: LessSafeKey::new(key),
            id,
        })
    }

    /// Seals a password. The nonce must be random: used twice with one key it would give both passwords away.
    ///
    /// # Panics
    /// Never for what fits into memory: the cipher takes 64 GiB.
    #[must_use]
    pub fn seal(&self, secret: &Secret, nonce: [u8; NONCE_LEN]) -> String {
        let mut sealed = Zeroizing::new(secret.expose().to_vec());
        let tag = self
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                self.context(),
                &mut sealed,
            )
            .expect("a password is shorter than the cipher's limit");
        let bytes = [&self.id, nonce.as_slice(), &sealed, tag.as_ref()].concat();
        format!(
            "{SEALED_PREFIX}{}",
            Base64UrlUnpadded::encode_string(&bytes)
        )
    }

    /// Reads a sealed value.
    ///
    /// # Errors
    /// It was not sealed with this key, or is not whole.
    pub fn unseal(&self, value: &str) -> Result<Secret, UnsealError> {
        let encoded = value
            .strip_prefix(SEALED_PREFIX)
            .ok_or(UnsealError::Format)?;
        let bytes = Base64UrlUnpadded::decode_vec(encoded).map_err(|_| UnsealError::Damaged)?;
        let (id, rest) = bytes
            .split_first_chunk::<KEY_ID_LEN>()
            .ok_or(UnsealError::Damaged)?;
        let (nonce, sealed) = rest
            .split_first_chunk::<NONCE_LEN>()
            .ok_or(UnsealError::Damaged)?;
        if sealed.len() < TAG_LEN {
            return Err(UnsealError::Damaged);
        }
        if *id != self.id {
            return Err(UnsealError::OtherKey);
        }
        let mut opened = Zeroizing::new(sealed.to_vec());
        let plain = self
            .key
            .open_in_place(
                Nonce::assume_unique_for_key(*nonce),
                self.context(),
                &mut opened,
            )
            .map_err(|_| UnsealError::Damaged)?;
        Ok(Secret::new(&*plain))
    }

    /// What is authenticated beside the password: a value says nothing under another version or another key's id.
    fn context(&self) -> Aad<Vec<u8>> {
        Aad::from([SEALED_PREFIX.as_bytes(), &self.id].concat())
    }
}

impl fmt::Debug for SealKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SealKey {
        SealKey::parse(key_file_text(&[byte; KEY_LEN]).as_bytes()).unwrap()
    }

    /// What was sealed by an earlier version must be readable for ever.
    #[test]
    fn the_format_is_frozen() {
        assert_eq!(
            key_file_text(&[7; KEY_LEN]).lines().nth(1),
            Some("atlas-key:v1:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc")
        );
        let sealed = key(7).seal(&Secret::from("pass word"), [9; NONCE_LEN]);
        assert_eq!(sealed, FROZEN);
        assert_eq!(key(7).unseal(FROZEN), Ok(Secret::from("pass word")));
    }

    const FROZEN: &str = "enc:v1:wNIv-gkJCQkJCQkJCQkJCVfk9-eeh64TxJMmdK87ldUBoLlz03PGnvI";

    #[test]
    fn any_password_comes_back() {
        for password in [
            Vec::new(),
            b"x".to_vec(),
            "p\u{e4}ss,w:ord\"'$!\\".as_bytes().to_vec(),
            vec![0xff; 5000],
        ] {
            let secret = Secret::new(password);
            assert_eq!(key(1).unseal(&key(1).seal(&secret, [3; 12])), Ok(secret));
        }
    }

    #[test]
    fn a_nonce_makes_the_difference() {
        let secret = Secret::from("x");
        assert_ne!(key(1).seal(&secret, [1; 12]), key(1).seal(&secret, [2; 12]));
    }

    #[test]
    fn other_keys_and_damage() {
        let sealed = key(1).seal(&Secret::from("secret"), [5; 12]);
        assert_eq!(key(2).unseal(&sealed), Err(UnsealError::OtherKey));
        assert_eq!(key(1).unseal("secret"), Err(UnsealError::Format));
        assert_eq!(key(1).unseal("enc:v2:AAAA"), Err(UnsealError::Format));
        for end in SEALED_PREFIX.len()..sealed.len() {
            assert_eq!(key(1).unseal(&sealed[..end]), Err(UnsealError::Damaged));
        }
        assert_eq!(
            key(1).unseal(&format!("{sealed}A")),
            Err(UnsealError::Damaged)
        );
        assert_eq!(
            key(1).unseal(&format!("{sealed} ")),
            Err(UnsealError::Damaged)
        );
        for at in SEALED_PREFIX.len()..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            let told = key(1).unseal(&changed);
            assert!(
                matches!(told, Err(UnsealError::Damaged | UnsealError::OtherKey)),
                "{changed}: {told:?}"
            );
        }
    }

    #[test]
    fn what_is_no_key() {
        let good = key_file_text(&[1; KEY_LEN]);
        let line = good.lines().nth(1).unwrap();
        assert!(SealKey::parse(line.as_bytes()).is_ok());
        assert!(SealKey::parse(format!("\r\n{line}\r\n\n# end").as_bytes()).is_ok());
        for bad in [
            String::new(),
            "# nothing".to_owned(),
            format!("{line}\n{line}"),
            line[..line.len() - 1].to_owned(),
            format!("{line}A"),
            line.replace("v1", "v2"),
            line.replace("BAQ", "=AQ"),
            "enc:v1:AAAA".to_owned(),
        ] {
            assert_eq!(SealKey::parse(bad.as_bytes()).err(), Some(NotAKey), "{bad}");
        }
        assert_eq!(SealKey::parse(b"\xff").err(), Some(NotAKey));
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", key(1)), "SealKey(..)");
    }
}
