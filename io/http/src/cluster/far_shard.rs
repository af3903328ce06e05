//! A shard that another server owns, at its position in our mesh: it takes the commands of our
//! ports, and delivers the owner's events to them.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{Origin, PortId, PortMask, ShardId};
use pitlane_engine::mesh::ShardEnd;
use pitlane_engine::reason::Reason;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::{CONTROL, HTTP};
use pitlane_protocols::remote::cluster::{
    ClusterEvent, EventRecipient, MemberId, is_sound, source_of, translate_port, translate_senders,
};

use super::owner::is_allowed_from_peer;
use super::subscriptions::PortSubscriptions;

#[derive(Debug)]
pub(super) struct FarShard {
    end: ShardEnd,
    orders_max: u32,
    pub subscriptions: PortSubscriptions,
    /// Sequence number of the last event that was delivered.
    seq: u64,
    /// Sequence number of the last event on the read model's lane.
    pub read_model_seq: u64,
    /// Events that do not fit into the lanes of these ports yet. A snapshot's begin may follow the
    /// end of another.
    slots: VecDeque<(PortMask, Event)>,
    /// Ports that are receiving a snapshot.
    snapshot_receivers: PortMask,
    /// Ports that have received a snapshot.
    snapshot_ports: PortMask,
    /// By ledger: the last transaction that was delivered. A later snapshot repeats it, and the
    /// repetition is not new.
    booked: BTreeMap<u64, u64>,
    /// Whether the requested snapshot has been received.
    pub is_complete: bool,
    /// Whether the next snapshot goes to all ports that read.
    is_resync: bool,
    /// Whether a snapshot has begun since we joined. Items before that belong to one that began for
    /// others.
    has_begun: bool,
    /// Until the first snapshot after our start has ended: reports that FIX clients of ours have
    /// missed, then the reports that arrive meanwhile. They are delivered once the clients have the
    /// state of everything, in the order of their numbers: a report that a session has made
    /// acknowledges all before it.
    early: Option<Vec<EarlyReport>>,
    /// Time of the newest event that was delivered; zero after a start.
    delivered_at: Timestamp,
    /// Requested because events of our clients' orders are lost, until the next snapshot has ended.
    order_statuses: Option<OrderStatuses>,
    /// Commands of our ports that name senders, at most [`SENDERS_MAX`].
    senders: VecDeque<Command>,
    /// How many of `senders` this start of the owner has been sent.
    senders_sent: usize,
}

/// Maximum number of sender commands kept for an owner that restarts or was away. This usually
/// suffices for all that our ports name between two starts. The oldest beyond it are dropped.
const SENDERS_MAX: usize = 16_384;

#[derive(Clone, Copy, Debug)]
struct EarlyReport {
    event: Event,
    /// Whether it happened before we started.
    is_late: bool,
}

/// Status of each order of our clients, collected from a snapshot. FIX clients receive it at the
/// end of the snapshot.
#[derive(Debug)]
struct OrderStatuses {
    /// Time of the newest event that was delivered before the loss. The events that the owner still
    /// keeps are newer than the lost ones and are delivered before the snapshot, so the time of the
    /// newest event at the snapshot would hide the orders that finished in the lost part.
    since: Timestamp,
    /// At most as many as the shard has orders.
    events: Vec<Event>,
}

impl FarShard {
    pub(super) fn new(end: ShardEnd, orders_max: u32) -> FarShard {
        FarShard {
            end,
            orders_max,
            subscriptions: PortSubscriptions::default(),
            seq: 0,
            read_model_seq: 0,
            slots: VecDeque::new(),
            snapshot_receivers: PortMask::NONE,
            snapshot_ports: PortMask::NONE,
            booked: BTreeMap::new(),
            is_complete: false,
            is_resync: true,
            has_begun: false,
            early: Some(Vec::new()),
            delivered_at: Timestamp::ZERO,
            order_statuses: None,
            senders: VecDeque::new(),
            senders_sent: 0,
        }
    }

    pub(super) fn id(&self) -> ShardId {
        self.end.id()
    }

    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    /// Makes the next snapshot replace the whole state.
    pub(super) fn begin_resync(&mut self) {
        (self.is_complete, self.is_resync, self.has_begun) = (false, true, false);
    }

    /// Handles a restart of the owner, which then knows only what its journal has.
    pub(super) fn handle_restart(&mut self) {
        self.senders_sent = 0;
        self.begin_resync();
    }

    /// Stores a command of one of our ports that names a sender.
    pub(super) fn store_sender(&mut self, command: Command) {
        if self.senders.len() == SENDERS_MAX {
            self.senders.pop_front();
            self.senders_sent = self.senders_sent.saturating_sub(1);
        }
        self.senders.push_back(command);
    }

    /// Returns the next sender command that this start of the owner has not been sent.
    pub(super) fn next_sender(&mut self) -> Option<Command> {
        let next = self.senders.get(self.senders_sent).copied()?;
        self.senders_sent += 1;
        Some(next)
    }

    /// Records that events of our clients' orders are lost: after the next snapshot FIX clients
    /// receive the status of their orders.
    pub(super) fn request_order_statuses(&mut self) {
        // If the previous snapshot has not ended, what it was requested for is still missing.
        let since = self.delivered_at;
        self.order_statuses.get_or_insert(OrderStatuses { since, events: Vec::new() });
    }

    pub(super) fn poll_command(&mut self) -> Option<Command> {
        self.end.poll_command()
    }

    /// Writes buffered events to the lanes. Returns whether all are delivered; `to_wake` collects
    /// the ports to wake.
    pub(super) fn flush(&mut self, to_wake: &mut PortMask) -> bool {
        while let Some((ports, event)) = self.slots.front_mut() {
            for port in ports.ports() {
                if self.end.send(port, *event).is_ok() {
                    if port == HTTP {
                        self.read_model_seq = event.seq;
                    }
                    *ports = ports.without(PortMask::one(port));
                    *to_wake = to_wake.with(PortMask::one(port));
                }
            }
            if !ports.is_empty() {
                return false;
            }
            self.slots.pop_front();
        }
        true
    }

    /// Delivers an item of the owner, and returns the event as this server sees it. Must only be
    /// called when everything before it is settled.
    pub(super) fn deliver(&mut self, from: MemberId, own: MemberId, item: &ClusterEvent) -> Option<Event> {
        let mut event = item.event;
        if !is_sound(self.id(), self.orders_max, &event) {
            return None;
        }
        if let Some(source) = source_of(&mut event) {
            source.port = translate_port(source.port, from, own);
        }
        translate_senders(&mut event, |port| translate_port(port, from, own));
        // Ticks and depth arrive separately and may be newer than the other events; other market
        // data, and events made in the owner's place, have no number of their own. So none of them
        // advances the sequence number.
        let is_price = item.to == EventRecipient::All && is_market_data(&event.body);
        let is_numbered = !is_price && !event.is_substitute();
        if !is_numbered {
            event.seq = self.seq;
        }
        let ports = match item.to {
            EventRecipient::Joining => {
                self.deliver_snapshot_item(event);
                return None;
            }
            EventRecipient::All if is_numbered && self.hold_early(event, false) => {
                self.subscriptions.recipients(&mut event).without(requesting_port(&mut event))
            }
            EventRecipient::All => self.subscriptions.recipients(&mut event),
            // Only the sender of the order lacks it.
            EventRecipient::Late(member) if member != own || self.hold_early(event, true) => return None,
            // The port has received it, after we joined twice.
            EventRecipient::Late(_) if event.seq <= self.seq => return None,
            EventRecipient::Late(_) => requesting_port(&mut event),
        };
        if is_numbered {
            self.delivered_at = self.delivered_at.max(event.at);
        }
        self.is_new_booking(&event);
        self.enqueue(ports, event);
        Some(event)
    }

    /// Stores an event that must not be delivered yet, once: an owner that is asked again sends it
    /// again.
    fn hold_early(&mut self, mut event: Event, is_late: bool) -> bool {
        let Some(early) = &mut self.early else { return false };
        let is_fix = source_of(&mut event).is_some_and(|source| source.origin == Origin::Fix);
        if !is_fix || !is_report(&event) || requesting_port(&mut event).is_empty() {
            // Sources other than FIX sessions have not outlived the restart, so none of them misses
            // the event.
            return is_late;
        }
        if early.last().is_none_or(|last| last.event.seq < event.seq) {
            early.push(EarlyReport { event, is_late });
        }
        true
    }

    fn deliver_early(&mut self) {
        for EarlyReport { mut event, is_late } in self.early.take().unwrap_or_default() {
            let ports = requesting_port(&mut event).and(self.end.ports());
            if is_late {
                event.seq |= Event::SNAPSHOT;
            }
            if !ports.is_empty() {
                self.slots.push_back((ports, event));
            }
        }
    }

    fn deliver_snapshot_item(&mut self, event: Event) {
        if let EventKind::SnapshotBegin { .. } = event.body {
            return self.begin_snapshot(event);
        }
        if !self.has_begun {
            return;
        }
        if let EventKind::SnapshotEnd { .. } = event.body {
            // Before the end, since what happened meanwhile waits for it.
            self.deliver_early();
            self.deliver_order_statuses();
            self.end_snapshot(event);
            (self.is_complete, self.is_resync, self.has_begun) = (true, false, false);
        } else if matches!(event.body, EventKind::Booked(_)) && !self.is_new_booking(&event) {
            self.enqueue(self.snapshot_receivers.without(self.snapshot_ports), event);
        } else {
            self.collect_order_status(&event);
            self.enqueue(self.snapshot_receivers, event);
        }
    }

    fn begin_snapshot(&mut self, event: Event) {
        // A snapshot that was interrupted ends before the next begins.
        self.end_snapshot(event);
        self.has_begun = true;
        self.order_statuses.iter_mut().for_each(|order_statuses| order_statuses.events.clear());
        let waiting = std::mem::take(&mut self.subscriptions.waiting);
        self.snapshot_receivers = if self.is_resync { self.subscriptions.readers } else { waiting };
        for port in self.snapshot_receivers.ports() {
            self.enqueue(PortMask::one(port), Event { body: EventKind::SnapshotBegin { port }, ..event });
        }
    }

    /// Collects the snapshot item of an order whose FIX client may have missed something: one that
    /// is open, or has finished since the last event that was delivered before the loss. Events of
    /// one command have one time, and the last ones may be lost, so an equal time counts.
    fn collect_order_status(&mut self, event: &Event) {
        let (Some(order_statuses), EventKind::Status(report)) = (&mut self.order_statuses, &event.body)
        else {
            return;
        };
        let is_fix = report.source.origin == Origin::Fix && report.source.port < PortId::LINK;
        let is_wanted = !report.status.is_finished() || event.at >= order_statuses.since;
        if is_fix && is_wanted && order_statuses.events.len() < self.orders_max as usize {
            order_statuses.events.push(*event);
        }
    }

    /// Delivers the collected statuses, after all events that preceded the snapshot.
    fn deliver_order_statuses(&mut self) {
        let events = self.order_statuses.take().map(|order_statuses| order_statuses.events);
        for mut event in events.unwrap_or_default() {
            let ports = requesting_port(&mut event).and(self.end.ports());
            event.seq |= Event::SNAPSHOT;
            if !ports.is_empty() {
                self.slots.push_back((ports, event));
            }
        }
    }

    /// Returns false for a transaction that was delivered before, true for everything else.
    fn is_new_booking(&mut self, event: &Event) -> bool {
        let EventKind::Booked(booking) = &event.body else { return true };
        let (ledger, number) = (booking.id.0 >> 32, booking.id.0.saturating_add(1));
        let last = self.booked.entry(ledger).or_default();
        let is_new_booking = number > *last;
        *last = number.max(*last);
        is_new_booking
    }

    fn end_snapshot(&mut self, event: Event) {
        for port in std::mem::take(&mut self.snapshot_receivers).ports() {
            self.enqueue(PortMask::one(port), Event { body: EventKind::SnapshotEnd { port }, ..event });
            self.snapshot_ports = self.snapshot_ports.with(PortMask::one(port));
        }
    }

    /// Sends an empty snapshot to the ports that wait for their first one, because the owner is not
    /// here. The others keep what they know.
    pub(super) fn send_empty_snapshot(&mut self, now: Timestamp) {
        let first = self.subscriptions.waiting.without(self.snapshot_ports);
        self.subscriptions.waiting = self.subscriptions.waiting.without(first);
        for port in first.ports() {
            for body in [EventKind::SnapshotBegin { port }, EventKind::SnapshotEnd { port }] {
                self.enqueue(PortMask::one(port), Event { seq: self.seq, at: now, body });
            }
        }
    }

    /// Answers one of our ports in the owner's place.
    pub(super) fn respond(&mut self, port: PortId, at: Timestamp, body: EventKind) {
        self.enqueue(PortMask::one(port), Event { seq: self.seq, at, body });
    }

    /// Handles a command that does not concern the owner. Returns the command if it is for the
    /// owner, and whether other market data are wanted.
    pub(super) fn handle_locally(&mut self, now: Timestamp, command: Command) -> (Option<Command>, bool) {
        if is_allowed_from_peer(&command.body) && command.source.port != CONTROL {
            return (Some(command), false);
        }
        // Prices, reports and timers have no response.
        let has_response = !matches!(
            command.body,
            CommandKind::Quote { .. }
                | CommandKind::Trade { .. }
                | CommandKind::Tick { .. }
                | CommandKind::Level { .. }
                | CommandKind::VenueLevels(_)
                | CommandKind::VenueBook { .. }
                | CommandKind::Report { .. }
                | CommandKind::Timer
        );
        if !has_response {
            return (None, false);
        }
        let mut wants = false;
        if let CommandKind::Watch { port, what, on } = command.body {
            wants = self.subscriptions.watch(port, what, on);
        }
        if let CommandKind::Snapshot { port } = command.body {
            self.subscriptions.request_snapshot(port);
        }
        // The rest is each server's own: its clock, venues, parts of limits and reference data.
        let (source, token, reason) = (command.source, command.token, Reason::None);
        self.respond(source.port, now, EventKind::Done { source, token, reason });
        (None, wants)
    }

    /// Buffers an event for these ports. Sequence numbers never go back, whatever an owner has
    /// forgotten.
    fn enqueue(&mut self, ports: PortMask, event: Event) {
        self.seq = self.seq.max(event.seq);
        // A port that is not in our mesh receives nothing.
        let ports = ports.and(self.end.ports()).without(PortMask::one(PortId::LINK));
        if !ports.is_empty() {
            self.slots.push_back((ports, Event { seq: self.seq, ..event }));
        }
    }
}

/// Returns whether an event is market data, which is not numbered among the other events.
fn is_market_data(body: &EventKind) -> bool {
    matches!(
        body,
        EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
    )
}

/// Returns the port that an event answers, if it is one of ours.
fn requesting_port(event: &mut Event) -> PortMask {
    let source = source_of(event).map(|source| source.port);
    source.filter(|port| *port < PortId::LINK).map_or(PortMask::NONE, PortMask::one)
}

/// Returns whether sessions make a report of it.
fn is_report(event: &Event) -> bool {
    matches!(event.body, EventKind::Order(_) | EventKind::Status(_) | EventKind::Refused(_))
}

#[cfg(test)]
mod tests;
