//! Any bytes into a shard: no panic, and the rules hold. The corpus of the fuzz target is replayed, then bytes at random.

use std::path::Path;

use pitlane_tests::dice::Dice;
use pitlane_tests::{decode, seeds};

/// Length of a random input: some hundred commands.
const BYTES: u64 = 4_000;

#[test]
fn the_corpus_is_survived() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/commands");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("a readable folder").path();
        decode::play(&std::fs::read(&path).expect("a readable file"));
        count += 1;
    }
    assert!(count > 0, "an empty corpus proves nothing");
}

#[test]
fn bytes_at_random_are_survived() {
    seeds::run(400, |seed, _| {
        let mut dice = Dice::new(seed ^ 0xf022);
        let length = dice.below(BYTES);
        let bytes: Vec<u8> = (0..length).map(|_| dice.roll() as u8).collect();
        decode::play(&bytes);
        Ok(())
    });
}
