//! Any bytes into a shard, into the codecs and sessions of FIX and STOMP: no panic, and the rules hold. The corpus of each
//! fuzz target is replayed, then bytes at random.

use std::path::Path;

use pitlane_tests::dice::Dice;
use pitlane_tests::stomp::fuzz as stomp;
use pitlane_tests::{decode, fix_fuzz, seeds, websocket_fuzz};

/// Length of a random input: some hundred commands.
const BYTES: u64 = 4_000;

/// Length of a random script for a FIX session.
const SCRIPT_BYTES: usize = 300;

/// Plays everything that a fuzz target has kept.
fn replay(target: &str, play: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("a readable folder").path();
        play(&std::fs::read(&path).expect("a readable file"));
        count += 1;
    }
    assert!(count > 0, "an empty corpus proves nothing");
}

fn at_random(count: u64, play: impl Fn(&[u8]) + Sync) {
    seeds::run(count, |seed, _| {
        let mut dice = Dice::new(seed ^ 0xf022);
        let length = dice.below(BYTES);
        let bytes: Vec<u8> = (0..length).map(|_| dice.roll() as u8).collect();
        play(&bytes);
        Ok(())
    });
}

#[test]
fn the_corpus_is_survived() {
    replay("commands", decode::play);
}

#[test]
fn bytes_at_random_are_survived() {
    at_random(400, decode::play);
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
fn scripts_at_random_are_survived_by_a_fix_session() {
    at_random(2_000, |bytes| fix_fuzz::session(&bytes[..bytes.len().min(SCRIPT_BYTES)]));
}

#[test]
fn the_corpus_of_the_stomp_decoder_is_survived() {
    replay("stomp_decode", stomp::decode);
}

#[test]
fn the_corpus_of_the_stomp_broker_is_survived() {
    replay("stomp_broker", stomp::play);
}

#[test]
fn deeds_at_random_are_survived_by_the_stomp_broker() {
    at_random(400, stomp::play);
}

#[test]
fn the_corpus_of_the_websocket_is_survived() {
    replay("websocket", websocket_fuzz::receive);
}

/// Heads that are nearly right, short payloads, and now and then a byte that is anything.
#[test]
fn frames_at_random_are_received_the_same_wherever_they_are_cut() {
    const FIRST: [u8; 12] = [0x81, 0x01, 0x00, 0x80, 0x82, 0x02, 0x89, 0x8a, 0x88, 0x80, 0x00, 0x91];
    const WORDS: [&[u8]; 8] =
        [b"", b"plain", "κό".as_bytes(), b"\xce", b"\xba", b"\x03\xe8", b"\xf0\x9f", b"\x98\x80"];
    at_random(3_000, |bytes| {
        let mut stream = vec![bytes.first().copied().unwrap_or(0)];
        for choice in bytes.iter().skip(1).take(40) {
            let payload = WORDS[*choice as usize % WORDS.len()];
            stream.push(FIRST[*choice as usize / 8 % FIRST.len()]);
            stream.push(0x80 | payload.len() as u8);
            stream.extend_from_slice(&[*choice; 4]);
            stream.extend(payload.iter().map(|byte| byte ^ choice));
            if *choice == 77 {
                stream.push(*choice);
            }
        }
        websocket_fuzz::receive(&stream);
    });
}

/// Octets at random are no frames; pieces of frames in disorder come near to some.
#[test]
fn pieces_of_frames_are_decoded_the_same_wherever_they_are_cut() {
    const PIECES: [&[u8]; 20] = [
        b"CONNECT",
        b"SEND",
        b"SUBSCRIBE",
        b"ACK",
        b"\n",
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        b"\0",
        b"\0",
        b":",
        b"id:1",
        b"receipt:r\\c1",
        b"content-length:",
        b"3",
        b"-1",
        b"abc",
        b"\\",
        b"\xff",
    ];
    at_random(3_000, |bytes| {
        let pieces = bytes.iter().skip(1).take(60).flat_map(|octet| PIECES[*octet as usize % PIECES.len()]);
        let stream: Vec<u8> = bytes.iter().take(1).chain(pieces).copied().collect();
        stomp::decode(&stream);
    });
}
