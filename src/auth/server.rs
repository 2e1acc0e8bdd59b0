//! Atlas as the server: decides about a client's log-in and about COM_CHANGE_USER. Knows no packets beyond their payloads and
//! no accounts beyond the passwords that the caller found for the user's name.
//!
//! Atlas has the clear passwords, so the fast path of `caching_sha2_password` always decides: the "perform full
//! authentication" packet (`01 04`) is never sent. A client starts full authentication only when told so by that packet;
//! neither its clear password nor its RSA encryption is ever asked for, with or without TLS.
//!
//! ```text
//!  login ──┬─ answer fits a plugin that Atlas checks ─────────────► Verified | FastOk | Denied
//!          └─ other plugin, other length, or a dummy answer ─ Switch ─► answer ─► Verified | FastOk | Denied
//!  change_user ─ always ─────────────────────────────────── Switch ─► answer ─► Verified | FastOk | Denied
//! ```
//!
//! What is sent depends on what the *client* said, never on whether the account exists: an unknown user goes through the same
//! steps as a wrong password, with the same arithmetic against a password that cannot match.

use std::fmt;
use std::sync::Arc;

use super::{Plugin, Secret};

/// How a client proves who it is, as read from the log-in packet or COM_CHANGE_USER.
#[derive(Clone, Copy)]
pub struct Proof<'a> {
    /// Whether PLUGIN_AUTH is among the client's capabilities. Without it a client answers by `mysql_native_password` and
    /// does not understand an auth switch.
    pub plugin_auth: bool,
    /// The plugin that the client names; `None` when the packet has no such field.
    pub plugin: Option<&'a [u8]>,
    /// The authentication response, as it is in the packet.
    pub response: &'a [u8],
}

/// What to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStep {
    /// An AuthSwitch packet with this plugin's name and, as data, the nonce followed by one zero byte. The payload of the
    /// client's next packet goes to [`ServerAuth::answer`].
    Switch {
        /// The plugin to switch to.
        plugin: Plugin,
        /// The new nonce: the one that the caller passed in.
        nonce: [u8; 20],
    },
    /// Logged in by `caching_sha2_password`: send AuthMore with the one byte 0x03, then the OK packet.
    FastOk,
    /// Logged in: send the OK packet.
    Verified,
    /// Refused: send error 1045 ([`access_denied_text`]) and close.
    Denied(Denied),
}

/// Why a client is refused. Only `using_password` may reach the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// For the error text: whether the client answered with a password.
    pub using_password: bool,
    /// Whether the answer could have been the right one: a guess.
    pub is_guess: bool,
    /// For the log: what was wrong.
    pub why: &'static str,
}

/// One log-in or change of user. Made per attempt; after `Verified`, `FastOk` or `Denied` it answers `Denied` to anything.
#[derive(Debug)]
pub struct ServerAuth {
    offered: Plugin,
    accepted: Option<Arc<[Secret]>>,
    state: State,
}

#[derive(Debug)]
enum State {
    Start,
    AwaitAnswer { plugin: Plugin, nonce: [u8; 20] },
    Over,
}

impl ServerAuth {
    /// `offered` is the plugin that the greeting named, which is also the one to switch to when the client's own is of no use.
    /// `accepted` are the passwords of the account (more than one while a password is being changed), `None` for an unknown
    /// user or one that may not log in from where it is.
    pub fn new(offered: Plugin, accepted: Option<Arc<[Secret]>>) -> Self {
        Self {
            offered,
            accepted,
            state: State::Start,
        }
    }

    /// Takes the log-in packet. `nonce` is the greeting's, `fresh` a new one for a switch ([`nonce_from_random`]).
    ///
    /// [`nonce_from_random`]: super::nonce_from_random
    pub fn login(&mut self, proof: Proof<'_>, nonce: &[u8; 20], fresh: &[u8; 20]) -> ServerStep {
        if !matches!(self.state, State::Start) {
            return self.deny(proof.response, "a second log-in packet");
        }
        if !proof.plugin_auth {
            return self.decide(Plugin::Native, nonce, proof.response);
        }
        let Some(plugin) = proof.plugin.and_then(Plugin::from_name) else {
            return self.switch(self.offered, fresh);
        };
        // A client whose plugin is not the offered one has no nonce for it: libmysqlclient then sends an empty answer and
        // waits for a switch. From the offered plugin an empty answer means an empty password.
        let is_dummy = plugin != self.offered && plugin.says_no_password(proof.response);
        if is_dummy || !plugin.fits(proof.response) {
            return self.switch(plugin, fresh);
        }
        self.decide(plugin, nonce, proof.response)
    }

    /// Takes COM_CHANGE_USER. Servers answer it with a switch whatever the client sent, to a new nonce but for the native plugin,
    /// where the connection's last one (`nonce`) is sent once more: MariaDB's client library answers with that one without
    /// a look at what it gets. Only a client without PLUGIN_AUTH is checked at once.
    pub fn change_user(
        &mut self,
        proof: Proof<'_>,
        nonce: &[u8; 20],
        fresh: &[u8; 20],
    ) -> ServerStep {
        if !matches!(self.state, State::Start) {
            return self.deny(proof.response, "a second change of user");
        }
        if !proof.plugin_auth {
            return self.decide(Plugin::Native, nonce, proof.response);
        }
        let plugin = proof
            .plugin
            .and_then(Plugin::from_name)
            .unwrap_or(self.offered);
        self.switch(
            plugin,
            match plugin {
                Plugin::Native => nonce,
                _ => fresh,
            },
        )
    }

    /// Takes the payload of the client's packet after a `Switch`.
    pub fn answer(&mut self, response: &[u8]) -> ServerStep {
        match self.state {
            State::AwaitAnswer { plugin, nonce } => self.decide(plugin, &nonce, response),
            State::Start | State::Over => self.deny(response, "an answer that was not asked for"),
        }
    }

    fn switch(&mut self, plugin: Plugin, fresh: &[u8; 20]) -> ServerStep {
        self.state = State::AwaitAnswer {
            plugin,
            nonce: *fresh,
        };
        ServerStep::Switch {
            plugin,
            nonce: *fresh,
        }
    }

    fn decide(&mut self, plugin: Plugin, nonce: &[u8; 20], response: &[u8]) -> ServerStep {
        self.state = State::Over;
        let using_password = !plugin.says_no_password(response);
        if !plugin.fits(response) {
            return ServerStep::Denied(Denied {
                using_password,
                is_guess: false,
                why: "the answer has a length that its plugin never sends",
            });
        }
        // Every listed password is tried, and at least one for an unknown user, so that the time tells little.
        let known = self.accepted.as_deref().unwrap_or_default();
        let mut proved = false;
        for password in known {
            proved |= plugin.verify(password.expose(), nonce, response);
        }
        if known.is_empty() {
            std::hint::black_box(plugin.verify(DUMMY_PASSWORD, nonce, response));
        }
        match (proved, plugin) {
            // An empty password is accepted without the fast path's packet, as MySQL does.
            (true, Plugin::CachingSha2) if using_password => ServerStep::FastOk,
            (true, _) => ServerStep::Verified,
            (false, _) if self.accepted.is_none() => ServerStep::Denied(Denied {
                using_password,
                is_guess: true,
                why: "no such user",
            }),
            (false, _) => ServerStep::Denied(Denied {
                using_password,
                is_guess: true,
                why: "wrong password",
            }),
        }
    }

    fn deny(&mut self, response: &[u8], why: &'static str) -> ServerStep {
        self.state = State::Over;
        ServerStep::Denied(Denied {
            using_password: !response.is_empty(),
            is_guess: false,
            why,
        })
    }
}

/// A client set to `mysql_clear_password` puts its clear password into the response: only the length is shown.
impl fmt::Debug for Proof<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proof")
            .field("plugin_auth", &self.plugin_auth)
            .field("plugin", &self.plugin.map(String::from_utf8_lossy))
            .field("response_len", &self.response.len())
            .finish()
    }
}

/// The text of error 1045 as servers write it. `user` is what the client sent: it is cut to a sane length, and bytes that
/// are not UTF-8 are replaced.
pub fn access_denied_text(user: &[u8], host: &str, using_password: bool) -> String {
    let user = String::from_utf8_lossy(user.get(..USER_SHOWN_MAX).unwrap_or(user));
    let yes_no = if using_password { "YES" } else { "NO" };
    format!("Access denied for user '{user}'@'{host}' (using password: {yes_no})")
}

/// Stands in for the password of an unknown user; whatever it proves is thrown away.
const DUMMY_PASSWORD: &[u8] = b"no such account";

/// Longer than any user name that a server allows (MySQL 32 characters, MariaDB 128).
const USER_SHOWN_MAX: usize = 256;

#[cfg(test)]
mod tests;
