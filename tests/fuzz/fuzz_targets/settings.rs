//! Any layers of settings: no panic, and what is wrong is told.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::files_fuzz::settings(bytes));
