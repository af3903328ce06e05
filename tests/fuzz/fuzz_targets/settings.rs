//! Any layers of settings: no panic, and every mistake is reported.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::files_fuzz::settings(bytes));
