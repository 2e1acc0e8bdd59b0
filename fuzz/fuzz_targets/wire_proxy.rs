//! Runs the library's `fuzzing::wire_proxy`.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| atlas::fuzzing::wire_proxy(data));
