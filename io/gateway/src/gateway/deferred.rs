//! Events that FIX sessions get after the market data of the same cycle have been sent, so that no
//! tick waits until reports are encoded.

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::time::Timestamp;
use pitlane_runtime::stages::LatencyRecorder;

use super::Gateway;
use super::fix::FixEndpoint;

#[derive(Clone, Copy, Debug)]
pub(super) struct DeferredEvent {
    pub shard: ShardId,
    pub event: Event,
    /// Whether the snapshots of all shards are complete with this event.
    pub completes: bool,
}

impl Gateway {
    /// Passes the deferred events to the FIX sessions, in the order in which they came.
    pub(super) fn pass_deferred(&mut self, now: Timestamp) {
        let Gateway { fix: Some(fix), deferred, recorder, .. } = self else { return };
        for DeferredEvent { shard, event, completes } in deferred.drain(..) {
            pass_to_fix(fix, now, (shard, &event), completes, recorder.as_mut());
        }
    }
}

/// Passes an event to the FIX sessions. `completes` is whether the snapshots of all shards are
/// complete with it.
pub(super) fn pass_to_fix(
    fix: &mut FixEndpoint,
    now: Timestamp,
    (shard, event): (ShardId, &Event),
    completes: bool,
    recorder: Option<&mut LatencyRecorder>,
) {
    // Events of other servers from before our restart.
    if event.seq & Event::SNAPSHOT != 0 {
        return fix.handle_missed_event(now, shard, event);
    }
    fix.handle_event(now, shard, event, recorder);
    fix.handle_watched_event(now, shard, event);
    if completes {
        fix.complete(now);
    }
}
