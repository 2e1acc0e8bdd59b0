//! The authentication plugins by which Atlas checks its own clients.

use super::scramble;

/// A plugin that Atlas, as a server, can check an answer of. What Atlas speaks as a client is wider: see `client`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plugin {
    /// `caching_sha2_password`: MySQL's default since 8.0.
    CachingSha2,
    /// `mysql_native_password`: MariaDB's default, and what clients without plugin support use.
    Native,
}

impl Plugin {
    /// The name in greetings and auth switches.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CachingSha2 => "caching_sha2_password",
            Self::Native => "mysql_native_password",
        }
    }

    /// The plugin of this name, if Atlas can check it. Servers compare plugin names without regard to case.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        [Self::CachingSha2, Self::Native]
            .into_iter()
            .find(|p| name.eq_ignore_ascii_case(p.name().as_bytes()))
    }

    /// Length in bytes of an answer that was made with a password.
    pub(super) const fn response_len(self) -> usize {
        match self {
            Self::CachingSha2 => 32,
            Self::Native => 20,
        }
    }

    /// Whether the answer says "I have no password": nothing, or for `caching_sha2_password` also one zero byte (that is
    /// what its client plugin writes).
    pub(super) fn says_no_password(self, response: &[u8]) -> bool {
        match self {
            Self::CachingSha2 => matches!(response, [] | [0]),
            Self::Native => response.is_empty(),
        }
    }

    /// Whether the answer has a shape that this plugin's client can send.
    pub(super) fn fits(self, response: &[u8]) -> bool {
        self.says_no_password(response) || response.len() == self.response_len()
    }

    /// Whether the answer proves this password, by the plugin's arithmetic. An empty answer proves the empty password and
    /// nothing else; an empty password is proved by an empty answer and nothing else.
    pub(super) fn verify(self, password: &[u8], nonce: &[u8; 20], response: &[u8]) -> bool {
        match self {
            Self::CachingSha2 if response == [0] => password.is_empty(),
            Self::CachingSha2 => scramble::verify_caching_sha2(password, nonce, response),
            Self::Native => scramble::verify_native(password, nonce, response),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_without_regard_to_case() {
        for plugin in [Plugin::CachingSha2, Plugin::Native] {
            assert_eq!(Plugin::from_name(plugin.name().as_bytes()), Some(plugin));
            assert_eq!(
                Plugin::from_name(plugin.name().to_uppercase().as_bytes()),
                Some(plugin)
            );
        }
        for other in [
            "",
            "client_ed25519",
            "sha256_password",
            "mysql_clear_password",
            "mysql_native_password ",
        ] {
            assert_eq!(Plugin::from_name(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn shapes_of_answers() {
        for (plugin, len, first, fits, empty) in [
            (Plugin::CachingSha2, 0, 0, true, true),
            (Plugin::CachingSha2, 1, 0, true, true),
            (Plugin::CachingSha2, 1, 1, false, false),
            (Plugin::CachingSha2, 20, 0, false, false),
            (Plugin::CachingSha2, 32, 0, true, false),
            (Plugin::CachingSha2, 255, 0, false, false),
            (Plugin::Native, 0, 0, true, true),
            (Plugin::Native, 1, 0, false, false),
            (Plugin::Native, 20, 0, true, false),
            (Plugin::Native, 32, 0, false, false),
        ] {
            let response = vec![first; len];
            assert_eq!(plugin.fits(&response), fits, "{plugin:?} {len}");
            assert_eq!(
                plugin.says_no_password(&response),
                empty,
                "{plugin:?} {len}"
            );
        }
    }
}
