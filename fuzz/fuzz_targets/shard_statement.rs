//! Runs the library's `fuzzing::shard_statement`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| atlas::fuzzing::shard_statement(data));
