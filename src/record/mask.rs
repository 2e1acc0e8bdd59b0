//! Statements of which nobody may read the literals: those that have to do with passwords.

use memchr::memmem::Finder;

/// Words of which one stands in every statement that sets or proves a password.
const WORDS: [&[u8]; 3] = [b"password", b"identified", b"authentication_string"];

/// Whether a text may hold a password. Rather one too many: what is masked still has its form.
pub(super) fn is_secret(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    WORDS
        .iter()
        .any(|word| Finder::new(word).find(&lower).is_some())
}
