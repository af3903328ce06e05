//! Persistence over a restart: snapshots of shards, and journals that are replayed.

use std::sync::Arc;

use pitlane_engine::command::Command;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Timestamp;

/// An input of a shard, and its time.
#[derive(Clone, Debug)]
pub enum ShardInput {
    Command(Timestamp, Command),
    Began(Timestamp, Arc<RefData>, ShardSettings),
}

impl ShardInput {
    /// Applies the entry to a shard, including all follow-up work.
    pub fn apply(&self, shard: &mut Shard, out: &mut Outbox) {
        match self {
            ShardInput::Command(now, command) => shard.apply(*now, command, out),
            ShardInput::Began(now, reference, settings) => {
                shard.begin(*now, reference.clone(), settings.clone(), out)
            }
        }
        out.clear();
        while shard.has_work() {
            shard.resume(out);
            out.clear();
        }
    }
}

pub fn image(shard: &Shard) -> Vec<u8> {
    let mut bytes = Vec::new();
    shard.save(&mut bytes);
    bytes
}

/// Returns the same shard, saved and loaded.
pub fn reloaded(shard: &Shard, shards: u8) -> Result<Shard, String> {
    let bytes = image(shard);
    let (reference, settings) = (shard.reference().clone(), shard.settings().clone());
    let loaded = Shard::load(&bytes, shard.id(), shards, reference, settings)
        .map_err(|damage| format!("an image of {} bytes is not read: {damage}", bytes.len()))?;
    let again = image(&loaded);
    if again != bytes {
        let at = (0..again.len().min(bytes.len())).find(|&at| again[at] != bytes[at]);
        return Err(format!("loaded and saved again, it differs from byte {at:?} of {}", bytes.len()));
    }
    same_digest(shard, &loaded)?;
    Ok(loaded)
}

/// Checks that a journal, replayed to a shard at its beginning, gives this shard; and, if it is the
/// whole journal, the same number of events.
pub fn check_replay(
    journal: &[ShardInput],
    from: Shard,
    shard: &Shard,
    events: Option<u64>,
) -> Result<(), String> {
    let (mut replayed, mut out) = (from, Outbox::new(0));
    for entry in journal {
        entry.apply(&mut replayed, &mut out);
    }
    if events.is_some_and(|events| events != out.seq()) {
        return Err(format!("a replay emits {} events, not {events:?}", out.seq()));
    }
    same_digest(shard, &replayed)?;
    let (ours, theirs) = (image(shard), image(&replayed));
    if ours == theirs { Ok(()) } else { Err("a replay gives another image".to_string()) }
}

fn same_digest(one: &Shard, other: &Shard) -> Result<(), String> {
    let (ours, theirs) = (one.digest(), other.digest());
    if ours == theirs { Ok(()) } else { Err(format!("digest {theirs:016x}, not {ours:016x}")) }
}
