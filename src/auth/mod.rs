//! Credentials and challenge logic of both sides, without sockets, clock or entropy.
//!
//! - [`Secret`]: a password in memory; [`SealKey`]: passwords as they may stand in a file; [`legacy_password`]: as the original
//!   kept them.
//! - [`native_scramble`], [`caching_sha2_scramble`], [`ed25519_sign`] and the `verify_*` functions: the arithmetic.
//! - [`ServerAuth`]: Atlas as the server; decides about a client's log-in and COM_CHANGE_USER.
//! - [`Failures`]: how long a wrong password waits for its answer.
//! - [`ClientAuth`]: Atlas as the client; logs in to a server.
//!
//! Packets are framed in `wire` and sent by `session`; random bytes come from the caller. Which files hold sealed passwords
//! and their key is the configuration's business.

mod client;
mod failures;
mod legacy;
mod plugin;
mod rsa;
mod scramble;
mod sealed;
mod secret;
mod server;

#[cfg(test)]
pub(crate) use rsa::testing::ServerKey;

pub use client::{AuthError, AuthStep, ClientAuth};
pub use failures::Failures;
pub use legacy::legacy_password;
pub use plugin::Plugin;
pub use scramble::{
    caching_sha2_scramble, ed25519_sign, native_scramble, nonce_from_random, verify_caching_sha2,
    verify_native,
};
pub use sealed::{NotAKey, SEALED_PREFIX, SealKey, UnsealError, key_file_text};
pub use secret::Secret;
pub use server::{Denied, Proof, ServerAuth, ServerStep, access_denied_text};
