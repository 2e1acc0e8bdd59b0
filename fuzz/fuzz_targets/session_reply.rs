//! Runs the library's `fuzzing::session_reply`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| atlas::fuzzing::session_reply(data));
