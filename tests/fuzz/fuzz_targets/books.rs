//! Any file of users or tokens: no panic.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::files_fuzz::books(bytes));
