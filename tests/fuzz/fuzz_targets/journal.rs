//! A journal with any changes: it is read, or refused with file and place.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::journal_fuzz::read(bytes));
