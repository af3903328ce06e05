//! Begins and ends subscriptions: in the index, in the interests, and with the first messages.

use pitlane_engine::time::Timestamp;

use super::StompBroker;
use crate::stomp::index::Subscriber;
use crate::stomp::market::TopicSource;
use crate::stomp::pattern::Pattern;
use crate::stomp::session::MarketDataOffer;
use crate::stomp::topic::{DEPTH, ORDERS};

impl StompBroker {
    pub(super) fn subscribe(&mut self, now: Timestamp, slot: u32, place: u16, last_value: bool) {
        let Some(connection) = self.connections.at_mut(slot as usize) else { return };
        let Some(pattern) = connection.session.pattern(place) else { return };
        self.index.insert(pattern, Subscriber { session: slot, subscription: place });
        self.market.matching(pattern, &mut self.topics);
        // Market data without a watch is outdated; its shard sends it again once it is watched.
        self.topics.retain(|topic| match self.market.origin(*topic) {
            TopicSource::Tick(security) => {
                self.settings.receives_all_ticks || self.interests.has_ticks(security)
            }
            TopicSource::Book(security) if self.interests.has_depth(security) => true,
            TopicSource::Depth(security) if self.interests.has_levels(security) => true,
            TopicSource::BookOrders(security) if self.interests.has_book_orders(security) => true,
            TopicSource::Book(_) | TopicSource::Depth(_) | TopicSource::BookOrders(_) => {
                self.market.forget(*topic);
                false
            }
            TopicSource::Bar => true,
        });
        self.interests.insert(pattern, &self.settings.naming, &mut self.commands);
        // A topic with updates always begins with what the subscriber misses.
        for &topic in &self.topics {
            if last_value || self.market.has_updates(topic) {
                let image = MarketDataOffer::Image;
                connection.session.offer(now, place, topic, image, &mut self.market);
            }
        }
    }

    pub(super) fn end_subscription(&mut self, pattern: &Pattern, subscriber: Subscriber) {
        self.index.remove(pattern, subscriber);
        self.interests.remove(pattern, &self.settings.naming, &mut self.commands);
        if !matches!(pattern.name_at(0), Some(DEPTH | ORDERS)) {
            return;
        }
        // Books that are not watched any more would only take memory.
        self.market.matching(pattern, &mut self.topics);
        for &topic in &self.topics {
            let is_watched = match self.market.origin(topic) {
                TopicSource::Depth(security) => self.interests.has_levels(security),
                TopicSource::BookOrders(security) => self.interests.has_book_orders(security),
                TopicSource::Tick(_) | TopicSource::Book(_) | TopicSource::Bar => true,
            };
            if !is_watched {
                self.market.forget(topic);
            }
        }
    }
}
