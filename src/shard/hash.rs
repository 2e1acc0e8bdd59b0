//! The hashes that spread keys over buckets. They are frozen: a row is where its hash says, for ever.

use super::key::Key;
use crate::config::Hash;

/// The bucket of a key among `buckets`, which is not zero.
pub(super) fn bucket(hash: Hash, key: &Key, buckets: u32) -> u32 {
    let buckets = buckets.max(1);
    match hash {
        Hash::Mod => match key {
            Key::Int(number) => modulo(*number, buckets),
            // Refused by the configuration where there is more than one bucket.
            Key::Text(_) | Key::Date(_) => 0,
        },
        Hash::Crc32 => crc32(&key.to_text()) % buckets,
        Hash::Atlas32 => match key {
            Key::Int(number) => original(*number) % buckets,
            Key::Text(text) => original(leading_number(text)) % buckets,
            Key::Date(_) => 0,
        },
    }
}

/// The mathematical modulus, which is never negative.
fn modulo(number: i128, buckets: u32) -> u32 {
    u32::try_from(number.rem_euclid(i128::from(buckets))).unwrap_or(0)
}

/// What the original made of a number: `atoi`, which keeps the low 32 bits of a number held within 64 bits, read as unsigned.
fn original(number: i128) -> u32 {
    let held = number.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    u32::try_from(held.rem_euclid(1 << 32)).unwrap_or(0)
}

/// The number that a text begins with, as `atoi` reads it; 0 if there is none.
fn leading_number(text: &[u8]) -> i128 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let number = digits
        .iter()
        .take_while(|b| b.is_ascii_digit())
        .fold(0_i128, |number, digit| {
            (number * 10 + i128::from(digit - b'0')).min(1 << 64)
        });
    if negative { -number } else { number }
}

/// CRC-32 as in zlib and in MySQL's function of this name.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc: u32, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_stand() {
        let of = |hash, number: i128, buckets| bucket(hash, &Key::Int(number), buckets);
        for (number, buckets, wanted) in [
            (10, 3, 1),
            (0, 3, 0),
            (-1, 2, 1),
            (-2, 2, 0),
            (-1, 3, 2),
            (i128::from(i64::MIN), 2, 0),
            (i128::from(i64::MIN), 7, 6),
            (i128::from(u64::MAX), 10, 5),
        ] {
            assert_eq!(
                of(Hash::Mod, number, buckets),
                wanted,
                "{number} mod {buckets}"
            );
        }
        // Measured with the original: ids from 2^31 on wrap to 32 bits, which are read as unsigned.
        for (number, buckets, wanted) in [
            (5, 4, 1),
            (1 << 31, 10, 8),
            ((1 << 31) + 1, 10, 9),
            ((1 << 32) + 1, 10, 1),
            (-1, 10, 5),
            (i128::from(i64::MAX), 10, 5),
            (i128::from(u64::MAX), 10, 5),
        ] {
            assert_eq!(
                of(Hash::Atlas32, number, buckets),
                wanted,
                "{number} atlas32 {buckets}"
            );
        }
        for (text, wanted) in [("12abc", 2), ("abc", 0), (" 7", 7), ("-1", 5), ("+3", 3)] {
            let key = Key::Text(text.as_bytes().to_vec());
            assert_eq!(bucket(Hash::Atlas32, &key, 10), wanted, "{text}");
        }
        // The second is in the manual of MySQL.
        for (bytes, wanted) in [
            (&b""[..], 0),
            (b"MySQL", 3_259_397_556),
            (b"123456789", 0xcbf4_3926),
            (b"-1", 0x302d_482a),
            (b"2024-01-05", 0xd19d_3929),
        ] {
            assert_eq!(crc32(bytes), wanted);
        }
        assert_eq!(of(Hash::Crc32, 123_456_789, 1000), 0xcbf4_3926 % 1000);
    }
}
