//! Runs the library's `fuzzing::session_state`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| atlas::fuzzing::session_state(data));
