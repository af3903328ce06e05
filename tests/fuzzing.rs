//! Any bytes into a shard, into every codec, session and reader of files: no panic, and the rules
//! hold. The corpus of each fuzz target is replayed, then random bytes.

mod limits;

use std::path::Path;

use pitlane_engine::index::index_u8;
use pitlane_tests::dice::Dice;
use pitlane_tests::stomp::fuzz as stomp;
use pitlane_tests::{
    decode, files_fuzz, fix_fuzz, journal_fuzz, remote_protocol_fuzz, rest_fuzz, seeds, websocket_fuzz,
};

/// Most bytes of a random input: some hundred commands.
const BYTES: u64 = 4_000;

/// Most bytes of a random script for a FIX session.
const SCRIPT_BYTES: usize = 300;

type FuzzFn = fn(&[u8]);

/// Every fuzz target: its name, and the function that it calls.
const TARGETS: [(&str, FuzzFn); 19] = [
    ("commands", decode::run),
    ("fix_decode", fix_fuzz::decode),
    ("fix_session", fix_fuzz::session),
    ("fix_venue", fix_fuzz::venue),
    ("stomp_decode", stomp::decode),
    ("stomp_broker", stomp::run),
    ("stomp_websocket", stomp::websocket),
    ("websocket", websocket_fuzz::receive),
    ("rest_body", rest_fuzz::body),
    ("rest_query", rest_fuzz::query),
    ("settings", files_fuzz::settings),
    ("reference", files_fuzz::reference),
    ("ticks", files_fuzz::ticks),
    ("parquet", files_fuzz::parquet),
    ("formats", files_fuzz::formats),
    ("books", files_fuzz::books),
    ("audit", files_fuzz::audit),
    ("journal", journal_fuzz::read),
    ("letters", remote_protocol_fuzz::read),
];

#[test]
fn every_target_is_tested_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/fuzz_targets");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the targets are part of the repository")
        .map(|entry| entry.expect("a readable folder").path().with_extension(""))
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let mut played: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    names.sort();
    played.sort_unstable();
    assert_eq!(names, played);
}

#[test]
fn every_corpus_passes() {
    for (target, run) in TARGETS {
        replay(target, run);
    }
}

/// Plays the whole corpus of a fuzz target.
fn replay(target: &str, run: FuzzFn) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = entry.expect("a readable folder").path();
        println!("{}", path.display());
        run(&std::fs::read(&path).expect("a readable file"));
        count += 1;
    }
    assert!(count > 0, "an empty corpus proves nothing");
}

fn at_random(count: u64, run: impl Fn(&[u8]) + Sync) {
    seeds::run(count, |seed, _| {
        let mut dice = Dice::new(seed ^ 0xf022);
        let length = dice.below(BYTES);
        let bytes: Vec<u8> = (0..length).map(|_| dice.byte()).collect();
        run(&bytes);
        Ok(())
    });
}

#[test]
fn random_bytes_pass() {
    at_random(400, decode::run);
    at_random(200, remote_protocol_fuzz::read);
    at_random(200, files_fuzz::parquet);
    at_random(400, files_fuzz::formats);
    at_random(200, |bytes| journal_fuzz::read(&bytes[..bytes.len().min(SCRIPT_BYTES)]));
    at_random(400, |bytes| fix_fuzz::venue(&bytes[..bytes.len().min(SCRIPT_BYTES)]));
}

#[test]
fn random_scripts_into_a_fix_session_pass() {
    at_random(2_000, |bytes| fix_fuzz::session(&bytes[..bytes.len().min(SCRIPT_BYTES)]));
}

#[test]
fn random_actions_into_the_stomp_broker_pass() {
    at_random(400, stomp::run);
}

/// Headers that are nearly right, short payloads, and now and then a random byte.
#[test]
fn random_frames_are_received_the_same_wherever_they_are_cut() {
    const FIRST: [u8; 12] = [0x81, 0x01, 0x00, 0x80, 0x82, 0x02, 0x89, 0x8a, 0x88, 0x80, 0x00, 0x91];
    const WORDS: [&[u8]; 8] =
        [b"", b"plain", "κό".as_bytes(), b"\xce", b"\xba", b"\x03\xe8", b"\xf0\x9f", b"\x98\x80"];
    at_random(3_000, |bytes| {
        let mut stream = vec![bytes.first().copied().unwrap_or(0)];
        for choice in bytes.iter().skip(1).take(40) {
            let payload = WORDS[*choice as usize % WORDS.len()];
            stream.push(FIRST[*choice as usize / 8 % FIRST.len()]);
            stream.push(0x80 | index_u8(payload.len()));
            stream.extend_from_slice(&[*choice; 4]);
            stream.extend(payload.iter().map(|byte| byte ^ choice));
            if *choice == 77 {
                stream.push(*choice);
            }
        }
        websocket_fuzz::receive(&stream);
    });
}

/// Random bytes contain no frames; shuffled pieces of frames come near to some.
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
