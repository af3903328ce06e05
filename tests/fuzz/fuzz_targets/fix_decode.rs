//! Any bytes into the FIX codec: no panic, and every byte belongs to a frame or is skipped.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::fix_fuzz::decode(bytes));
