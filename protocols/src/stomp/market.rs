//! Market data topics and the newest message of each, which a new subscriber may request first and
//! which a slow one gets when its turn comes. There is one message per topic, shared by all and
//! rendered on first use: an unread message is never rendered.

mod books;

use std::collections::BTreeMap;

use pitlane_engine::event::{Depth, LevelChange, OrderChange, Tick};
use pitlane_engine::id::SecurityId;
use pitlane_engine::index::index_u32;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::bars::SIZES;
use super::body_format::BodyFormat;
use super::depth::DepthHistory;
use super::encode;
use super::frame::Escaping;
use super::index::{Subscriber, SubscriptionIndex};
use super::order_book::OrderBookHistory;
use super::pattern::Pattern;
use super::payload::market_data::{self, BarPayload};
use super::topic::{DEPTH, Naming, ORDERS, Topic};
use crate::sbe;

/// Topics that can exist: ticks, book, depth, orders and bars of each security, so that one more
/// bar never leaves a security without ticks. Each takes about 1 KiB once it has a message; the
/// reference data decide how many there are.
pub const TOPICS_MAX: usize = (SecurityId::MAX as usize + 1) * (4 + SIZES.len());

#[derive(Debug, Default)]
pub struct MarketTopics {
    entries: Vec<MarketTopic>,
    by_name: BTreeMap<String, u32>,
    /// Number + 1 of each security's tick topic, by security.
    ticks: Vec<u32>,
    /// Reused buffers for bodies, texts of checksums and messages of subscribers that are behind.
    body: Vec<u8>,
    text: Vec<u8>,
    net: Vec<LevelChange>,
    order_changes: Vec<OrderChange>,
    merged: MarketDataTail,
    name: Vec<u8>,
}

#[derive(Debug)]
struct MarketTopic {
    name: String,
    security: SecurityId,
    /// Members of the payload that never change.
    fixed: Vec<u8>,
    newest: Option<Newest>,
    /// Time of the newest event.
    at: Option<Timestamp>,
    /// The newest message by the format of its body.
    tails: [MarketDataTail; 2],
    /// Subscribers, as of this generation of the index.
    subscribers: Vec<Subscriber>,
    generation: u64,
}

/// Everything of a message but the subscriber's head.
#[derive(Debug, Default)]
pub struct MarketDataTail {
    bytes: Vec<u8>,
    /// Length of the body, which stands before the last octet.
    body_len: usize,
    at: Timestamp,
    is_newest: bool,
}

impl MarketDataTail {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the body alone.
    pub fn body(&self) -> &[u8] {
        let end = self.bytes.len().saturating_sub(1);
        &self.bytes[end - self.body_len..end]
    }

    /// Returns the time of the event.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    fn render(&mut self, name: &str, at: Timestamp, (format, body): (BodyFormat, &[u8])) {
        self.bytes.clear();
        (self.body_len, self.at) = (body.len(), at);
        let name = [name.as_bytes(), b"".as_slice()];
        // Names of market data topics are plain: numbers, and sizes of bars.
        encode::message_tail(&mut self.bytes, name, at, (format, body), Escaping::None);
    }
}

impl MarketTopic {
    /// Records that there is a newer message.
    fn set_changed(&mut self, at: Timestamp) {
        self.at = Some(at);
        self.tails.iter_mut().for_each(|tail| tail.is_newest = false);
    }
}

#[derive(Debug)]
struct Newest {
    seq: u64,
    image: NewestData,
}

/// Data of the newest message, for rendering later.
#[derive(Debug)]
enum NewestData {
    Tick(Tick),
    /// Bids and asks, boxed because ticks are many and small.
    Book(Box<[Depth; 2]>),
    Depth(Box<DepthHistory>),
    Orders(Box<OrderBookHistory>),
}

/// Source of a topic's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicSource {
    Tick(SecurityId),
    Book(SecurityId),
    Depth(SecurityId),
    BookOrders(SecurityId),
    Bar,
}

impl MarketTopics {
    /// Returns the tick topic of a security, or `None` if no such security can exist.
    pub fn tick_topic(&mut self, security: SecurityId, reference: &RefData) -> Option<u32> {
        let place = security.0 as usize;
        if let Some(topic) = self.ticks.get(place).and_then(|number| number.checked_sub(1)) {
            return Some(topic);
        }
        let topic = self.topic(security, &Topic::Tick(security))?;
        market_data::fixed_members(&mut self.entries[topic as usize].fixed, security, reference);
        if self.ticks.len() <= place {
            self.ticks.resize(place + 1, 0);
        }
        self.ticks[place] = topic + 1;
        Some(topic)
    }

    /// Returns the book topic of a security.
    pub fn book_topic(&mut self, security: SecurityId, reference: &RefData) -> Option<u32> {
        self.fixed_topic(security, &Topic::Book(security), reference)
    }

    /// Returns the depth topic of a security.
    pub fn depth_topic(&mut self, security: SecurityId, reference: &RefData) -> Option<u32> {
        self.fixed_topic(security, &Topic::Depth(security), reference)
    }

    /// Returns the topic of the orders in the book of a security.
    pub fn book_orders_topic(&mut self, security: SecurityId, reference: &RefData) -> Option<u32> {
        self.fixed_topic(security, &Topic::BookOrders(security), reference)
    }

    fn fixed_topic(&mut self, security: SecurityId, topic: &Topic, reference: &RefData) -> Option<u32> {
        let topic = self.topic(security, topic)?;
        let fixed = &mut self.entries[topic as usize].fixed;
        if fixed.is_empty() {
            market_data::fixed_members(fixed, security, reference);
        }
        Some(topic)
    }

    /// Returns the bar topic of a security for one of the [`SIZES`].
    pub fn bar_topic(&mut self, security: SecurityId, size: &str) -> Option<u32> {
        SIZES.iter().find(|(known, _)| *known == size)?;
        self.topic(security, &Topic::Bar { security, size })
    }

    fn topic(&mut self, security: SecurityId, topic: &Topic) -> Option<u32> {
        if security.0 > SecurityId::MAX {
            return None;
        }
        self.name.clear();
        topic.push_name(&Naming::default(), &mut self.name);
        let name = std::str::from_utf8(&self.name).expect("names are made of texts");
        if let Some(&number) = self.by_name.get(name) {
            return Some(number);
        }
        assert!(self.entries.len() < TOPICS_MAX, "there is room for every topic there can be");
        let number = index_u32(self.entries.len());
        self.by_name.insert(name.to_string(), number);
        self.entries.push(MarketTopic {
            name: name.to_string(),
            security,
            fixed: Vec::new(),
            newest: None,
            at: None,
            tails: Default::default(),
            subscribers: Vec::new(),
            generation: 0,
        });
        Some(number)
    }

    pub fn origin(&self, topic: u32) -> TopicSource {
        let MarketTopic { name, security, .. } = &self.entries[topic as usize];
        match name.split('.').next() {
            Some("tick") => TopicSource::Tick(*security),
            Some("book") => TopicSource::Book(*security),
            Some(DEPTH) => TopicSource::Depth(*security),
            Some(ORDERS) => TopicSource::BookOrders(*security),
            Some(_) | None => TopicSource::Bar,
        }
    }

    /// Forgets the newest message of a topic, which may be outdated.
    pub fn forget(&mut self, topic: u32) {
        let entry = &mut self.entries[topic as usize];
        (entry.newest, entry.at, entry.tails) = (None, None, Default::default());
    }

    /// Returns the time of the newest event of a topic, or `None` before the first.
    pub fn at(&self, topic: u32) -> Option<Timestamp> {
        self.entries[topic as usize].at
    }

    /// Returns the newest tick of a security.
    pub fn tick(&self, security: SecurityId) -> Option<&Tick> {
        let topic = self.ticks.get(security.0 as usize)?.checked_sub(1)?;
        match &self.entries[topic as usize].newest.as_ref()?.image {
            NewestData::Tick(tick) => Some(tick),
            NewestData::Book(_) | NewestData::Depth(_) | NewestData::Orders(_) => None,
        }
    }

    /// Returns whether a tick is the newest one of its topic.
    pub fn is_newest_tick(&self, tick: &Tick) -> bool {
        let topic = self.ticks.get(tick.security.0 as usize).and_then(|number| number.checked_sub(1));
        let newest = topic.and_then(|topic| self.entries[topic as usize].newest.as_ref());
        newest.is_some_and(|newest| matches!(&newest.image, NewestData::Tick(known) if known == tick))
    }

    /// Returns whether a book is the newest one of its topic.
    pub fn is_newest_book(&self, topic: u32, sides: &[Depth; 2]) -> bool {
        let newest = self.entries[topic as usize].newest.as_ref();
        newest.is_some_and(|newest| matches!(&newest.image, NewestData::Book(known) if **known == *sides))
    }

    pub fn set_tick(&mut self, topic: u32, seq: u64, at: Timestamp, tick: &Tick) {
        let entry = &mut self.entries[topic as usize];
        let newest = Newest { seq, image: NewestData::Tick(*tick) };
        entry.newest = Some(newest);
        entry.set_changed(at);
    }

    pub fn set_book(&mut self, topic: u32, seq: u64, at: Timestamp, sides: [Depth; 2]) {
        let entry = &mut self.entries[topic as usize];
        match &mut entry.newest {
            Some(Newest { seq: old, image: NewestData::Book(before) }) => (*old, **before) = (seq, sides),
            newest => *newest = Some(Newest { seq, image: NewestData::Book(Box::new(sides)) }),
        }
        entry.set_changed(at);
    }

    pub fn set_bar(
        &mut self,
        topic: u32,
        seq: u64,
        at: Timestamp,
        bar: &BarPayload<'_>,
        reference: &RefData,
    ) {
        self.body.clear();
        market_data::bar(&mut self.body, seq, at, bar, reference);
        self.entries[topic as usize].set_changed(at);
        self.set_rendered(topic, at, BodyFormat::Json);
        self.body.clear();
        sbe::bar(&mut self.body, seq, at, bar);
        self.set_rendered(topic, at, BodyFormat::Sbe);
    }

    /// Returns everything of the newest message but the subscriber's head.
    pub fn tail(&mut self, topic: u32, format: BodyFormat) -> &MarketDataTail {
        let entry = &mut self.entries[topic as usize];
        // Bars are rendered when they are made, and have no newest data.
        if !entry.tails[format as usize].is_newest
            && let (Some(Newest { seq, image }), Some(at)) = (&entry.newest, entry.at)
        {
            let body = &mut self.body;
            body.clear();
            match (image, format) {
                (NewestData::Tick(tick), BodyFormat::Json) => {
                    market_data::tick(body, *seq, at, &entry.fixed, tick)
                }
                (NewestData::Tick(tick), BodyFormat::Sbe) => sbe::tick(body, *seq, at, tick),
                (NewestData::Book(sides), BodyFormat::Json) => {
                    market_data::book(body, *seq, at, &entry.fixed, sides)
                }
                (NewestData::Book(sides), BodyFormat::Sbe) => sbe::book(body, *seq, at, sides),
                // Its messages depend on the subscriber: see `book_message`.
                (NewestData::Depth(_) | NewestData::Orders(_), _) => {
                    return &self.entries[topic as usize].tails[format as usize];
                }
            }
            self.set_rendered(topic, at, format);
        }
        &self.entries[topic as usize].tails[format as usize]
    }

    /// Takes the subscribers of a topic out, so that sessions may use the market meanwhile. It asks
    /// the index only after a change. The caller gives them back.
    pub fn take_subscribers(&mut self, topic: u32, index: &SubscriptionIndex) -> Vec<Subscriber> {
        let entry = &mut self.entries[topic as usize];
        let mut subscribers = std::mem::take(&mut entry.subscribers);
        if entry.generation != index.generation() {
            index.find(&entry.name, &mut subscribers);
            entry.generation = index.generation();
        }
        subscribers
    }

    pub fn give_subscribers(&mut self, topic: u32, subscribers: Vec<Subscriber>) {
        self.entries[topic as usize].subscribers = subscribers;
    }

    /// Finds the topics with a message that a pattern matches, oldest topic first.
    pub fn matching(&self, pattern: &Pattern, found: &mut Vec<u32>) {
        found.clear();
        let has_message = |topic: &u32| self.entries[*topic as usize].at.is_some();
        if pattern.is_exact() {
            let names: Vec<&str> =
                (0..pattern.segments().len()).filter_map(|at| pattern.name_at(at)).collect();
            found.extend(self.by_name.get(&names.join(".")).filter(|topic| has_message(topic)));
            return;
        }
        let all = 0..index_u32(self.entries.len());
        let is_meant = |topic: &u32| pattern.matches(&self.entries[*topic as usize].name);
        found.extend(all.filter(has_message).filter(is_meant));
    }

    fn set_rendered(&mut self, topic: u32, at: Timestamp, format: BodyFormat) {
        let MarketTopic { name, tails, .. } = &mut self.entries[topic as usize];
        let tail = &mut tails[format as usize];
        tail.render(name, at, (format, &self.body));
        tail.is_newest = true;
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::refdata::RefDataRows;

    use super::*;

    fn topics(market: &mut MarketTopics, security: SecurityId) -> Vec<Option<u32>> {
        let reference = RefData::check(RefDataRows::default()).unwrap();
        let bars: Vec<_> = SIZES.iter().map(|(size, _)| market.bar_topic(security, size)).collect();
        let others = [
            market.tick_topic(security, &reference),
            market.book_topic(security, &reference),
            market.depth_topic(security, &reference),
            market.book_orders_topic(security, &reference),
        ];
        others.into_iter().chain(bars).collect()
    }

    #[test]
    fn every_possible_security_has_room_for_its_topics_and_no_others() {
        let mut market = MarketTopics::default();
        let each = TOPICS_MAX / (SecurityId::MAX as usize + 1);
        for security in [0, 1, SecurityId::MAX] {
            let first = topics(&mut market, SecurityId(security));
            assert!(first.len() == each && first.iter().all(Option::is_some), "{first:?}");
            assert_eq!(topics(&mut market, SecurityId(security)), first, "they are found again");
        }
        assert_eq!(topics(&mut market, SecurityId(SecurityId::MAX + 1)), vec![None; each]);
        assert_eq!(market.bar_topic(SecurityId(1), "2s"), None);
        assert_eq!(market.entries.len(), 3 * each);
    }
}
