//! The control plane: reading the configuration, checking servers, signals, the HTTP and the admin port. Threads here may block; nothing here is on a
//! statement's way.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "files, threads, blocking sockets and the clock are control's business"
)]

pub mod admin;
mod ask;
mod certificates;
mod checks;
pub mod decisions;
mod desk;
mod events;
mod files;
pub mod handover;
pub mod http;
mod key;
mod load;
pub mod mirrors;
mod names;
pub mod notices;
pub mod notify;
mod probe;
mod pulses;
pub mod roles;
pub mod signal;
pub mod statements;
pub mod stop;

pub use certificates::read_tls;
pub use checks::Checks;
pub use desk::{Applied, Desk, Refused};
pub use events::{Event, Events};
pub use key::encrypt;
pub use load::{LoadError, Loaded, key_file, load_config, load_config_alone, load_file, read_file};
pub use probe::globals::{await_known as await_global_tables, start as watch_global_tables};
