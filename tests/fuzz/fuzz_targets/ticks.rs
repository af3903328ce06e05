//! Any file of ticks or bars in CSV: no panic, and rows in order.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::files_fuzz::ticks(bytes));
