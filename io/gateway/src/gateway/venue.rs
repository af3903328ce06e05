//! Connections to venues: the adapters of this thread, between its sockets and its lanes.
//!
//! ```text
//! shard ─ instruction ─► VenueLink: FixSession ─► one write ─► venue
//! shard ◄─ report ◄───── VenueLink: FixSession ◄─ Received ◄── venue       stored? ─► the message's number counts as processed
//! ```
//!
//! A venue without FIX has an [`AdapterLink`] with a `VenueAdapter` in the place of the session.
//!
//! An adapter belongs to one gateway permanently. Orders of all clients reach it through the
//! shards; the venue's reports go to the shards, and from there to their subscribers.

mod adapter_link;
mod link;
mod reporting;
mod stored;

use std::collections::BTreeSet;
use std::sync::Arc;

use pitlane_engine::event::{Event, EventKind, VenueRequest};
use pitlane_engine::id::{AdapterId, OrderHandle, Origin, PortId, ShardId, Source};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::ReportedTerms;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_journal::disk::Disk;
use pitlane_journal::{Fault, Level};
use pitlane_net::ConnectionId;
use pitlane_net::event::SocketEvent;
use pitlane_net::sockets::Sockets;
use pitlane_protocols::fix::session::{DisconnectReason, FixSession};
use pitlane_protocols::fix::store::{MemoryStore, MessageStore};

use self::adapter_link::AdapterLink;
use self::link::VenueLink;
use super::fix::Unreported;
use crate::binance::BinanceVenueSettings;
use crate::fix::message_log;
use crate::fix::store::{FileStore, StoreLocation, path_of};
use crate::fix::venue::VenueSessionSettings;
use crate::notifications::{Notification, SessionInfo, SessionKind};

/// Maximum time for the final messages when the service stops.
const WIND_DOWN_NS_MAX: u64 = 1_500 * NS_PER_MS;

/// First session number of adapters, as the source of commands to the shards; clients have lower
/// numbers.
const FIRST_SESSION: u16 = 0xff00;

/// The parts of this thread's venue connector.
#[derive(Debug)]
pub struct VenueParts {
    pub port: PortId,
    pub venues: Vec<VenueSessionSettings>,
    pub binance: Vec<BinanceVenueSettings>,
    pub reference: Arc<RefData>,
    pub level: Level,
    /// Last event of each shard at the start.
    pub reported: Vec<u64>,
    /// Instructions from before the restart whose message was not stored.
    pub missed: Vec<Unreported>,
    /// Identifier of the data folder.
    pub folder_id: u64,
    pub fix_log: message_log::FixLogHandle,
}

#[derive(Debug)]
pub struct VenueConnector {
    links: Vec<VenueLink>,
    /// Venues without FIX.
    adapter_links: Vec<AdapterLink>,
    fix_log: message_log::FixLogHandle,
    special: ReportedTerms,
    /// Whether the connector connects to venues.
    is_open: bool,
    /// When all sessions started to be logged out.
    ending_since: Option<Timestamp>,
}

impl VenueConnector {
    pub fn new(now: Timestamp, parts: VenueParts) -> Result<VenueConnector, Fault> {
        let VenueParts { port, venues, binance, reference, level, reported, missed, folder_id, mut fix_log } =
            parts;
        let mut links = Vec::new();
        for settings in venues {
            let source = source_of(port, settings.id);
            let (store, certain) = open_store(now, &settings, level, &reported, &mut fix_log)?;
            // After a power loss, messages that were sent may be missing from the store: then
            // nothing is certain.
            let never_sent = if certain { never_sent(&missed, settings.id) } else { BTreeSet::new() };
            let (session_settings, venue) = (settings.session(now, source), settings.venue(folder_id));
            let mut session =
                FixSession::initiator(session_settings, venue, store, reference.clone(), never_sent);
            if let Some(signer) = settings.logon_signer() {
                session.set_logon_signer(signer);
            }
            let logged = settings.log_folder.as_ref().is_some_and(|folder| {
                fix_log.open_log(source.session, folder.join(format!("{}.log", settings.name())))
            });
            links.push(VenueLink::new(settings, source, session, logged));
        }
        let adapter_link = |settings: BinanceVenueSettings| {
            let adapter = Box::new(settings.adapter(folder_id, reference.clone()));
            let source = source_of(port, settings.id);
            let BinanceVenueSettings { id, name, targets, trading_day, .. } = settings;
            AdapterLink::new(id, name, source, adapter, targets, trading_day)
        };
        let adapter_links = binance.into_iter().map(adapter_link).collect();
        let special = ReportedTerms::default();
        Ok(VenueConnector { links, adapter_links, fix_log, special, is_open: false, ending_since: None })
    }

    /// Returns the adapters of this thread, which must receive the instructions for them.
    pub fn adapters(&self) -> impl Iterator<Item = AdapterId> {
        let fix = self.links.iter().map(|link| link.settings.id);
        fix.chain(self.adapter_links.iter().map(|link| link.id))
    }

    pub fn set_reference(&mut self, reference: &Arc<RefData>) {
        self.links.iter_mut().for_each(|link| link.session.set_reference(reference.clone()));
        for link in &mut self.adapter_links {
            link.adapter_mut().set_reference(reference.clone());
        }
    }

    pub fn owns(&self, id: ConnectionId) -> bool {
        self.links.iter().any(|link| link.connection == Some(id))
            || self.adapter_links.iter().any(|link| link.owns(id))
    }

    pub fn handle(&mut self, now: Timestamp, sockets: &mut Sockets, socket_event: SocketEvent) {
        let VenueConnector { links, adapter_links, fix_log, .. } = self;
        let id = match socket_event {
            SocketEvent::Received { id } | SocketEvent::Drained { id } | SocketEvent::Closed { id, .. } => id,
            SocketEvent::Accepted { .. } | SocketEvent::Timeout { .. } | SocketEvent::EndOfCycle => return,
        };
        if let Some(link) = adapter_links.iter_mut().find(|link| link.owns(id)) {
            link.has_work = true;
            if let SocketEvent::Received { .. } = socket_event {
                link.receive(now, id, sockets);
            } else if let SocketEvent::Closed { reason, .. } = socket_event {
                link.handle_disconnect(now, id, Some(reason));
            }
            return;
        }
        let Some(link) = links.iter_mut().find(|link| link.connection == Some(id)) else { return };
        link.has_work = true;
        if let SocketEvent::Received { .. } = socket_event {
            link.receive(now, id, sockets, fix_log);
        } else if let SocketEvent::Closed { reason, .. } = socket_event {
            link.handle_disconnect(now, Some(reason));
        }
    }

    /// Handles events of the shards: instructions, and confirmations that reports are stored.
    pub fn handle_event(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        if let EventKind::SpecialTerms(special) = &event.body {
            self.special.put(shard, special);
        } else if let EventKind::ToVenue(instruction) = &event.body {
            let special = self.special.take(shard, instruction.order, &instruction.terms);
            let special = special.as_ref().map(|reported| &reported.special);
            if let Some(link) = self.links.iter_mut().find(|link| link.settings.id == instruction.adapter) {
                link.has_work = true;
                link.session.handle_instruction(now, shard, event.seq, instruction, special);
            } else if let Some(link) =
                self.adapter_links.iter_mut().find(|link| link.id == instruction.adapter)
            {
                link.handle_instruction(now, shard, event.seq, instruction, special);
            }
        } else if let EventKind::Done { source, token, reason } = &event.body
            && source.session >= FIRST_SESSION
        {
            if let Some(link) = self.links.iter_mut().find(|link| link.source == *source) {
                link.has_work = true;
                link.handle_done(now, shard, *token, *reason);
            } else if let Some(link) = self.adapter_links.iter_mut().find(|link| link.source == *source) {
                link.handle_done(now, shard, *token, *reason);
            }
        }
    }

    /// Handles requests of other threads: an operator ends a session, which reconnects by itself,
    /// or resets its sequence numbers.
    pub fn handle_notification(&mut self, now: Timestamp, notification: &Notification) {
        let Some((number, resets)) = notification.ended_or_reset(SessionKind::Venue) else { return };
        if let Some(link) =
            self.adapter_links.iter_mut().find(|link| link.source.session as u64 == number && !resets)
        {
            link.has_work = true;
            return link.adapter_mut().log_out(now, "ended by the operator");
        }
        let Some(link) = self.links.iter_mut().find(|link| link.source.session as u64 == number) else {
            return;
        };
        link.has_work = true;
        if resets {
            link.session.reset(now);
        } else {
            link.session.log_out(now, b"Ended by the operator", DisconnectReason::EndedByUs);
        }
    }

    /// Returns every venue, connected or not.
    pub fn rows(&self, now: Timestamp) -> impl Iterator<Item = SessionInfo> {
        self.links.iter().map(VenueLink::row).chain(self.adapter_links.iter().map(move |link| link.row(now)))
    }

    /// Does what is due, sends the venue's reports to the shards, and writes output. `port` is
    /// present while the shards accept commands; the connector connects to venues while the service
    /// is open.
    pub fn poll(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        mut port: Option<&mut PortEnd>,
        is_open: bool,
    ) -> usize {
        let mut work = 0;
        self.is_open = is_open;
        let VenueConnector { links, adapter_links, fix_log, ending_since, .. } = self;
        let is_late = ending_since.is_some_and(|since| now >= since.plus(WIND_DOWN_NS_MAX));
        for link in links {
            work += link.poll(now, sockets, port.as_deref_mut(), fix_log, is_open);
            if is_late && let Some(id) = link.connection {
                sockets.close(id);
                link.handle_disconnect(now, None);
            }
        }
        for link in adapter_links {
            work += link.poll(now, sockets, port.as_deref_mut(), is_open);
            if is_late {
                link.close(now, sockets);
            }
        }
        work
    }

    /// Returns whether commands wait for a free slot of a lane.
    pub fn is_waiting(&self) -> bool {
        self.links.iter().any(VenueLink::is_waiting) || self.adapter_links.iter().any(AdapterLink::is_waiting)
    }

    pub fn deadline(&self) -> Timestamp {
        let end = self.ending_since.map_or(Timestamp::MAX, |since| since.plus(WIND_DOWN_NS_MAX));
        let fix = self.links.iter().map(|link| link.deadline(self.is_open));
        let others = self.adapter_links.iter().map(|link| link.deadline(self.is_open));
        fix.chain(others).fold(end, Timestamp::min)
    }

    /// Logs out of every venue.
    pub fn wind_down(&mut self, now: Timestamp) {
        self.ending_since = Some(now);
        for link in self.links.iter_mut().filter(|link| link.connection.is_some()) {
            link.session.log_out(now, b"The service stops", DisconnectReason::EndedByUs);
            link.has_work = true;
        }
        for link in &mut self.adapter_links {
            link.adapter_mut().log_out(now, "the service stops");
            link.has_work = true;
        }
    }

    pub fn is_done(&self) -> bool {
        self.links.iter().all(|link| link.connection.is_none())
            && self.adapter_links.iter().all(AdapterLink::is_disconnected)
    }
}

/// Returns the source of an adapter's commands.
fn source_of(port: PortId, adapter: AdapterId) -> Source {
    Source { origin: Origin::Server, port, session: FIRST_SESSION + adapter.0 as u16 }
}

/// Returns the new orders that were never sent.
fn never_sent(missed: &[Unreported], adapter: AdapterId) -> BTreeSet<OrderHandle> {
    let new_orders = missed.iter().filter_map(|missed| {
        let EventKind::ToVenue(instruction) = &missed.event.body else { return None };
        let is_new = instruction.adapter == adapter && instruction.request == VenueRequest::New;
        is_new.then_some(instruction.order)
    });
    new_orders.collect()
}

/// Returns the store, and whether it has every message that was ever sent.
fn open_store(
    now: Timestamp,
    settings: &VenueSessionSettings,
    level: Level,
    reported: &[u64],
    fix_log: &mut message_log::FixLogHandle,
) -> Result<(Box<dyn MessageStore>, bool), Fault> {
    if level == Level::None {
        return Ok((Box::new(MemoryStore::new(now)), true));
    }
    let (disk, folder) = (Disk::Real, &settings.store_folder);
    disk.make_folder(folder).map_err(Fault::io(folder))?;
    let store = FileStore::open(&location_of(&disk, settings, level), now, reported)?;
    if store.lost_power {
        tracing::warn!(
            venue = settings.name(),
            "after a power loss sequence numbers were skipped, and the newest orders are in doubt"
        );
    }
    if level.is_synced() && !fix_log.sync(Arc::clone(store.file())) {
        tracing::error!(venue = settings.name(), "the store is not synced: too many at once");
    }
    let certain = !store.lost_power;
    Ok((Box::new(store), certain))
}

/// Returns the location of a venue's store.
pub fn location_of<'a>(
    disk: &'a Disk,
    settings: &'a VenueSessionSettings,
    level: Level,
) -> StoreLocation<'a> {
    let path = path_of(&settings.store_folder, settings.name());
    StoreLocation { disk, path, name: settings.name(), bytes: settings.store_bytes, level }
}
