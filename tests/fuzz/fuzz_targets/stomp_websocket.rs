//! Any bytes over a WebSocket into a broker: no panic, bounded memory, whole frames.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::stomp::fuzz::websocket(bytes));
