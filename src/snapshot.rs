//! Snapshot.
