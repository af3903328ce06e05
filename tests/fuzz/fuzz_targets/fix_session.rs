//! Any script into a FIX session: no panic, and its output obeys the rules.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::fix_fuzz::session(bytes));
