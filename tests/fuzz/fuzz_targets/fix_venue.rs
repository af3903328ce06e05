//! Any script into a session that connects to a venue: no panic, and its output obeys the rules.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::fix_fuzz::venue(bytes));
