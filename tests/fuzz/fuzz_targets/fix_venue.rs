//! Any script into a session that calls a venue: no panic, and what it says keeps the rules.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::fix_fuzz::venue(bytes));
