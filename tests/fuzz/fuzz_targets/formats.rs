//! Any file of market data of another provider: no panic, and rows in order.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::files_fuzz::formats(bytes));
