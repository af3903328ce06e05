//! Any text as a query string, a search, a number or a time: no panic.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::rest_fuzz::query(bytes));
