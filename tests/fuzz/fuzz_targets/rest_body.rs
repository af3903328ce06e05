//! Any bytes as the body of a request: no panic, and an accepted body is JSON.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::rest_fuzz::body(bytes));
