//! Any bytes into the STOMP decoder: no panic, and the same frames wherever they are cut.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::stomp::fuzz::decode(bytes));
