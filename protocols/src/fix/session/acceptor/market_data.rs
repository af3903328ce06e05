//! Market data of a client: its subscriptions, and the updates that it receives.
//!
//! ```text
//! V ─► MarketSubscriptions ─ MarketInterest ─► caller, which watches the security
//!                 ▲                                        │
//!                 └──────────── MarketImage ◄──────────────┘      image ─► W or X, or it waits
//! ```
//!
//! While much output waits, an update replaces the one before it and is sent later as a snapshot
//! (W): a slow client sees fewer updates, never an outdated one, and memory stays bounded. These
//! messages are not stored; a resend skips them, because prices must be current.
//!
//! Rules: docs/fix-rules.md#market-data.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use pitlane_engine::id::SecurityId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::Acceptor;
use crate::fix::fields::FixMessage;
use crate::fix::market_data::{
    self, MarketDataRequest, MarketDataTerms, MarketImage, MdRejectReason, RequestFault, ShownMarket,
    SubscriptionKind,
};
use crate::fix::msg_type;
use crate::fix::session::layer::{SessionLayer, echo, route};
use crate::fix::tag;

/// Bytes of waiting output above which updates wait: about 200 of them, so that reports of orders
/// come soon after.
const MARKET_DATA_BYTES_HIGH: usize = 64 * 1_024;

/// Market data that the session begins or ceases to need, once for each subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketInterest {
    pub security: SecurityId,
    /// Whether the book is needed beside the tick.
    pub book: bool,
    pub on: bool,
}

#[derive(Debug, Default)]
pub(super) struct MarketSubscriptions {
    streams: BTreeMap<SecurityId, Vec<MarketStream>>,
    /// Number of streams of all securities, at most `market_data_max` of the settings.
    len: usize,
    /// Securities with an update that waits.
    behind: BTreeSet<SecurityId>,
    /// Changes that the caller has not taken yet.
    interests: VecDeque<MarketInterest>,
}

/// One security of one subscription.
#[derive(Debug)]
struct MarketStream {
    /// MDReqID (262).
    id: Arc<[u8]>,
    terms: MarketDataTerms,
    /// Whether it ends with its first message.
    is_snapshot: bool,
    /// What the client knows; `None` before the first message.
    known: Option<ShownMarket>,
    /// The newest update, while it waits.
    waiting: Option<Box<MarketImage>>,
}

impl Acceptor {
    /// Handles Market Data Request (V).
    pub(super) fn handle_market_data_request(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        let request = match MarketDataRequest::read(message, &self.reference) {
            Ok(request) => request,
            Err(RequestFault::Missing(tag)) => return layer.refuse_missing(now, message, number, tag),
            Err(RequestFault::Field(fault)) => return layer.reject(now, message, number, fault),
            Err(RequestFault::Refused(reason)) => return refuse(layer, now, message, reason),
        };
        let refused = match request.kind {
            _ if layer.settings.market_data_max == 0 => Some(MdRejectReason::NotPermitted),
            SubscriptionKind::Unsubscribe => self.market.end(&request.id).err(),
            SubscriptionKind::Snapshot | SubscriptionKind::Subscribe => {
                self.market.begin(request, layer.settings.market_data_max).err()
            }
        };
        if let Some(reason) = refused {
            refuse(layer, now, message, reason);
        }
    }

    /// Takes the next change of the market data that the session needs.
    pub(in crate::fix::session) fn poll_market_interest(&mut self) -> Option<MarketInterest> {
        self.market.interests.pop_front()
    }

    /// Handles new market data of a security.
    pub(in crate::fix::session) fn handle_market_image(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        image: &MarketImage,
    ) {
        let MarketSubscriptions { streams, behind, .. } = &mut self.market;
        let security = image.tick.security;
        for stream in streams.get_mut(&security).into_iter().flatten() {
            if stream.is_ready(image) && !stream.is_done() {
                if stream.waiting.is_none() && may_send(layer) {
                    stream.send(layer, now, &self.reference, image);
                } else {
                    stream.wait(image);
                    behind.insert(security);
                }
            }
        }
        self.market.remove_done(security);
    }

    /// Sends the updates that waited, while there is room.
    #[inline]
    pub(super) fn continue_market_data(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        if !self.market.behind.is_empty() {
            self.catch_up(layer, now);
        }
    }

    fn catch_up(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        while may_send(layer)
            && let Some(security) = self.market.behind.pop_first()
        {
            for stream in self.market.streams.get_mut(&security).into_iter().flatten() {
                if let Some(image) = stream.waiting.take() {
                    // The client has missed updates: it gets everything.
                    stream.known = None;
                    stream.send(layer, now, &self.reference, &image);
                }
            }
            self.market.remove_done(security);
        }
    }

    /// Ends all subscriptions with the connection.
    pub(super) fn end_market_data(&mut self) {
        for security in self.market.streams.keys().copied().collect::<Vec<_>>() {
            self.market.remove(security, |_| true);
        }
        self.market.behind.clear();
    }
}

impl MarketSubscriptions {
    fn begin(&mut self, request: MarketDataRequest, streams_max: usize) -> Result<(), MdRejectReason> {
        let MarketDataRequest { id, kind, terms, securities } = request;
        if self.is_used(&id) {
            return Err(MdRejectReason::DuplicateId);
        }
        if self.len + securities.len() > streams_max {
            return Err(MdRejectReason::TooMuch);
        }
        let (id, is_snapshot): (Arc<[u8]>, _) = (id.into(), kind == SubscriptionKind::Snapshot);
        for security in securities {
            let stream = MarketStream { id: id.clone(), terms, is_snapshot, known: None, waiting: None };
            self.streams.entry(security).or_default().push(stream);
            self.len += 1;
            self.interests.push_back(MarketInterest { security, book: terms.needs_book(), on: true });
        }
        Ok(())
    }

    fn end(&mut self, id: &[u8]) -> Result<(), MdRejectReason> {
        if !self.is_used(id) {
            return Err(MdRejectReason::UnknownId);
        }
        for security in self.streams.keys().copied().collect::<Vec<_>>() {
            self.remove(security, |stream| *stream.id == *id);
        }
        Ok(())
    }

    fn is_used(&self, id: &[u8]) -> bool {
        self.streams.values().flatten().any(|stream| *stream.id == *id)
    }

    fn remove_done(&mut self, security: SecurityId) {
        let is_done = |streams: &Vec<MarketStream>| streams.iter().any(MarketStream::is_done);
        if self.streams.get(&security).is_some_and(is_done) {
            self.remove(security, MarketStream::is_done);
        }
    }

    /// Removes streams of a security.
    fn remove(&mut self, security: SecurityId, is_meant: impl Fn(&MarketStream) -> bool) {
        let MarketSubscriptions { streams, len, interests, .. } = self;
        let Some(of_security) = streams.get_mut(&security) else { return };
        of_security.retain(|stream| {
            let goes = is_meant(stream);
            if goes {
                *len -= 1;
                let book = stream.terms.needs_book();
                interests.push_back(MarketInterest { security, book, on: false });
            }
            !goes
        });
        if of_security.is_empty() {
            streams.remove(&security);
        }
    }
}

impl MarketStream {
    /// Returns whether an image has all that the first message needs.
    fn is_ready(&self, image: &MarketImage) -> bool {
        !self.terms.needs_book() || image.book.is_some() || image.is_book_settled
    }

    fn is_done(&self) -> bool {
        self.is_snapshot && self.known.is_some()
    }

    fn wait(&mut self, image: &MarketImage) {
        match &mut self.waiting {
            Some(waiting) => **waiting = *image,
            None => self.waiting = Some(Box::new(*image)),
        }
    }

    fn send(&mut self, layer: &mut SessionLayer, now: Timestamp, reference: &RefData, image: &MarketImage) {
        let (id, terms, rpt_seq) = (&*self.id, &self.terms, layer.settings.market_data_rpt_seq);
        let shown = ShownMarket::of(image, terms);
        match self.known {
            Some(known) if terms.is_incremental => {
                if let Some(refresh) = market_data::refresh(terms, &known, &shown, &image.tick) {
                    layer.send_admin(now, msg_type::MARKET_DATA_INCREMENTAL_REFRESH, |draft| {
                        refresh.write(draft, reference, id, rpt_seq);
                    });
                }
            }
            Some(known) if !shown.differs(&known, terms) => {}
            Some(_) | None => layer.send_admin(now, msg_type::MARKET_DATA_SNAPSHOT, |draft| {
                market_data::snapshot(draft, reference, (id, terms, rpt_seq), image, &shown);
            }),
        }
        self.known = Some(shown);
    }
}

/// Returns whether an update can be written now.
fn may_send(layer: &SessionLayer) -> bool {
    layer.is_logged_on() && !layer.is_resending() && layer.stream.unsent_bytes() < MARKET_DATA_BYTES_HIGH
}

fn refuse(layer: &mut SessionLayer, now: Timestamp, message: &FixMessage, reason: MdRejectReason) {
    let id = message.get(tag::MD_REQ_ID).unwrap_or_default();
    _ = layer.send_app(now, msg_type::MARKET_DATA_REQUEST_REJECT, |draft| {
        route(draft, message);
        market_data::reject(draft, echo(id), reason);
    });
}
