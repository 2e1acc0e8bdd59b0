//! Route.
