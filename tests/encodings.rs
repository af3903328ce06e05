//! Encoded commands and shards: an encoded value decodes to the same value, and bytes that decode
//! are exactly the encoding of the result.

use std::mem::discriminant;

use pitlane_engine::codec::{COMMAND_BYTES_MAX, decode_command, encode_command};
use pitlane_engine::command::Command;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_tests::dice::Dice;
use pitlane_tests::shard_run::ShardRun;
use pitlane_tests::workload::{ActionGenerator, Profile};
use pitlane_tests::{decode, replay, seeds};

/// Commands made from one seed.
const COMMANDS: usize = 400;
/// Changed encodings of each command.
const CHANGES: u64 = 20;
/// Actions of a run whose shard is encoded, and changed encodings of it.
const ACTIONS: usize = 120;
const SHARD_CHANGES: usize = 300;

#[test]
fn any_command_decodes_to_itself() {
    seeds::run(200, |seed, _| {
        let commands = commands(&mut Dice::new(seed ^ 0x1a6e));
        let mut kinds = Vec::new();
        for command in &commands {
            let (bytes, len) = image(command);
            let back = decode_command(&bytes[..len]);
            if back != Ok(*command) {
                return Err(format!("{command:?} came back as {back:?}"));
            }
            if !kinds.contains(&discriminant(&command.body)) {
                kinds.push(discriminant(&command.body));
            }
        }
        if kinds.len() > 15 { Ok(()) } else { Err(format!("only {} kinds of commands", kinds.len())) }
    });
}

/// Changed bytes are rejected, or they are the encoding of another command, and of no other.
#[test]
fn changed_bytes_are_rejected_or_encode_another_command() {
    seeds::run(100, |seed, _| {
        let mut dice = Dice::new(seed ^ 0xda3a);
        for command in commands(&mut dice) {
            for _ in 0..CHANGES {
                let (mut bytes, mut len) = image(&command);
                for _ in 0..=dice.below(3) {
                    bytes[dice.index(len)] = dice.byte();
                }
                if dice.percent(20) {
                    len = dice.index(COMMAND_BYTES_MAX + 1);
                }
                check_any(&bytes[..len])?;
            }
        }
        Ok(())
    });
}

#[test]
fn random_bytes_are_rejected_or_encode_a_command() {
    seeds::run(400, |seed, _| {
        let mut dice = Dice::new(seed ^ 0xa11);
        for _ in 0..COMMANDS {
            let len = dice.below(2 * COMMAND_BYTES_MAX as u64);
            let bytes: Vec<u8> = (0..len).map(|_| dice.byte() % dice.pick(&[2, 26, 255])).collect();
            check_any(&bytes)?;
        }
        Ok(())
    });
}

fn check_any(bytes: &[u8]) -> Result<(), String> {
    let Ok(command) = decode_command(bytes) else { return Ok(()) };
    let (again, len) = image(&command);
    let same = again[..len] == *bytes;
    // A decoded command can be printed: its texts are valid.
    let shown = format!("{command:?}");
    if same { Ok(()) } else { Err(format!("{bytes:?} were read as {shown}, which is {again:?}")) }
}

fn commands(dice: &mut Dice) -> Vec<Command> {
    let bytes: Vec<u8> = (0..COMMANDS * 60).map(|_| dice.byte()).collect();
    decode::commands(&bytes, COMMANDS)
}

fn image(command: &Command) -> ([u8; COMMAND_BYTES_MAX], usize) {
    let mut bytes = [0; COMMAND_BYTES_MAX];
    let len = encode_command(command, &mut bytes);
    (bytes, len)
}

/// The same for encoded shards, made by runs as in the simulation.
#[test]
fn changed_shards_are_rejected_or_encode_another_shard() {
    seeds::run(60, |seed, _| {
        let mut dice = Dice::new(seed ^ 0x54a2);
        let settings = ShardSettings { orders_max: 1_000, ..ShardSettings::default() };
        let mut run = ShardRun::new(settings);
        let mut workload =
            ActionGenerator::new(dice.fork(), Profile { tame: true, ..Profile::random(&mut dice) });
        for action in ActionGenerator::opening() {
            run.step(&action)?;
        }
        for _ in 0..ACTIONS {
            run.step(&workload.next(run.now()))?;
        }
        run.begin(&mut dice)?;
        let image = replay::image(&run.shard);
        for _ in 0..SHARD_CHANGES {
            let mut bytes = image.clone();
            for _ in 0..=dice.below(2) {
                let at = dice.index(bytes.len());
                bytes[at] = dice.pick(&[0, 1, 2, 0xff, bytes[at] ^ 1, dice.clone().byte()]);
            }
            bytes.truncate(if dice.percent(90) { bytes.len() } else { dice.index(bytes.len()) });
            let (reference, settings) = (run.shard.reference().clone(), run.shard.settings().clone());
            let loaded = Shard::load(&bytes, run.shard.id(), 1, reference, settings);
            if loaded.is_ok_and(|loaded| replay::image(&loaded) != bytes) {
                return Err("an image was read as something else".to_string());
            }
        }
        Ok(())
    });
}
