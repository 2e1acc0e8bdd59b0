//! Load tests of Atlas.

fn main() {}
