//! The arithmetic of the authentication plugins: what a client answers to a nonce, and how a server that knows the clear
//! password checks it. No packets, no decisions.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Context, Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};
use ed25519_dalek::hazmat::{ExpandedSecretKey, raw_sign};
use ed25519_dalek::{Sha512, VerifyingKey};
use zeroize::Zeroizing;

/// The answer of `mysql_native_password`: `SHA1(pw) XOR SHA1(nonce || SHA1(SHA1(pw)))`, 20 bytes; nothing for an empty
/// password. ("Native Authentication" in MySQL's protocol documentation.)
pub fn native_scramble(password: &[u8], nonce: &[u8; 20]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let stage1 = digest(&SHA1_FOR_LEGACY_USE_ONLY, password);
    let stage2 = digest(&SHA1_FOR_LEGACY_USE_ONLY, stage1.as_ref());
    let mut ctx = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    ctx.update(nonce);
    ctx.update(stage2.as_ref());
    xor(&stage1, &ctx.finish())
}

/// The answer of `caching_sha2_password` for the fast path: `SHA256(pw) XOR SHA256(SHA256(SHA256(pw)) || nonce)`, 32 bytes;
/// nothing for an empty password. ("Caching_sha2_password information" in MySQL's source documentation.)
pub fn caching_sha2_scramble(password: &[u8], nonce: &[u8; 20]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let stage1 = digest(&SHA256, password);
    let stage2 = digest(&SHA256, stage1.as_ref());
    let mut ctx = Context::new(&SHA256);
    ctx.update(stage2.as_ref());
    ctx.update(nonce);
    xor(&stage1, &ctx.finish())
}

/// Whether `response` is what `mysql_native_password` answers for this password and nonce. Compares in constant time; an
/// empty password is proved by an empty response only.
pub fn verify_native(password: &[u8], nonce: &[u8; 20], response: &[u8]) -> bool {
    verify_slices_are_equal(&Zeroizing::new(native_scramble(password, nonce)), response).is_ok()
}

/// Whether `response` is what `caching_sha2_password` answers for this password and nonce. Compares in constant time; an
/// empty password is proved by an empty response only.
pub fn verify_caching_sha2(password: &[u8], nonce: &[u8; 20], response: &[u8]) -> bool {
    verify_slices_are_equal(
        &Zeroizing::new(caching_sha2_scramble(password, nonce)),
        response,
    )
    .is_ok()
}

/// The answer of MariaDB's `client_ed25519`: an Ed25519 signature of the nonce. The plugin takes `SHA512(password)` as the
/// *expanded* key, where the standard would hash a 32-byte seed; so any password length works and no seed exists.
pub fn ed25519_sign(password: &[u8], nonce: &[u8]) -> [u8; 64] {
    let mut expanded = Zeroizing::new([0; 64]);
    // SHA-512 gives 64 bytes: a shorter copy would be a fault of the library, and then the server refuses the signature.
    for (to, from) in expanded.iter_mut().zip(digest(&SHA512, password).as_ref()) {
        *to = *from;
    }
    let key = ExpandedSecretKey::from_bytes(&expanded);
    // Signing with a public key that is not this secret's would give the secret away: it is derived here, never passed in.
    let public = VerifyingKey::from(&key);
    raw_sign::<Sha512>(&key, nonce, &public).to_bytes()
}

/// Turns 20 random bytes into a nonce as servers send it: every byte 1 to 127 and not `$`, because old clients take it for
/// a C string and the stored form of passwords uses `$` as a separator.
pub fn nonce_from_random(random: [u8; 20]) -> [u8; 20] {
    random.map(|byte| match byte & 0x7f {
        0 => 1,
        b'$' => b'%',
        other => other,
    })
}

fn xor(a: &Digest, b: &Digest) -> Vec<u8> {
    a.as_ref()
        .iter()
        .zip(b.as_ref())
        .map(|(a, b)| a ^ b)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTING: [u8; 20] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    ];

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Expected values computed with Python's hashlib.
    #[test]
    fn native_and_caching_sha2_known_answers() {
        let long = "\u{e9}t\u{e9} x".repeat(40);
        let cases: [(&[u8], &[u8; 20], &str, &str); 3] = [
            (
                b"app-pw",
                &COUNTING,
                "579695bbbad2fbf4bf80e5b06ed0125039a1237e",
                "4a415d790837373c05e043497ea9bc928c1beac00b3789757fa3fbf4b0ad60f2",
            ),
            (
                long.as_bytes(),
                b"<LHgK\"dTV7KVnc)AL8qS",
                "71d64139a2897362de6992752898d89416a1b98d",
                "d806cfb10bd1d095d123f16203f0c264ee98c6cc507fb05c919b583a36aac25d",
            ),
            (
                b"a",
                &[b'~'; 20],
                "d1be9be9fa76ab8a3f852a88430cd7242629fd3e",
                "7efc1c8ff2ad7e375d0a92f0f336f9bc40650794fe963142075a6501decde5a2",
            ),
        ];
        for (password, nonce, native, sha2) in cases {
            assert_eq!(hex(&native_scramble(password, nonce)), native);
            assert_eq!(hex(&caching_sha2_scramble(password, nonce)), sha2);
        }
    }

    /// Expected values from a plain-integer Ed25519 in Python, with SHA512(password) as the expanded key.
    #[test]
    fn ed25519_known_answers() {
        let counting: [u8; 32] = std::array::from_fn(|i| u8::try_from(i).unwrap_or_default());
        for (password, nonce, signature) in [
            (
                "ed-pw",
                &counting[..],
                "b89e73821d55197da501e7f35c22c64d7ffd8eae9fe1df9acb9f7cba9efb1611\
                 83aacd7255db3443a284b5df4fadd84260c02ee36d3d53f785caec3c9e734f02",
            ),
            (
                "",
                &[0; 32],
                "ef1f54f720a3280ce28bd63041e8710a5ec141c77a6f2cc7a1130d7f82147858\
                 c493469158a3499bd529908ef454326a196fadff372865801e9895b9f7ca190e",
            ),
            (
                "foo",
                &[0xff; 32],
                "06ab49c57fcd5e814630c736f929d5dc234704a933472cdb4586ca177c943ef7\
                 0d160050d0c29d49459f07d2d12e6e1e27f2b0ef92a3991b64d49be62fc58b01",
            ),
        ] {
            assert_eq!(
                hex(&ed25519_sign(password.as_bytes(), nonce)),
                signature,
                "{password}"
            );
        }
    }

    /// Taken from the wire; the servers accepted these answers: MySQL 9.7.4 (fast path), MariaDB 10.11.19.
    #[test]
    fn answers_that_real_servers_accepted() {
        assert_eq!(
            hex(&caching_sha2_scramble(
                b"app-pw",
                b"\x6a\x65\x14\x1c\x5c\x15\x6b\x23\x47\x55\x08\x25\x68\x72\x07\x7c\x39\x2b\x75\x65"
            )),
            "07b7f0aad22c1853501248c2a6ce7584e3ca3285061f9d485d3e80873baaad1b"
        );
        assert_eq!(
            hex(&native_scramble(b"app-pw", b"Iq~F#wRslFXfzQc#|l*)")),
            "1210476fd9a1c9935dd28e2438b0e3aab9dc52a5"
        );
        assert_eq!(
            hex(&ed25519_sign(
                b"ed-pw",
                b"\x60\x40\x24\xce\x56\xd3\x08\xd2\x6b\xe4\x15\x19\x4e\xab\x37\xe6\xc5\xe0\x23\xcd\x44\x04\x11\x4c\xa7\x93\x60\x31\xc7\xbd\xd7\x40"
            )),
            "d980c907f158730e7ef138b2e68789f0ee5c02b225d405263d9f71cbbdee6ddb\
             6d202bd1eadf8632fbe854492e2f22772361c109b0380df5774bcbcdda600b03"
        );
    }

    #[test]
    fn an_empty_password_is_proved_by_an_empty_response_only() {
        assert!(native_scramble(b"", &COUNTING).is_empty());
        assert!(caching_sha2_scramble(b"", &COUNTING).is_empty());
        assert!(verify_native(b"", &COUNTING, b"") && verify_caching_sha2(b"", &COUNTING, b""));
        assert!(!verify_native(b"x", &COUNTING, b"") && !verify_caching_sha2(b"x", &COUNTING, b""));
        // What the formula would give for an empty password is not accepted either.
        let stage1 = digest(&SHA256, b"");
        let stage2 = digest(&SHA256, stage1.as_ref());
        let mut ctx = Context::new(&SHA256);
        ctx.update(stage2.as_ref());
        ctx.update(&COUNTING);
        assert!(!verify_caching_sha2(
            b"",
            &COUNTING,
            &xor(&stage1, &ctx.finish())
        ));
    }

    #[test]
    fn every_single_bit_matters() {
        let nonce = &[7; 20];
        for (scramble, verify) in [
            (
                native_scramble as fn(&[u8], &[u8; 20]) -> Vec<u8>,
                verify_native as fn(&[u8], &[u8; 20], &[u8]) -> bool,
            ),
            (caching_sha2_scramble, verify_caching_sha2),
        ] {
            let right = scramble(b"pw", nonce);
            assert!(verify(b"pw", nonce, &right));
            for bit in 0..right.len() * 8 {
                let mut wrong = right.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(!verify(b"pw", nonce, &wrong), "bit {bit}");
            }
            assert!(!verify(b"pw", nonce, &right[1..]));
            assert!(!verify(b"pw", nonce, &[&right[..], &[0]].concat()));
            assert!(!verify(b"pw", &[8; 20], &right), "another nonce");
            assert!(!verify(b"Pw", nonce, &right), "another password");
        }
    }

    #[test]
    fn nonces_are_printable_for_c() {
        let nonce = nonce_from_random(std::array::from_fn(|i| {
            [0, 0x80, b'$', b'$' | 0x80, 0xff, 1][i % 6]
        }));
        assert!(
            nonce.iter().all(|b| (1..=127).contains(b) && *b != b'$'),
            "{nonce:?}"
        );
        assert_eq!(nonce_from_random([b'A'; 20]), [b'A'; 20]);
    }
}
