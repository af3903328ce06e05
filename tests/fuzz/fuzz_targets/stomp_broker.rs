//! Any actions of clients and markets into a STOMP broker: no panic, bounded memory, and no frame
//! after the last.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::stomp::fuzz::run(bytes));
