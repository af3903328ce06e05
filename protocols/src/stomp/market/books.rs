//! Topics whose messages depend on the subscriber: price levels and orders of a book, as a snapshot
//! and updates. A subscriber that has the book before the newest update gets a message that all
//! others share; any other one gets its own.

use pitlane_engine::event::{LevelChanges, OrderChanges};
use pitlane_engine::time::Timestamp;

use super::{MarketDataTail, MarketTopic, MarketTopics, Newest, NewestData};
use crate::sbe;
use crate::stomp::body_format::BodyFormat;
use crate::stomp::depth::DepthHistory;
use crate::stomp::held_updates::BookMessage;
use crate::stomp::order_book::OrderBookHistory;
use crate::stomp::payload::{book_orders, depth};

impl MarketTopic {
    /// Returns the price levels of a depth topic, and the time of the newest.
    fn depth(&self) -> Option<(&DepthHistory, Timestamp)> {
        match &self.newest.as_ref()?.image {
            NewestData::Depth(history) => Some((history, self.at?)),
            NewestData::Tick(_) | NewestData::Book(_) | NewestData::Orders(_) => None,
        }
    }

    /// Returns the orders of a book, and the time of the newest.
    fn orders(&self) -> Option<(&OrderBookHistory, Timestamp)> {
        match &self.newest.as_ref()?.image {
            NewestData::Orders(history) => Some((history, self.at?)),
            NewestData::Tick(_) | NewestData::Book(_) | NewestData::Depth(_) => None,
        }
    }

    /// Returns the message for a subscriber whose book has the sequence number `from`, the number
    /// that it leads to, and its time.
    fn book_message(&self, from: Option<u64>) -> Option<(BookMessage, u64, Timestamp)> {
        if let Some((history, at)) = self.depth() {
            return Some((history.message_since(from)?, history.book().seq(), at));
        }
        let (history, at) = self.orders()?;
        Some((history.message_since(from)?, history.seq(), at))
    }
}

impl MarketTopics {
    /// Returns whether the messages of a topic are a snapshot and updates.
    pub fn has_updates(&self, topic: u32) -> bool {
        let newest = &self.entries[topic as usize].newest;
        matches!(newest, Some(Newest { image: NewestData::Depth(_) | NewestData::Orders(_), .. }))
    }

    /// Takes a part of a message of price levels. Returns whether the message is complete.
    pub fn push_levels(&mut self, topic: u32, part: &LevelChanges) -> bool {
        let newest = &mut self.entries[topic as usize].newest;
        let empty = || Newest { seq: 0, image: NewestData::Depth(Box::default()) };
        match &mut newest.get_or_insert_with(empty).image {
            NewestData::Depth(history) => history.push(part),
            NewestData::Tick(_) | NewestData::Book(_) | NewestData::Orders(_) => false,
        }
    }

    /// Takes a part of a message of orders. Returns whether the message is complete.
    pub fn push_book_orders(&mut self, topic: u32, part: &OrderChanges) -> bool {
        let newest = &mut self.entries[topic as usize].newest;
        let empty = || Newest { seq: 0, image: NewestData::Orders(Box::default()) };
        match &mut newest.get_or_insert_with(empty).image {
            NewestData::Orders(history) => history.push(part),
            NewestData::Tick(_) | NewestData::Book(_) | NewestData::Depth(_) => false,
        }
    }

    /// Applies the price levels or the orders that were received.
    pub fn commit_book(&mut self, topic: u32, at: Timestamp) {
        let entry = &mut self.entries[topic as usize];
        match entry.newest.as_mut().map(|newest| &mut newest.image) {
            Some(NewestData::Depth(history)) => history.commit(at),
            Some(NewestData::Orders(history)) => history.commit(at),
            Some(NewestData::Tick(_) | NewestData::Book(_)) | None => return,
        }
        entry.set_changed(at);
    }

    /// Returns the message of a topic with updates for a subscriber whose book has the sequence
    /// number `from`, but not its head, and the number it leads to. `None`: it misses nothing.
    pub fn book_message(
        &mut self,
        topic: u32,
        from: Option<u64>,
        format: BodyFormat,
    ) -> Option<(&MarketDataTail, u64)> {
        let (message, seq, at) = self.entries[topic as usize].book_message(from)?;
        let is_newest = message == BookMessage::Newest;
        if is_newest && self.entries[topic as usize].tails[format as usize].is_newest {
            return Some((&self.entries[topic as usize].tails[format as usize], seq));
        }
        self.write_book(topic, message, format)?;
        if is_newest {
            self.set_rendered(topic, at, format);
            return Some((&self.entries[topic as usize].tails[format as usize], seq));
        }
        self.merged.render(&self.entries[topic as usize].name, at, (format, &self.body));
        Some((&self.merged, seq))
    }

    /// Returns what a reader whose book has the sequence number `from` misses, as JSON; an update
    /// without changes if it misses nothing. `None`: the book is not known.
    pub fn depth_json(&mut self, topic: u32, from: Option<u64>) -> Option<&[u8]> {
        let (history, _) = self.entries[topic as usize].depth()?;
        let book = history.book();
        let message = history.message_since(from).unwrap_or(BookMessage::Merged(book.seq()));
        book.is_whole().then_some(())?;
        self.write_depth(topic, message, BodyFormat::Json)?;
        Some(&self.body)
    }

    /// Writes the body of a message to the reused buffer.
    fn write_book(&mut self, topic: u32, message: BookMessage, format: BodyFormat) -> Option<()> {
        match self.entries[topic as usize].depth() {
            Some(_) => self.write_depth(topic, message, format),
            None => self.write_orders(topic, message, format),
        }
    }

    fn write_depth(&mut self, topic: u32, message: BookMessage, format: BodyFormat) -> Option<()> {
        let entry = &self.entries[topic as usize];
        let (history, at) = entry.depth()?;
        let seq = history.book().seq();
        let (prev_seq, checksum) = match message {
            BookMessage::Newest => {
                self.net.clear();
                self.net.extend(history.newest_changes());
                (history.prev_seq(), history.newest_checksum(&mut self.text))
            }
            BookMessage::Merged(from) => {
                history.net_changes(from, &mut self.net);
                (from, Some(history.checksum(&mut self.text)))
            }
            BookMessage::Snapshot => (seq, Some(history.checksum(&mut self.text))),
        };
        let (body, fixed, security) = (&mut self.body, &entry.fixed, entry.security);
        let (seqs, changes) = ([prev_seq, seq], self.net.iter().copied());
        body.clear();
        match (message, format) {
            (BookMessage::Snapshot, BodyFormat::Json) => {
                depth::snapshot(body, at, fixed, history.book(), checksum.unwrap_or_default())
            }
            (BookMessage::Snapshot, BodyFormat::Sbe) => {
                sbe::depth_snapshot(body, at, security, history.book(), checksum.unwrap_or_default())
            }
            (BookMessage::Newest | BookMessage::Merged(_), BodyFormat::Json) => {
                depth::update(body, seqs, at, fixed, changes, checksum)
            }
            (BookMessage::Newest | BookMessage::Merged(_), BodyFormat::Sbe) => {
                sbe::depth_update(body, seqs, at, security, changes, checksum)
            }
        }
        Some(())
    }

    fn write_orders(&mut self, topic: u32, message: BookMessage, format: BodyFormat) -> Option<()> {
        let entry = &self.entries[topic as usize];
        let (history, at) = entry.orders()?;
        let prev_seq = history.changes_of(message, &mut self.order_changes);
        let checksum = history.checksum_of(message, &mut self.text);
        let (body, fixed, security) = (&mut self.body, &entry.fixed, entry.security);
        let (seqs, changes) = ([prev_seq, history.seq()], self.order_changes.as_slice());
        body.clear();
        match (message, format) {
            (BookMessage::Snapshot, BodyFormat::Json) => {
                book_orders::snapshot(body, history.seq(), at, fixed, history.book(), checksum)
            }
            (BookMessage::Snapshot, BodyFormat::Sbe) => {
                sbe::orders_snapshot(body, history.seq(), at, security, history.book(), checksum)
            }
            (BookMessage::Newest | BookMessage::Merged(_), BodyFormat::Json) => {
                book_orders::update(body, seqs, at, fixed, changes, checksum)
            }
            (BookMessage::Newest | BookMessage::Merged(_), BodyFormat::Sbe) => {
                sbe::orders_update(body, seqs, at, security, changes, checksum)
            }
        }
        Some(())
    }
}
