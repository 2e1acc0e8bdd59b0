//! The error type of the load tests and the two ways in which errors get their context.

use std::fmt;
use std::io;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a load test could not go on.
#[derive(Debug)]
pub(crate) enum Error {
    /// The command line is wrong; the text says how.
    Usage(String),
    /// A program, a privilege or a kernel feature is missing; the text says which and how to get it.
    Missing(String),
    /// The operating system refused something.
    Io { doing: String, source: io::Error },
    /// A program that was started, or a server that was asked, did not do what it should.
    Failed(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => write!(f, "{text} (loadtest --help tells the options)"),
            Self::Missing(text) | Self::Failed(text) => f.write_str(text),
            Self::Io { doing, source } => write!(f, "{doing}: {source}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Usage(_) | Self::Missing(_) | Self::Failed(_) => None,
        }
    }
}

impl From<lexopt::Error> for Error {
    fn from(e: lexopt::Error) -> Self {
        Self::Usage(e.to_string())
    }
}

/// Says what was being done when an `io::Error` came up.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Io {
            doing: what(),
            source,
        })
    }
}
