//! Any bytes as a letter of a strategy elsewhere or an answer: no panic, and whatever is read was written so.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::letters_fuzz::read(bytes));
