//! Runs the library's `fuzzing::sql_statement`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| atlas::fuzzing::sql_statement(data));
