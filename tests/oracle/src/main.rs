//! Compares our FIX codec with `fefix` over the same messages, in alternating rounds: how long each
//! takes to read a New Order Single.

use std::hint::black_box;
use std::process::ExitCode;

use fefix::prelude::*;
use fefix::tagvalue::{Config, Decoder, FieldAccess};
use pitlane_bench::fix::codec;
use pitlane_bench::goals::{self, GoalVerdict};
use pitlane_bench::platform;
use pitlane_engine::number::{Price, Qty};
use pitlane_protocols::fix::timestamp::parse_timestamp;

const OPS: usize = 500_000;
const ROUNDS: usize = 7;

fn main() -> ExitCode {
    let result = codec(&platform::reference(1), OPS, ROUNDS, Some(peer));
    let peer_ns = result.peer_decode_ns.unwrap_or_default();
    println!("fix decode: {:.0} ns, fefix 0.7: {peer_ns:.0} ns for the same 14 fields", result.decode_ns);
    let ratio = result.decode_ns / peer_ns;
    let verdict = GoalVerdict::at_most("fix decode", ratio, goals::FIX_DECODE_PEER_RATIO_MAX, "× fefix");
    println!("{}", verdict.text);
    if !result.agree {
        println!("the two did not read the same");
    }
    if result.agree && verdict.met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reads the same fields with `fefix`, and returns the same checksum of them.
fn peer(messages: &[Vec<u8>], ops: usize) -> u64 {
    let mut decoder = Decoder::<Config>::new(fefix::Dictionary::fix44());
    decoder.config_mut().set_decode_assoc(true);
    let mut hash = 0u64;
    for nth in 0..ops {
        let bytes = black_box(&messages[nth % messages.len()]);
        let Ok(message) = decoder.decode(bytes.as_slice()) else { return 0 };
        let raw = |tag: u32| FieldAccess::<u32>::fv_raw(&message, &tag).unwrap_or_default();
        for tag in [34, 52, 11, 1, 55, 207, 54, 40, 59, 7001, 7002] {
            black_box(raw(tag));
        }
        let qty = Qty::parse(raw(38)).unwrap_or_default();
        let price = Price::parse(raw(44)).unwrap_or_default();
        let at = parse_timestamp(raw(60)).unwrap_or_default();
        // `fefix` counts 8 and 35 among the fields.
        let len = message.len() as u64 - 2;
        hash = hash.wrapping_mul(31).wrapping_add((qty.raw() ^ price.raw()) as u64 ^ at.0 ^ len);
    }
    hash
}
