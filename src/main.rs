//! The `atlas` program.

fn main() {}
