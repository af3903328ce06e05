//! A gateway's duty: its client connections, and the sources on its thread. The first gateway also
//! runs control, the market source, the demo trader and the strategies.
//!
//! ```text
//! events of the shards ─► endpoints          drain_events: a full lane stops a shard, so this comes first
//! sockets ─► endpoints ─► commands, bytes    poll_network: each connection is read once, then each endpoint sends its output
//! ```
//!
//! An endpoint is the gateway's side of one protocol: `stomp`, `fix`; `venue` has no listener and
//! connects to venues. Each has the same methods: `handle` for socket events, `handle_event` for
//! events of the shards, `poll` for everything that has to be written and sent, `deadline`,
//! `wind_down`, `is_done`.

mod deferred;
pub mod listeners;
pub mod fix;
mod output;
mod sessions;
pub mod stomp;
mod transmit;
pub mod venue;

use std::sync::Arc;

use pitlane_config::SendFirst;
use pitlane_engine::command::{CommandKind, WatchTarget};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{Origin, PortId, ShardId, Source};
use pitlane_engine::mesh::{PortEnd, ShardMask};
use pitlane_engine::pending_commands::PendingCommands;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_net::Net;
use pitlane_net::event::SocketEvent;
use pitlane_net::sockets::Sockets;
use pitlane_runtime::lifecycle::LifecyclePhase;
use pitlane_runtime::mailbox::MailboxReceiver;
use pitlane_runtime::stages::LatencyRecorder;
use pitlane_runtime::wakeups::Wakeups;

use self::deferred::{DeferredEvent, pass_to_fix};
use self::fix::FixEndpoint;
use self::listeners::{GatewayListeners, ListenerProtocol};
use self::stomp::StompEndpoint;
use self::stomp::latency::{self, StompLatency};
use self::venue::VenueConnector;
use super::EVENTS_PER_POLL_MAX;
use super::control::{Control, ControlSettings};
use super::demo_trader::DemoTrader;
use super::market_source::MarketSource;
use super::reload::ReloadedRefData;
use super::strategy_runner::RunnerDuty;
use crate::notifications::{Notification, NotificationChannel};

#[derive(Debug)]
pub struct Gateway {
    /// Port of the sessions of its sockets.
    port: PortEnd,
    listeners: GatewayListeners,
    stomp: Option<StompEndpoint>,
    stomp_latency: StompLatency,
    fix: Option<Box<FixEndpoint>>,
    venue: Option<Box<VenueConnector>>,
    /// Commands that the endpoints need before clients can connect.
    pending_commands: PendingCommands,
    /// Shards whose snapshot is not complete yet.
    pending_snapshots: ShardMask,
    pub control: Option<Control>,
    pub market: Option<MarketSource>,
    pub trader: Option<DemoTrader>,
    pub runner: Option<Box<RunnerDuty>>,
    /// Mailbox of new reference data that are effective in all shards.
    pub reloads: Option<MailboxReceiver<ReloadedRefData>>,
    wakeups: Arc<Wakeups>,
    /// `None` if latencies are not recorded.
    recorder: Option<LatencyRecorder>,
    /// Whether the last cycle drained any events.
    had_events: bool,
    /// Whether the last cycle did not poll the sockets for readiness.
    skip_readiness: bool,
    /// When the endpoints started to wind down.
    winding_down: Option<Timestamp>,
    /// Whether the time for winding down is over; remaining connections end with the thread.
    is_late: bool,
    /// Number of connections.
    connected: usize,
    /// Channel to the other threads with clients.
    notifications: Option<NotificationChannel>,
    /// Time of the next session list; `had_sessions` is whether the last one had entries.
    session_list_at: Timestamp,
    had_sessions: bool,
    send_first: SendFirst,
    /// Events for FIX sessions, until the market data of the same cycle have been sent.
    deferred: Vec<DeferredEvent>,
}

/// Time from the start of winding down to the end of all connections, including those without a
/// session: slightly more than the endpoints take for their final messages.
const WIND_DOWN_NS_MAX: u64 = 5 * NS_PER_S / 2;

impl Gateway {
    pub fn new(port: PortEnd, wakeups: Arc<Wakeups>, recorder: Option<LatencyRecorder>) -> Gateway {
        let pending_commands = PendingCommands::new(source(&port));
        Gateway {
            port,
            listeners: GatewayListeners::default(),
            stomp: None,
            stomp_latency: StompLatency::default(),
            fix: None,
            venue: None,
            pending_commands,
            pending_snapshots: ShardMask::default(),
            control: None,
            market: None,
            trader: None,
            runner: None,
            reloads: None,
            wakeups,
            recorder,
            had_events: false,
            skip_readiness: false,
            winding_down: None,
            is_late: false,
            connected: 0,
            notifications: None,
            session_list_at: Timestamp::ZERO,
            had_sessions: false,
            send_first: SendFirst::default(),
            deferred: Vec::new(),
        }
    }

    /// Sets the protocol whose output is sent first.
    pub fn set_send_first(&mut self, protocol: SendFirst) {
        self.send_first = protocol;
        if protocol == SendFirst::Stomp {
            self.deferred.reserve(EVENTS_PER_POLL_MAX);
        }
    }

    /// Returns the source of its endpoints' commands.
    pub fn source(&self) -> Source {
        source(&self.port)
    }

    /// Adds listeners and their endpoints. A gateway with a STOMP endpoint receives every order
    /// from the beginning; with FIX only, it receives the orders of its own sessions.
    pub fn attach_clients(
        &mut self,
        listeners: GatewayListeners,
        stomp: Option<StompEndpoint>,
        fix: Option<FixEndpoint>,
        notifications: NotificationChannel,
    ) {
        (self.listeners, self.stomp, self.fix, self.notifications) =
            (listeners, stomp, fix.map(Box::new), Some(notifications));
        if self.stomp.is_some() || self.fix.is_some() {
            let port = self.port.id();
            // Events about the orders of its own sessions reach it anyway.
            if self.stomp.is_some() {
                self.pending_commands.push_all(CommandKind::Watch {
                    port,
                    what: WatchTarget::Orders,
                    on: true,
                });
            }
            self.pending_commands.push_all(CommandKind::Snapshot { port });
            self.pending_snapshots = (0..self.port.shards()).map(ShardId).collect();
        }
    }

    /// Returns its port, if a session of it receives copies of the reports of all orders.
    pub fn copies_port(&self) -> Option<PortId> {
        self.fix.as_ref().filter(|fix| fix.copies_orders()).map(|_| self.port.id())
    }

    /// Adds the venues to connect to.
    pub fn attach_venue(&mut self, venue: VenueConnector) {
        let port = self.port.id();
        for adapter in venue.adapters() {
            self.pending_commands.push_all(CommandKind::Watch {
                port,
                what: WatchTarget::Venue(adapter),
                on: true,
            });
        }
        self.venue = Some(Box::new(venue));
        // Venues are listed even while no session is connected.
        self.had_sessions = true;
    }

    /// Does a bounded amount of work and returns its amount. `net` is passed to one gateway per
    /// thread.
    pub fn poll(&mut self, now: Timestamp, phase: LifecyclePhase, net: Option<&mut Net>) -> usize {
        let mut work = self.drain_events(now);
        self.had_events = work > 0;
        if phase <= LifecyclePhase::Closing {
            work += self.poll_sources(now, phase);
        }
        if let Some(net) = net {
            work += self.poll_network(now, phase, net);
        }
        self.wake_shards();
        if let Some(recorder) = &mut self.recorder {
            recorder.poll(now);
        }
        work
    }

    fn drain_events(&mut self, now: Timestamp) -> usize {
        let mut drained = self.apply_reload();
        self.pass_deferred(now);
        let mut is_first = self.stomp.is_some() && self.connected > 0;
        let defers = self.send_first == SendFirst::Stomp && self.stomp.is_some();
        let Gateway { port, stomp, stomp_latency, fix, venue, recorder, pending_snapshots, deferred, .. } =
            self;
        let own = port.id();
        let mut handle_event = |shard, event: &Event| {
            // Events of other servers from before our restart are for FIX sessions alone.
            let is_missed = event.seq & Event::SNAPSHOT != 0;
            if let Some(stomp) = stomp.as_mut().filter(|_| !is_missed) {
                if std::mem::take(&mut is_first) {
                    stomp_latency.start(recorder.as_mut());
                }
                stomp.handle_event(now, shard, event);
            }
            let completes = !is_missed
                && matches!(event.body, EventKind::SnapshotEnd { port } if port == own)
                && complete_snapshot(pending_snapshots, shard);
            if let Some(fix) = fix {
                if defers {
                    deferred.push(DeferredEvent { shard, event: *event, completes });
                } else {
                    pass_to_fix(fix, now, (shard, event), completes, recorder.as_mut());
                }
            }
            if let Some(venue) = venue.as_mut().filter(|_| !is_missed) {
                venue.handle_event(now, shard, event);
            }
        };
        while drained < EVENTS_PER_POLL_MAX && port.poll_event_with(&mut handle_event).is_some() {
            drained += 1;
        }
        self.stomp_latency.rendered(self.recorder.as_mut());
        drained += self.poll_notifications(now);
        let Gateway { control, market, trader, runner, recorder, .. } = self;
        if let Some(control) = control {
            drained += control.drain_events(|security, on| {
                if let Some(market) = market.as_mut() {
                    market.set_on(security, on, now);
                }
            });
        }
        drained += market.as_mut().map_or(0, MarketSource::drain_events);
        drained += runner.as_mut().map_or(0, |runner| runner.drain_events(now));
        drained + trader.as_mut().map_or(0, |trader| trader.drain_events(recorder.as_mut()))
    }

    /// Takes new reference data. The demo trader keeps those it started with.
    fn apply_reload(&mut self) -> usize {
        let Some(ReloadedRefData { reference, control_settings, .. }) =
            self.reloads.as_mut().and_then(MailboxReceiver::poll)
        else {
            return 0;
        };
        self.market.iter_mut().for_each(|market| market.set_reference(&reference));
        self.control
            .iter_mut()
            .for_each(|control| control.apply_settings(ControlSettings::clone(&control_settings)));
        self.stomp.iter_mut().for_each(|stomp| stomp.set_reference(&reference));
        self.fix.iter_mut().for_each(|fix| fix.set_reference(&reference));
        self.venue.iter_mut().for_each(|venue| venue.set_reference(&reference));
        self.runner.iter_mut().for_each(|runner| runner.set_reference(&reference));
        1
    }

    fn poll_sources(&mut self, now: Timestamp, phase: LifecyclePhase) -> usize {
        let is_open = phase == LifecyclePhase::Open;
        let mut work = self.pending_commands.poll(&mut self.port);
        if let Some(control) = &mut self.control {
            if phase == LifecyclePhase::Closing {
                control.close();
            } else {
                let market = &mut self.market;
                work += control.poll(now, |exchange, session| {
                    if let Some(market) = market.as_mut() {
                        market.enter(exchange, session, now);
                    }
                });
            }
        }
        // A replay starts when the strategies that receive it are running.
        let waits_for_strategies = self.runner.as_ref().is_some_and(|runner| !runner.is_settled());
        let may_send = |market: &&mut MarketSource| is_open && !(waits_for_strategies && market.is_replay());
        if let Some(market) = self.market.as_mut().filter(may_send) {
            work += market.poll(now);
        }
        if let Some(trader) = &mut self.trader {
            work += trader.poll(now, is_open, self.recorder.as_ref());
        }
        work + self.run(now, phase)
    }

    /// Runs the strategies, and forwards their notifications to all threads.
    fn run(&mut self, now: Timestamp, phase: LifecyclePhase) -> usize {
        let Gateway { runner: Some(runner), stomp, notifications, .. } = self else { return 0 };
        let mut work = runner.poll(now, phase);
        while let Some(notification) = runner.take_notification() {
            work += 1;
            announce(stomp.as_mut(), notifications.as_mut(), now, notification);
        }
        work
    }

    /// Runs one cycle of the sockets.
    fn poll_network(&mut self, now: Timestamp, phase: LifecyclePhase, net: &mut Net) -> usize {
        if phase == LifecyclePhase::Open {
            self.listeners.open(net);
        }
        // All events have been drained: now the endpoints send their final messages.
        if phase == LifecyclePhase::Ended && !self.had_events && self.winding_down.is_none() {
            self.winding_down = Some(now);
            self.stomp.iter_mut().for_each(|stomp| stomp.wind_down(now));
            self.fix.iter_mut().for_each(|fix| fix.wind_down(now));
            self.venue.iter_mut().for_each(|venue| venue.wind_down(now));
        }
        self.is_late = self.winding_down.is_some_and(|since| now >= since.plus(WIND_DOWN_NS_MAX));
        let mut work = 0;
        // Output for drained events is sent at once, without polling for readiness first; but not
        // in two consecutive cycles.
        self.skip_readiness = self.had_events && !self.skip_readiness;
        let skip_readiness = self.skip_readiness;
        let mut handle =
            |sockets: &mut Sockets, socket_event| work += self.handle(now, phase, sockets, socket_event);
        let handled = if skip_readiness {
            net.run_cycle_unpolled(now, &mut handle)
        } else {
            net.run_cycle(now, &mut handle)
        };
        self.connected = net.sockets().len();
        self.publish_sessions(now);
        handled + work
    }

    fn handle(
        &mut self,
        now: Timestamp,
        phase: LifecyclePhase,
        sockets: &mut Sockets,
        socket_event: SocketEvent,
    ) -> usize {
        let id = match socket_event {
            SocketEvent::EndOfCycle => return self.flush_endpoints(now, phase, sockets),
            SocketEvent::Accepted { id, listener, .. } => {
                let Gateway { listeners, stomp, fix, recorder, .. } = self;
                match (listeners.protocol(listener), stomp, fix) {
                    (Some(ListenerProtocol::Stomp), Some(stomp), _) => {
                        stomp.handle(now, sockets, socket_event)
                    }
                    (Some(ListenerProtocol::Fix), _, Some(fix)) => {
                        fix.handle(now, sockets, socket_event, listeners.port(listener), recorder.as_mut());
                    }
                    (Some(ListenerProtocol::Stomp | ListenerProtocol::Fix) | None, _, _) => sockets.close(id),
                }
                return 1;
            }
            SocketEvent::Received { id }
            | SocketEvent::Drained { id }
            | SocketEvent::Timeout { id }
            | SocketEvent::Closed { id, .. } => id,
        };
        if let Some(stomp) = self.stomp.as_mut().filter(|stomp| stomp.owns(id)) {
            let is_input = matches!(socket_event, SocketEvent::Received { .. });
            let received = latency::start_input(self.recorder.as_mut().filter(|_| is_input));
            stomp.handle(now, sockets, socket_event);
            latency::finish_input(received, self.recorder.as_mut());
        } else if let Some(fix) = self.fix.as_mut().filter(|fix| fix.owns(id)) {
            fix.handle(now, sockets, socket_event, 0, self.recorder.as_mut());
        } else if let Some(venue) = self.venue.as_mut().filter(|venue| venue.owns(id)) {
            venue.handle(now, sockets, socket_event);
        }
        1
    }

    /// Wakes the shards that received commands.
    fn wake_shards(&mut self) {
        let woken = [
            self.port.take_wakeups(),
            self.control.as_mut().map(Control::take_wakeups).unwrap_or_default(),
            self.market.as_mut().map(MarketSource::take_wakeups).unwrap_or_default(),
            self.trader.as_mut().map(DemoTrader::take_wakeups).unwrap_or_default(),
            self.runner.as_mut().map(|runner| runner.take_wakeups()).unwrap_or_default(),
        ];
        self.wakeups.wake_shards(woken.into_iter().fold(ShardMask::default(), ShardMask::with));
    }

    pub fn is_done(&self, phase: LifecyclePhase) -> bool {
        match phase {
            LifecyclePhase::Opening => {
                self.pending_snapshots.is_empty() && self.control.as_ref().is_none_or(Control::is_ready)
            }
            LifecyclePhase::Open | LifecyclePhase::Draining => true,
            LifecyclePhase::Closing => {
                self.trader.as_ref().is_none_or(|trader| !trader.is_waiting())
                    && self.runner.as_ref().is_none_or(|runner| runner.has_stopped())
                    && self.fix.as_ref().is_none_or(|fix| !fix.is_waiting())
                    && self.venue.as_ref().is_none_or(|venue| !venue.is_waiting())
            }
            LifecyclePhase::Ended => !self.had_events && self.has_disconnected(),
        }
    }

    /// Returns whether all connections have ended.
    fn has_disconnected(&self) -> bool {
        let is_winding_down = self.winding_down.is_some();
        let all_closed = self.stomp.as_ref().is_none_or(|stomp| is_winding_down && stomp.is_done())
            && self.fix.as_ref().is_none_or(|fix| is_winding_down && fix.is_done())
            && self.venue.as_ref().is_none_or(|venue| is_winding_down && venue.is_done())
            && self.connected == 0;
        self.is_late || all_closed
    }

    /// Returns whether commands or notifications wait for a free slot of a lane.
    pub fn is_waiting(&self) -> bool {
        !self.pending_commands.is_empty()
            || self.notifications.as_ref().is_some_and(NotificationChannel::is_waiting)
            || self.stomp.as_ref().is_some_and(StompEndpoint::is_waiting)
            || self.fix.as_ref().is_some_and(|fix| fix.is_waiting())
            || self.venue.as_ref().is_some_and(|venue| venue.is_waiting())
            || self.control.as_ref().is_some_and(Control::is_waiting)
            || self.market.as_ref().is_some_and(MarketSource::is_waiting)
            || self.trader.as_ref().is_some_and(DemoTrader::is_waiting)
            || self.runner.as_ref().is_some_and(|runner| runner.is_waiting())
    }

    pub fn deadline(&self, phase: LifecyclePhase) -> Timestamp {
        let control = self.control.as_ref().map_or(Timestamp::MAX, Control::deadline);
        let stages = self.recorder.as_ref().map_or(Timestamp::MAX, LatencyRecorder::deadline);
        let stomp = self.stomp.as_ref().map_or(Timestamp::MAX, StompEndpoint::deadline);
        let fix = self.fix.as_ref().map_or(Timestamp::MAX, |fix| fix.deadline());
        let has_clients = self.connected > 0 || self.had_sessions;
        let session_list = if has_clients { self.session_list_at } else { Timestamp::MAX };
        let wind_down_end = self.winding_down.map_or(Timestamp::MAX, |since| since.plus(WIND_DOWN_NS_MAX));
        let venue = self.venue.as_ref().map_or(Timestamp::MAX, |venue| venue.deadline());
        let mut deadline =
            control.min(stages).min(stomp).min(fix).min(venue).min(session_list).min(wind_down_end);
        if phase == LifecyclePhase::Open {
            let market = self.market.as_ref().map_or(Timestamp::MAX, MarketSource::deadline);
            let trader = self.trader.as_ref().map_or(Timestamp::MAX, DemoTrader::deadline);
            let runner = self.runner.as_ref().map_or(Timestamp::MAX, |runner| runner.deadline());
            deadline = deadline.min(market).min(trader).min(runner);
        }
        deadline
    }
}

/// Passes a notification to the STOMP clients of this gateway and to the other threads.
fn announce(
    stomp: Option<&mut StompEndpoint>,
    others: Option<&mut NotificationChannel>,
    now: Timestamp,
    notification: Notification,
) {
    if let Some(stomp) = stomp {
        stomp.handle_notification(now, &notification);
    }
    if let Some(others) = others {
        others.send(notification);
    }
}

/// Records that the snapshot of a shard is complete, and returns whether it was the last pending
/// one. Another server that was disconnected sends its state again.
fn complete_snapshot(pending: &mut ShardMask, shard: ShardId) -> bool {
    let before = std::mem::replace(pending, pending.without(ShardMask::one(shard)));
    !before.is_empty() && pending.is_empty()
}

fn source(port: &PortEnd) -> Source {
    Source { origin: Origin::Server, port: port.id(), session: 0 }
}
