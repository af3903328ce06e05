//! Any bytes into a WebSocket: no panic, and the same result as a naive reader wherever they are
//! cut.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::websocket_fuzz::receive(bytes));
