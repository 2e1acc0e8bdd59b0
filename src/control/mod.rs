//! The control plane: reading the configuration, checking servers, signals, the HTTP port. Threads here may block; nothing here is on a
//! statement's way.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "files, threads, blocking sockets and the clock are control's business"
)]

pub mod http;
mod key;
mod load;
mod names;
pub mod notify;
pub mod probe;
pub mod signal;

pub use key::encrypt;
pub use load::{LoadError, key_file, load_config, load_config_alone, read_file};
