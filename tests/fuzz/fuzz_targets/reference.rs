//! Any tables of reference data: no panic, and accepted tables can be stored.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::files_fuzz::reference(bytes));
