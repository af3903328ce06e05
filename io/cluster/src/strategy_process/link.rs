//! The link of a strategy's process to its server: directly, or through a broker. Both carry the
//! same messages, and the rest of the process does not know which one it has.

mod direct;
mod nats;

use std::time::Duration;

use async_nats::jetstream;
use bytes::Bytes;
use pitlane_config::StrategyTransport;
use pitlane_protocols::remote::strategy::{EventBatch, PriceBatch, RemoteReply, RemoteRequest};

use self::direct::DirectLink;
use self::nats::NatsLink;
use super::{StrategyProcessError, StrategyProcessSettings};
use crate::nats::generic::Generic;

/// Timeout of an answer during the handshake.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// Pause between two attempts to reach the server or to send an event.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of events between strategies that wait to be sent, and that wait for the
/// strategy. Beyond it the newest outgoing ones are dropped, and incoming ones wait at the broker.
const GENERICS_MAX: usize = 256;

pub(super) enum Link {
    Direct(Box<DirectLink>),
    Nats(Box<NatsLink>),
}

/// What arrives over a link.
pub(super) enum LinkInput {
    Reply {
        number: u64,
        reply: RemoteReply,
    },
    /// A message of ours had no receiver.
    Silence,
    Events(EventBatch),
    Prices(PriceBatch),
    Generic(IncomingGeneric),
    /// The link was established or lost.
    Health(bool),
    /// The server refuses this process; the text is its reason.
    Refused(String),
}

/// An event of another strategy.
pub(super) struct IncomingGeneric {
    pub name: String,
    pub body: Bytes,
    pub receipt: GenericReceipt,
}

/// By what an event is acknowledged.
pub(super) enum GenericReceipt {
    Number(u64),
    Message(Box<jetstream::Message>),
}

impl Link {
    /// Opens the link that the settings name. It connects as soon as the other side is reachable.
    pub(super) async fn open(
        settings: &StrategyProcessSettings,
        publisher: u64,
    ) -> Result<Link, StrategyProcessError> {
        Ok(match settings.config.strategies_link.transport {
            StrategyTransport::Direct => Link::Direct(Box::new(DirectLink::open(settings, publisher)?)),
            StrategyTransport::Nats => Link::Nats(Box::new(NatsLink::open(settings, publisher).await?)),
        })
    }

    pub(super) fn is_up(&self) -> bool {
        match self {
            Link::Direct(link) => link.is_up(),
            Link::Nats(link) => link.is_up(),
        }
    }

    /// Sends a request and returns its answer; `None` if there is none in time.
    pub(super) async fn ask(&mut self, request: &RemoteRequest) -> Option<RemoteReply> {
        match self {
            Link::Direct(link) => link.ask(request).await,
            Link::Nats(link) => link.ask(request).await,
        }
    }

    /// Returns the next input. A call that is dropped loses nothing.
    pub(super) async fn next(&mut self) -> LinkInput {
        match self {
            Link::Direct(link) => link.next().await,
            Link::Nats(link) => link.next().await,
        }
    }

    /// Sends a request; number 0 asks for no reply. A request that cannot be sent now is lost, and
    /// the runner sends it again.
    pub(super) async fn send(&mut self, number: u64, request: &RemoteRequest) {
        match self {
            Link::Direct(link) => link.send(number, request),
            Link::Nats(link) => link.send(number, request).await,
        }
    }

    /// Queues an event for other strategies. It is sent until it is stored.
    pub(super) fn publish(&mut self, generic: Generic) {
        let is_queued = match self {
            Link::Direct(link) => link.publish(generic),
            Link::Nats(link) => link.publish(generic),
        };
        if !is_queued {
            tracing::warn!("an event for other strategies was dropped: too many wait to be sent");
        }
    }

    /// Acknowledges an event of another strategy that was handled.
    pub(super) async fn acknowledge(&mut self, receipt: GenericReceipt) {
        match (self, receipt) {
            (Link::Direct(link), GenericReceipt::Number(number)) => link.acknowledge(number),
            (Link::Nats(link), GenericReceipt::Message(message)) => link.acknowledge(&message).await,
            // A receipt belongs to the link that it came from.
            (Link::Direct(_), GenericReceipt::Message(_)) | (Link::Nats(_), GenericReceipt::Number(_)) => {}
        }
    }

    /// Waits until what was sent has left, for a short time.
    pub(super) async fn flush(&mut self) {
        match self {
            // The answer to the last request has arrived, so everything before it has left.
            Link::Direct(_) => {}
            Link::Nats(link) => link.flush().await,
        }
    }
}
