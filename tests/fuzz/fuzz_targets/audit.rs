//! Any audit log: it is sound, or it is told where it is not.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::files_fuzz::audit(bytes));
