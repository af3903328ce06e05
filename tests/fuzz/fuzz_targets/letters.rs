//! Any bytes as a message of a remote strategy or as a reply: no panic, and a decoded message
//! encodes to the same bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::remote_protocol_fuzz::read(bytes));
