//! Any bytes into a shard, into the FIX codec, into a FIX session: no panic, and the rules hold. The corpus of each fuzz target is
//! replayed, then bytes at random.

use std::path::Path;

use pitlane_tests::dice::Dice;
use pitlane_tests::{decode, fix_fuzz, seeds};

/// Length of a random input: some hundred commands.
const BYTES: u64 = 4_000;

/// Length of a random script for a session.
const SCRIPT_BYTES: u64 = 300;

fn replay(target: &str, play: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("a readable folder").path();
        play(&std::fs::read(&path).expect("a readable file"));
        count += 1;
    }
    assert!(count > 0, "an empty corpus proves nothing");
}

fn at_random(seed: u64, length_max: u64) -> Vec<u8> {
    let mut dice = Dice::new(seed ^ 0xf022);
    (0..dice.below(length_max)).map(|_| dice.roll() as u8).collect()
}

#[test]
fn the_corpus_is_survived() {
    replay("commands", decode::play);
}

#[test]
fn the_corpus_of_the_fix_codec_is_survived() {
    replay("fix_decode", fix_fuzz::decode);
}

#[test]
fn the_corpus_of_the_fix_session_is_survived() {
    replay("fix_session", fix_fuzz::session);
}

#[test]
fn bytes_at_random_are_survived() {
    seeds::run(400, |seed, _| {
        decode::play(&at_random(seed, BYTES));
        Ok(())
    });
}

#[test]
fn scripts_at_random_are_survived_by_a_fix_session() {
    seeds::run(2_000, |seed, _| {
        fix_fuzz::session(&at_random(seed, SCRIPT_BYTES));
        Ok(())
    });
}
