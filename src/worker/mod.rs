//! Worker.

pub mod tls;
