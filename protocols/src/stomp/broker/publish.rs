//! Delivers messages to their subscribers.

use pitlane_engine::event::{Depth, Event, EventKind, LevelChanges, MarketTrade, OrderChanges, Tick};
use pitlane_engine::id::ShardId;
use pitlane_engine::terms::Side;
use pitlane_engine::time::Timestamp;

use super::StompBroker;
use crate::sbe;
use crate::stomp::body_format::BodyFormat;
use crate::stomp::index::Subscriber;
use crate::stomp::market::MarketTopics;
use crate::stomp::payload::EventStamp;
use crate::stomp::payload::market_data::{self, BarPayload};
use crate::stomp::payload::system::{self, ExternalSessionState, LogEventPayload, LogLevel};
use crate::stomp::session::MarketDataOffer;
use crate::stomp::topic::Topic;

impl StompBroker {
    /// Publishes a tick of a shard; `now` is the current time and `at` the time of the event.
    pub fn publish_tick(&mut self, now: Timestamp, seq: u64, at: Timestamp, tick: &Tick) {
        if self.interests.wants_bars() {
            self.publish_bars_update(at);
            self.bars.handle_tick(at, tick);
        } else if !self.bars.is_empty() {
            self.bars.clear();
        }
        let Some(topic) = self.market.tick_topic(tick.security, &self.reference) else { return };
        self.publish_market_data(now, at, topic, |market| market.set_tick(topic, seq, at, tick));
    }

    /// Returns whether an event has the newest tick or book of its security once more, so that it
    /// is no news to subscribers.
    pub fn repeats_newest(&mut self, shard: ShardId, event: &Event) -> bool {
        if let EventKind::Tick(tick) = &event.body {
            return self.market.is_newest_tick(tick);
        }
        let EventKind::Depth(asks) = &event.body else { return false };
        let bids = self.bids.get(&shard).filter(|bids| bids.security == asks.security);
        let Some(bids) = bids.copied().filter(|_| asks.side == Side::Sell) else { return false };
        let topic = self.market.book_topic(asks.security, &self.reference);
        topic.is_some_and(|topic| self.market.is_newest_book(topic, &[bids, *asks]))
    }

    /// Publishes bars whose interval has ended.
    pub(super) fn publish_bars_update(&mut self, now: Timestamp) {
        while let Some(bar) = self.bars.poll(now) {
            self.publish_bar(now, now, &bar);
        }
    }

    /// Publishes a book. The bids wait for the asks, which come next from the same shard.
    pub(super) fn publish_depth_update(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        stamp: EventStamp,
        depth: &Depth,
    ) {
        if depth.side == Side::Buy {
            self.bids.insert(shard, *depth);
            return;
        }
        let Some(bids) = self.bids.get(&shard).filter(|bids| bids.security == depth.security) else { return };
        let sides = [*bids, *depth];
        let Some(topic) = self.market.book_topic(depth.security, &self.reference) else { return };
        let EventStamp { seq, at } = stamp;
        self.publish_market_data(now, at, topic, |market| market.set_book(topic, seq, at, sides));
    }

    /// Publishes price levels once all parts of their message are here.
    pub(super) fn publish_levels_update(&mut self, now: Timestamp, stamp: EventStamp, part: &LevelChanges) {
        let Some(topic) = self.market.depth_topic(part.security, &self.reference) else { return };
        if self.market.push_levels(topic, part) {
            let at = stamp.at;
            self.publish_market_data(now, at, topic, |market| market.commit_book(topic, at));
        }
    }

    /// Publishes orders of a book once all parts of their message are here.
    pub(super) fn publish_book_orders_update(
        &mut self,
        now: Timestamp,
        stamp: EventStamp,
        part: &OrderChanges,
    ) {
        let Some(topic) = self.market.book_orders_topic(part.security, &self.reference) else { return };
        if self.market.push_book_orders(topic, part) {
            let at = stamp.at;
            self.publish_market_data(now, at, topic, |market| market.commit_book(topic, at));
        }
    }

    pub(super) fn publish_trade(&mut self, now: Timestamp, stamp: EventStamp, trade: &MarketTrade) {
        let reference = self.reference.clone();
        self.publish_forms(
            now,
            &Topic::Trade(trade.security),
            stamp.at,
            |out| market_data::trade(out, stamp, trade, &reference),
            |out| sbe::trade(out, stamp, trade),
        );
    }

    pub fn publish_bar(&mut self, now: Timestamp, at: Timestamp, bar: &BarPayload<'_>) {
        let Some(topic) = self.market.bar_topic(bar.security, bar.size) else { return };
        let (seq, reference) = (self.next_seq(), self.reference.clone());
        self.publish_market_data(now, at, topic, |market| market.set_bar(topic, seq, at, bar, &reference));
    }

    /// Publishes the state of an external session: an adapter or a FIX client.
    pub fn publish_session(&mut self, now: Timestamp, name: &str, link: ExternalSessionState) {
        let stamp = EventStamp { seq: self.next_seq(), at: now };
        self.publish(now, &Topic::Session(name), stamp.at, |out| system::session(out, stamp, name, link));
    }

    /// Publishes a warning or an error that was logged at a time.
    pub fn publish_log_event(&mut self, now: Timestamp, at: Timestamp, event: &LogEventPayload<'_>) {
        let stamp = EventStamp { seq: self.next_seq(), at };
        let topic = Topic::LogEvent(event.level.segment());
        self.publish(now, &topic, stamp.at, |out| system::log_event(out, stamp, event));
    }

    /// Publishes a generic event. `data` is JSON: it came by [`super::BrokerCommand::Generic`] of
    /// some thread, or was made by us.
    pub fn publish_generic_event(&mut self, now: Timestamp, name: &str, data: &[u8]) {
        let stamp = EventStamp { seq: self.next_seq(), at: now };
        let topic = Topic::GenericEvent(name);
        self.publish(now, &topic, stamp.at, |out| system::generic_event(out, stamp, name, data));
    }

    pub(super) fn warn(&mut self, now: Timestamp, message: &str, fields: &[(&str, &str)]) {
        let event = LogEventPayload { level: LogLevel::Warn, logger: "ledger", message, fields };
        self.publish_log_event(now, now, &event);
    }

    /// Publishes a message that must not be lost. Its body is written once, and only if there are
    /// subscribers.
    pub(super) fn publish(
        &mut self,
        now: Timestamp,
        topic: &Topic<'_>,
        at: Timestamp,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.publish_forms(now, topic, at, write, |_| {});
    }

    /// Does the same for a topic with binary bodies, which are written only if a subscriber wants
    /// them.
    pub(super) fn publish_forms(
        &mut self,
        now: Timestamp,
        topic: &Topic<'_>,
        at: Timestamp,
        write: impl FnOnce(&mut Vec<u8>),
        write_binary: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.index.is_empty() {
            return;
        }
        self.rendered.begin(topic, &self.settings.naming, at);
        let mut found = std::mem::take(&mut self.found);
        self.index.find(self.rendered.name(), &mut found);
        if !found.is_empty() {
            write(self.rendered.body());
        }
        if found.iter().any(|subscriber| self.wants_binary(subscriber)) {
            write_binary(self.rendered.binary_body());
        }
        let strategy = topic.guarded_strategy();
        for subscriber in &found {
            let slot = subscriber.session;
            let Some(connection) = self.connections.at_mut(slot as usize) else { continue };
            let place = subscriber.subscription;
            connection.session.deliver(now, place, strategy, &mut self.rendered, &self.settings.naming);
            if connection.is_settled() {
                self.account(slot);
            } else {
                self.settle(now, slot);
            }
        }
        self.found = found;
        self.enforce_memory_limit(now);
    }

    fn wants_binary(&self, subscriber: &Subscriber) -> bool {
        let connection = self.connections.at(subscriber.session as usize);
        connection.is_some_and(|connection| {
            connection.session.body_format(subscriber.subscription) == BodyFormat::Sbe
        })
    }

    /// Publishes market data: `set` makes it the newest of its topic. A rare event does not replace
    /// a waiting one.
    fn publish_market_data(
        &mut self,
        now: Timestamp,
        at: Timestamp,
        topic: u32,
        set: impl FnOnce(&mut MarketTopics),
    ) {
        let subscribers = self.market.take_subscribers(topic, &self.index);
        let is_rare = self.settings.throttle.is_rare(self.market.at(topic), at);
        if is_rare {
            for subscriber in &subscribers {
                let Some(connection) = self.connections.at_mut(subscriber.session as usize) else {
                    continue;
                };
                connection.session.flush_topic(now, subscriber.subscription, topic, &mut self.market);
            }
        }
        set(&mut self.market);
        let offer = if is_rare { MarketDataOffer::RareEvent } else { MarketDataOffer::Event };
        for subscriber in &subscribers {
            let slot = subscriber.session;
            let Some(connection) = self.connections.at_mut(slot as usize) else { continue };
            connection.session.offer(now, subscriber.subscription, topic, offer, &mut self.market);
            if connection.is_settled() {
                self.account(slot);
            } else {
                self.settle(now, slot);
            }
        }
        self.market.give_subscribers(topic, subscribers);
        self.enforce_memory_limit(now);
    }

    pub(super) fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }
}
