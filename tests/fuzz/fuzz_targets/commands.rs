//! Any sequence of commands into a shard: no panic, and its events obey the rules.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pitlane_tests::decode::run(bytes));
