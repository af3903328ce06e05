//! Any audit log: the verifier accepts it or reports where it is damaged.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::files_fuzz::audit(bytes));
