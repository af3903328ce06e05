//! Any tables of reference data: no panic, and what is taken can be kept.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::files_fuzz::reference(bytes));
