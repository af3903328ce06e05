//! Any sequence of commands into a shard: no panic, and what it says keeps the rules.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::decode::play(bytes));
