//! A journal with any changes: it is read, or rejected with file and position.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::journal_fuzz::read(bytes));
