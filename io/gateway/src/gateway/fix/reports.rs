//! Routes order events of the shards to the sessions that sent the orders.

use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, RequestRefusal};
use pitlane_engine::id::{Origin, ShardId, Source};
use pitlane_engine::time::Timestamp;
use pitlane_runtime::stages::LatencyRecorder;

use super::recovery::EarlyEvent;
use super::{FixEndpoint, Unreported, client_of};

impl FixEndpoint {
    /// Handles an event of a shard: the desk first, then the session of its source.
    pub fn handle_event(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        event: &Event,
        recorder: Option<&mut LatencyRecorder>,
    ) {
        let is_for_desk = matches!(event.body, EventKind::TradingDay { .. } | EventKind::UsedIds(_));
        let source = if is_for_desk { None } else { event.body.subject().source };
        if !is_for_desk
            && source.is_none_or(|source| source.port != self.port || source.origin != Origin::Fix)
        {
            return;
        }
        let refusal = self.desk.handle_event(shard, event);
        let Some(number) = source.map(|source| source.session) else { return };
        if let Some(early) = &mut self.early
            && !is_snapshot(event)
        {
            if early.hold(EarlyEvent { shard, event: *event, refusal, number }) && self.may_log(now) {
                tracing::warn!("of some orders only the newest report waits for the state of all orders");
            }
            return;
        }
        self.report(now, (shard, event), refusal, number, recorder);
    }

    /// Reports an event of an order to its session.
    fn report(
        &mut self,
        now: Timestamp,
        (shard, event): (ShardId, &Event),
        refusal: Option<RequestRefusal>,
        number: u16,
        mut recorder: Option<&mut LatencyRecorder>,
    ) {
        // Special terms come before the first event of their order.
        if event.body.report_source().is_some() {
            self.open(now, number);
        }
        let FixEndpoint { clients, desk, latency, .. } = self;
        let Some(client) = client_of(clients, number) else { return };
        let received = latency.event_received(event, recorder.as_deref_mut());
        client.session.handle_event(now, shard, event, desk);
        latency.report_encoded(received, recorder);
        if let Some(refusal) = refusal {
            client.session.handle_refusal(now, &refusal, desk);
        }
        self.wake(number);
    }

    /// Handles an event that a shard of another server emitted while we were down; it comes after
    /// the shard's snapshot.
    pub fn handle_missed_event(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        let event = Event { seq: event.seq & !Event::SNAPSHOT, ..*event };
        if let EventKind::Status(report) = &event.body
            && report.what == ExecType::Snapshot
        {
            return self.report_order_status(now, report);
        }
        self.report_missed(now, shard, &event);
    }

    /// Reports the status of an order whose events are lost.
    fn report_order_status(&mut self, now: Timestamp, report: &OrderReport) {
        self.open(now, report.source.session);
        let FixEndpoint { clients, desk, .. } = self;
        if let Some(client) = client_of(clients, report.source.session) {
            client.session.report_order_status(now, report, desk);
            self.wake(report.source.session);
        }
    }

    /// Reports the unreported events from before the restart, and then the events since, when the
    /// snapshots of all shards are complete.
    pub fn complete(&mut self, now: Timestamp) {
        let missed = std::mem::take(&mut self.recovery.missed);
        let is_ours = |source: Source| source.port == self.port && source.origin == Origin::Fix;
        let ours = |missed: &&Unreported| missed.event.body.report_source().is_some_and(is_ours);
        for Unreported { shard, event } in missed.iter().filter(ours).copied().collect::<Vec<_>>() {
            self.report_missed(now, shard, &event);
        }
        let early = self.early.take().unwrap_or_default();
        for EarlyEvent { shard, event, refusal, number } in early.into_events() {
            self.report(now, (shard, &event), refusal, number, None);
        }
        self.complete_copies(now, &missed);
    }

    fn report_missed(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        let Some(source) = event.body.report_source() else { return };
        self.open(now, source.session);
        let FixEndpoint { clients, desk, .. } = self;
        if let Some(client) = client_of(clients, source.session) {
            client.session.handle_missed_event(now, shard, event, desk);
            self.wake(source.session);
        }
    }
}

/// Returns whether the event describes a state, and not a change.
fn is_snapshot(event: &Event) -> bool {
    event.body.is_order_snapshot() || event.body.report_source().is_none()
}
