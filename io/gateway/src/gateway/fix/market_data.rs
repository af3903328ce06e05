//! Market data for the FIX sessions of this thread: the newest state of every security that one of
//! them has subscribed, and which sessions receive it.
//!
//! ```text
//! FixSession ─ MarketInterest ─► FixMarket ─ MarketWatch ─► Subscriptions ─► shards
//! Event: tick, depth ─► FixMarket ─ MarketImage ─► each session that has subscribed the security
//! ```
//!
//! It receives the same events as the STOMP endpoint.

use std::collections::BTreeMap;

use pitlane_engine::event::{Depth, Event, EventKind, Tick};
use pitlane_engine::id::{Origin, SecurityId, ShardId};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::market_data::MarketImage;
use pitlane_protocols::fix::session::MarketInterest;

use super::{FixEndpoint, client_of};
use crate::gateway::stomp::StompEndpoint;
use crate::stomp::MarketWatch;

/// Bounded by the securities of the reference data.
#[derive(Debug, Default)]
pub(super) struct FixMarket {
    securities: BTreeMap<SecurityId, SubscribedSecurity>,
    /// Changes that are not passed on yet, the newest of each watch.
    changes: BTreeMap<MarketWatch, bool>,
    /// Reused list of sessions.
    receivers: Vec<u16>,
}

#[derive(Debug)]
struct SubscribedSecurity {
    image: MarketImage,
    /// Whether the shard has sent a tick, or has none.
    is_known: bool,
    /// Bids that wait for the asks of the same book.
    bids: Option<Depth>,
    /// Sessions in ascending order, each as often as it has subscriptions.
    ticks: Vec<u16>,
    books: Vec<u16>,
}

impl SubscribedSecurity {
    fn new(security: SecurityId) -> SubscribedSecurity {
        let tick = Tick { security, ..Tick::default() };
        SubscribedSecurity {
            image: MarketImage { seq: 0, tick, book: None, is_book_settled: false },
            is_known: false,
            bids: None,
            ticks: Vec::new(),
            books: Vec::new(),
        }
    }

    /// Returns the sessions that want ticks, or the book.
    fn list(&mut self, book: bool) -> &mut Vec<u16> {
        if book { &mut self.books } else { &mut self.ticks }
    }
}

impl FixMarket {
    /// Applies a change of a session's subscriptions. Returns the image that the session gets at
    /// once, if it is known.
    fn apply(&mut self, number: u16, interest: MarketInterest) -> Option<MarketImage> {
        let MarketInterest { security, book, on } = interest;
        let subscribed = self.securities.entry(security).or_insert_with(|| SubscribedSecurity::new(security));
        // Every subscription needs ticks; some need the book too.
        for book in [false, true].into_iter().filter(|is_book| !is_book || book) {
            let list = subscribed.list(book);
            let at = list.partition_point(|other| *other < number);
            if on {
                list.insert(at, number);
            } else if list.get(at) == Some(&number) {
                list.remove(at);
            }
            let is_first_or_last = list.len() == usize::from(on);
            if is_first_or_last {
                self.changes.insert(MarketWatch { security, book }, on);
                if book {
                    (subscribed.image.book, subscribed.image.is_book_settled) = (None, false);
                }
            }
        }
        if subscribed.ticks.is_empty() {
            self.securities.remove(&security);
            return None;
        }
        let is_complete = !book || subscribed.image.book.is_some() || subscribed.image.is_book_settled;
        (on && subscribed.is_known && is_complete).then_some(subscribed.image)
    }

    /// Applies an event. Returns the security, if sessions must learn of it.
    fn handle_event(&mut self, event: &Event) -> Option<SecurityId> {
        if let EventKind::Tick(tick) = &event.body {
            let subscribed = self.securities.get_mut(&tick.security)?;
            (subscribed.image.tick, subscribed.is_known) = (*tick, true);
            subscribed.image.seq += 1;
            return Some(tick.security);
        }
        if let EventKind::Depth(depth) = &event.body {
            let subscribed = self.securities.get_mut(&depth.security)?;
            if depth.side == Side::Buy {
                subscribed.bids = Some(*depth);
                return None;
            }
            subscribed.image.book = Some([subscribed.bids.take()?, *depth]);
            subscribed.image.seq += 1;
            return subscribed.is_known.then_some(depth.security);
        }
        // The answer to a watch: what has not arrived before it does not exist yet.
        let EventKind::Done { source, token, .. } = event.body else { return None };
        let watch = MarketWatch::of_token(token).filter(|_| source.origin == Origin::Server)?;
        let subscribed = self.securities.get_mut(&watch.security)?;
        let settled =
            if watch.book { &mut subscribed.image.is_book_settled } else { &mut subscribed.is_known };
        let is_news = !std::mem::replace(settled, true);
        (is_news && subscribed.is_known).then_some(watch.security)
    }
}

impl FixEndpoint {
    /// Handles an event for sessions that watch: copies of reports, and market data.
    #[inline]
    pub fn handle_watched_event(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        if self.early.is_some() {
            self.handle_early_session(event);
        }
        self.copy_event(now, shard, event);
        self.handle_market_event(now, event);
    }

    /// Gives an event of a shard to the sessions that have subscribed its security.
    #[inline]
    fn handle_market_event(&mut self, now: Timestamp, event: &Event) {
        if !self.market.securities.is_empty() {
            self.publish_market(now, event);
        }
    }

    fn publish_market(&mut self, now: Timestamp, event: &Event) {
        let FixEndpoint { market, clients, active, .. } = self;
        let Some(security) = market.handle_event(event) else { return };
        let FixMarket { securities, receivers, .. } = market;
        let Some(subscribed) = securities.get(&security) else { return };
        receivers.clear();
        receivers.extend_from_slice(&subscribed.ticks);
        receivers.dedup();
        for number in receivers {
            let Some(client) = client_of(clients, *number) else { continue };
            client.session.handle_market_image(now, &subscribed.image);
            client.queue(*number, active);
        }
    }

    /// Takes what a session begins or ceases to need.
    pub(super) fn apply_market_interests(&mut self, now: Timestamp, number: u16) {
        let FixEndpoint { market, clients, .. } = self;
        let Some(client) = client_of(clients, number) else { return };
        while let Some(interest) = client.session.poll_market_interest() {
            if let Some(image) = market.apply(number, interest) {
                client.session.handle_market_image(now, &image);
            }
        }
    }

    /// Passes on what the sessions begin or cease to need: to the STOMP endpoint, which watches
    /// through the same port, or without one to the shards themselves. Returns their number.
    pub fn pass_market_changes(
        &mut self,
        mut stomp: Option<&mut StompEndpoint>,
        port: Option<&mut PortEnd>,
    ) -> usize {
        let mut passed = 0;
        while let Some((watch, on)) = self.market.changes.pop_first() {
            passed += 1;
            match &mut stomp {
                Some(stomp) => stomp.set_watch_by_fix(watch, on),
                None => self.market_watches.set_by_fix(watch, on),
            }
        }
        if let Some(port) = port {
            self.market_watches.poll(port);
        }
        passed
    }
}
