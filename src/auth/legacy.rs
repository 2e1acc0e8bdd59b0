//! Passwords as the original Atlas kept them: base64 of DES in single blocks, under a key that is in its public source. That is
//! no protection; it is read here so that old configurations can be taken over, and never written.

use base64ct::{Base64, Encoding};
use des::Des;
use des::cipher::{Block, BlockCipherDecrypt, KeyInit};
use zeroize::Zeroizing;

use super::Secret;

/// The first eight bytes of the word that the original was compiled with.
const KEY: [u8; 8] = *b"aCtZlHaU";

const BLOCK_LEN: u8 = 8;

/// The password in a value that the original's `encrypt` printed; nothing when it is no such value. Longer ones have line ends
/// in them, which say nothing.
#[must_use]
pub fn legacy_password(value: &str) -> Option<Secret> {
    let packed: String = value.split_ascii_whitespace().collect();
    let mut bytes = Zeroizing::new(Base64::decode_vec(&packed).ok()?);
    let cipher = Des::new(&KEY.into());
    let (blocks, rest) = bytes.as_chunks_mut::<8>();
    if !rest.is_empty() {
        return None;
    }
    for block in blocks {
        let mut plain = Block::<Des>::from(*block);
        cipher.decrypt_block(&mut plain);
        *block = plain.into();
    }
    // Padding: as many bytes as are missing to a whole block, each holding that number.
    let padding = *bytes.last()?;
    let len = bytes.len().checked_sub(usize::from(padding))?;
    let is_padding =
        (1..=BLOCK_LEN).contains(&padding) && bytes.get(len..)?.iter().all(|byte| *byte == padding);
    is_padding.then(|| Secret::new(bytes.get(..len).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_original_printed() {
        for (password, value) in [
            ("123456", "/iZxz+0GRoA="),
            ("mypwd", "HJBoxfRsjeI="),
            ("123", "3yb5jEku5h4="),
            ("mha", "O2jBXONX098="),
            ("1", "Kiu1AJ+oS14="),
            ("user1", "+jKsgB3YAG8="),
            ("user2", "GS+tr4TPgqc="),
        ] {
            assert_eq!(
                legacy_password(value),
                Some(Secret::from(password)),
                "{password}"
            );
        }
    }

    #[test]
    fn what_is_no_such_value() {
        for value in [
            "",
            "x",
            "/iZxz+0GRoA",
            "/iZxz+0GRo==",
            "AAAAAAAAAAA=",
            "/iZxz+0GRoAA",
            "é",
        ] {
            assert_eq!(legacy_password(value), None, "{value}");
        }
    }
}
