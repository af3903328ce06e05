//! Connections of strategies' processes to this server where there is no broker: what waits to be
//! sent on each. A connection belongs to one strategy; the one that said Hello or Resume last
//! receives the strategy's events and prices.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use async_nats::Subject;
use bytes::Bytes;
use pitlane_protocols::remote::link::{LinkRefusal, ServerFrame};
use tokio::sync::Notify;

use super::{RemoteState, RemoteStrategies, count};

/// Connections of one strategy: its process, one that takes over, and one or two that are gone and
/// not noticed yet.
pub(crate) const PER_STRATEGY_MAX: usize = 4;
/// Bytes of replies that wait for a process that does not read; beyond it no request of the
/// connection is read.
pub(crate) const REPLY_BYTES_MAX: usize = 1 << 20;
/// Events of other strategies that a process has received and not acknowledged.
const GENERIC_WINDOW_MAX: usize = 64;

/// Where a reply goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReplyAddress {
    /// A subject at the broker.
    Subject(Subject),
    /// A connection, and the number of the request.
    Connection { connection: u64, number: u64 },
}

/// All connections.
#[derive(Debug, Default)]
pub(crate) struct LinkConnections {
    next: u64,
    outputs: BTreeMap<u64, LinkOutput>,
}

#[derive(Debug)]
struct LinkOutput {
    /// Index of its strategy.
    slot: usize,
    /// Frames that wait to be sent.
    replies: VecDeque<Bytes>,
    reply_bytes: usize,
    /// Last event of other strategies that was sent.
    generic_sent: u64,
    /// Numbers of those that are not acknowledged.
    in_flight: VecDeque<u64>,
    /// Reason why the connection must end.
    ends: Option<LinkRefusal>,
    signals: Rc<LinkSignals>,
}

/// Wakes the tasks of a connection.
#[derive(Debug, Default)]
pub(crate) struct LinkSignals {
    /// There may be something to send.
    pub output: Notify,
    /// There may be room for replies.
    pub room: Notify,
}

impl LinkConnections {
    pub(super) fn push_frame(&mut self, connection: u64, frame: &ServerFrame) {
        // The replies of a connection that is gone are discarded: the process asks again.
        let Some(output) = self.outputs.get_mut(&connection) else { return };
        let bytes = Bytes::from(frame.encode());
        output.reply_bytes += bytes.len();
        output.replies.push_back(bytes);
        output.signals.output.notify_one();
    }

    pub(super) fn wake(&self, connection: u64) {
        if let Some(output) = self.outputs.get(&connection) {
            output.signals.output.notify_one();
        }
    }

    pub(super) fn wake_all(&self) {
        self.outputs.values().for_each(|output| output.signals.output.notify_one());
    }

    pub(crate) fn len(&self) -> usize {
        self.outputs.len()
    }
}

impl RemoteState {
    /// Returns the next event of others for a connection.
    fn next_generic(&mut self, connection: u64, at: usize) -> Option<ServerFrame> {
        let (log, output) = (self.generic_log.as_mut()?, self.connections.outputs.get_mut(&connection)?);
        let name = &self.slots[at].name;
        if output.in_flight.len() >= GENERIC_WINDOW_MAX {
            return None;
        }
        if output.in_flight.is_empty() {
            output.generic_sent = log.begin_delivery(name);
        }
        let event = log.next_for(name, output.generic_sent)?;
        output.generic_sent = event.number;
        output.in_flight.push_back(event.number);
        Some(ServerFrame::Generic {
            number: event.number,
            from: event.generic.from.clone(),
            name: event.generic.name.clone(),
            body: event.generic.body.to_vec(),
        })
    }

    /// Lets a connection receive what its strategy receives.
    pub(crate) fn attach_connection(&mut self, at: usize, connection: Option<u64>) {
        let slot = &mut self.slots[at];
        slot.connection = connection;
        let Some(output) = connection.and_then(|connection| self.connections.outputs.get_mut(&connection))
        else {
            return;
        };
        if let Some(log) = &self.generic_log {
            (output.generic_sent, output.in_flight) = (log.position(&slot.name), VecDeque::new());
        }
    }
}

impl RemoteStrategies {
    /// Opens a connection of a strategy; refuses it if there are too many.
    pub(crate) fn open_connection(&self, slot: usize) -> Result<(u64, Rc<LinkSignals>), LinkRefusal> {
        let connections = &mut self.inner.borrow_mut().connections;
        let present = connections.outputs.values().filter(|output| output.slot == slot).count();
        if present >= PER_STRATEGY_MAX {
            return Err(LinkRefusal::TooManyConnections);
        }
        connections.next += 1;
        let signals = Rc::new(LinkSignals::default());
        let output = LinkOutput {
            slot,
            replies: VecDeque::new(),
            reply_bytes: 0,
            generic_sent: u64::MAX,
            in_flight: VecDeque::new(),
            ends: None,
            signals: signals.clone(),
        };
        connections.outputs.insert(connections.next, output);
        Ok((connections.next, signals))
    }

    pub(crate) fn connection_count(&self) -> usize {
        self.inner.borrow().connections.len()
    }

    /// Removes a connection that has ended. The strategy's process keeps its lease.
    pub(crate) fn close_connection(&self, connection: u64) {
        let mut inner = self.inner.borrow_mut();
        inner.connections.outputs.remove(&connection);
        inner
            .slots
            .iter_mut()
            .filter(|slot| slot.connection == Some(connection))
            .for_each(|slot| slot.connection = None);
    }

    /// Makes a connection end with a reason.
    pub(crate) fn end_connection(&self, connection: u64, refusal: LinkRefusal) {
        let connections = &mut self.inner.borrow_mut().connections;
        if let Some(output) = connections.outputs.get_mut(&connection) {
            output.ends = Some(refusal);
            output.signals.output.notify_one();
        }
    }

    /// Queues a frame for a connection.
    pub(crate) fn send_frame(&self, connection: u64, frame: &ServerFrame) {
        self.inner.borrow_mut().connections.push_frame(connection, frame);
    }

    /// Returns why a connection must end; `None` if it may go on.
    pub(crate) fn end_of(&self, connection: u64) -> Option<LinkRefusal> {
        self.inner.borrow().connections.outputs.get(&connection).and_then(|output| output.ends)
    }

    /// Returns whether a request of the connection may be read.
    pub(crate) fn has_room(&self, connection: u64) -> bool {
        let inner = self.inner.borrow();
        let output = inner.connections.outputs.get(&connection);
        output.is_none_or(|output| output.reply_bytes < REPLY_BYTES_MAX)
    }

    /// Returns the next frame for a connection: replies first, then events, then prices.
    pub(crate) fn take_frame(&self, connection: u64) -> Option<Bytes> {
        let inner = &mut *self.inner.borrow_mut();
        let output = inner.connections.outputs.get_mut(&connection)?;
        if let Some(reply) = output.replies.pop_front() {
            output.reply_bytes -= reply.len();
            output.signals.room.notify_one();
            return Some(reply);
        }
        let at = output.slot;
        if inner.slots[at].connection != Some(connection) {
            return None;
        }
        if let Some(batch) = inner.event_batch(at) {
            count(&self.counts.event_batches);
            return Some(ServerFrame::Events(batch.encode()).encode().into());
        }
        if let Some(generic) = inner.next_generic(connection, at) {
            return Some(generic.encode().into());
        }
        let prices = inner.next_prices(at)?;
        count(&self.counts.price_batches);
        Some(ServerFrame::Prices(prices.encode()).encode().into())
    }

    /// Handles the acknowledgement of events of other strategies.
    pub(crate) fn acknowledge_generics(&self, connection: u64, number: u64) {
        let inner = &mut *self.inner.borrow_mut();
        let Some(output) = inner.connections.outputs.get_mut(&connection) else { return };
        while output.in_flight.front().is_some_and(|sent| *sent <= number) {
            output.in_flight.pop_front();
        }
        output.signals.output.notify_one();
        // A process acknowledges only what it has received.
        let number = number.min(output.generic_sent);
        let name = inner.slots[output.slot].name.clone();
        let is_holder = inner.slots[output.slot].connection == Some(connection);
        if let Some(log) = inner.generic_log.as_mut().filter(|_| is_holder) {
            log.acknowledge(&name, number);
        }
    }
}
