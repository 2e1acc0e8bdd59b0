//! For how long a client may say nothing, and who says so: what the shell needs to end sessions that rest for too long.

use std::time::Duration;

use super::Session;
use crate::sql::Server;

impl Session {
    /// How long the client may say nothing, where the session has set it.
    #[must_use]
    pub fn idle_limit(&self) -> Option<Duration> {
        self.state.idle_limit()
    }

    /// What kind of servers it has.
    #[must_use]
    pub fn server(&self) -> Server {
        self.server
    }
}
