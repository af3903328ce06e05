//! The demo trader's place: its desk, the picture of the market it goes by, and the port to the shards.

use std::sync::Arc;

use pitlane_engine::command::{Body, Watch};
use pitlane_engine::desk::{Desk, DeskSettings, IdBlock};
use pitlane_engine::errands::Errands;
use pitlane_engine::id::{IntId, Origin, ShardId, Source, StrategyId};
use pitlane_engine::mesh::{PortEnd, ShardMask};
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::{View, ViewSettings};

use super::EVENTS_PER_POLL_MAX;

use crate::demo::Demo;
use crate::stages::{Recorder, Stage, Stamp};

/// Finished orders and transactions of the trader's own picture: it looks at what is open.
const HISTORY_MAX: u32 = 1_000;

#[derive(Debug)]
pub struct Trader {
    port: PortEnd,
    errands: Errands,
    desk: Desk,
    view: View,
    demo: Demo,
    reference: Arc<RefData>,
    /// The order whose answer is timed.
    timed: Option<(IntId, Stamp)>,
}

impl Trader {
    /// It trades in the name of these strategies. `pause_ns` is the mean time between two acts; `numbers` are for the ids of its orders.
    pub fn new(
        port: PortEnd,
        reference: Arc<RefData>,
        strategies: Vec<StrategyId>,
        (seed, pause_ns): (u64, u64),
        numbers: IdBlock,
    ) -> Trader {
        let (id, shards) = (port.id(), port.shards());
        let mut errands = Errands::new(Source { origin: Origin::Strategy, port: id, session: 0 });
        errands.tell_all(Body::Watch { port: id, what: Watch::Everything, on: true });
        errands.tell_all(Body::Snapshot { port: id });
        let desk = DeskSettings {
            port: id,
            shards,
            orders_max: 10_000,
            ids_max: 40_000,
            finished_max: HISTORY_MAX,
            prefix: b'd',
            seed,
        };
        let history = ViewSettings {
            finished_max: HISTORY_MAX,
            transactions_max: HISTORY_MAX,
            seed,
            ..ViewSettings::default()
        };
        Trader {
            errands,
            desk: Desk::new(desk, numbers),
            view: View::new(shards, history),
            demo: Demo::new(strategies, seed, pause_ns),
            reference,
            port,
            timed: None,
        }
    }

    /// Whether it knows what was before it came.
    pub fn is_ready(&self) -> bool {
        (0..self.port.shards()).all(|shard| self.view.is_complete(ShardId(shard)))
    }

    /// Hears what the shards say, up to a bound.
    pub fn hear(&mut self, mut recorder: Option<&mut Recorder>) -> usize {
        for heard in 0..EVENTS_PER_POLL_MAX {
            let Some((shard, event)) = self.port.poll_event() else { return heard };
            if let Some((id, sent)) = self.timed
                && event.report().is_some_and(|report| report.id == id)
            {
                if let Some(recorder) = recorder.as_deref_mut() {
                    recorder.count(Stage::Answer, sent, recorder.stamp());
                }
                self.timed = None;
            }
            self.view.apply(shard, &event);
            // The trader does not mind what a cancel came to.
            let _ = self.desk.handle_event(&event);
        }
        EVENTS_PER_POLL_MAX
    }

    /// Acts if it may and it is time to; sends what waited.
    pub fn poll(&mut self, now: Timestamp, may_act: bool, recorder: Option<&Recorder>) -> usize {
        let mut work = self.errands.poll(&mut self.port) + self.desk.poll(&mut self.port);
        if !may_act || !self.is_ready() {
            return work;
        }
        let sent = recorder.map(Recorder::stamp);
        let Trader { desk, port, view, reference, demo, .. } = self;
        let Some(act) = demo.poll(now, desk, port, view, reference) else { return work };
        work += 1;
        if self.timed.is_none() {
            self.timed = act.zip(sent);
        }
        work
    }

    pub fn is_waiting(&self) -> bool {
        !self.errands.is_empty() || self.desk.has_requests()
    }

    pub fn deadline(&self) -> Timestamp {
        self.demo.next_at()
    }

    pub fn take_called(&mut self) -> ShardMask {
        self.port.take_called()
    }
}
