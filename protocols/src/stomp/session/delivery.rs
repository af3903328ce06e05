//! Delivers messages to a session: at once while it keeps up, else through queues. Messages that
//! must not be lost wait in order; of market data only the topic waits, and its newest message is
//! sent when its turn comes.
//!
//! ```text
//! market data ─► window of the subscription ─► slots ─► outbox
//!                (only if requested)           (if the rate or a slow reader demands it)
//! ```

use pitlane_engine::time::Timestamp;

use super::{MarketDataOffer, StompSession, StompState};
use crate::stomp::close_reason::StompCloseReason;
use crate::stomp::market::MarketTopics;
use crate::stomp::rendered::Rendered;
use crate::stomp::slots::TopicSlot;
use crate::stomp::subscription::{MessageId, QueuedMessage, Subscription};
use crate::stomp::topic::Naming;

impl StompSession {
    /// Delivers a message that must not be lost, unless the user may not see its strategy.
    pub fn deliver(
        &mut self,
        now: Timestamp,
        place: u16,
        strategy: Option<&str>,
        rendered: &mut Rendered,
        naming: &Naming,
    ) {
        let is_hidden = strategy.is_some_and(|strategy| !self.access.sees(strategy));
        if self.state != StompState::Connected || is_hidden {
            return;
        }
        let is_open = self.is_below_mark() && self.backlog_queue.is_empty();
        self.note_output_start(now);
        let Some(Some(subscription)) = self.subscriptions.get_mut(place as usize) else { return };
        let tail = rendered.tail(subscription.variant, naming);
        if is_open && subscription.backlog.is_empty() && subscription.has_room() {
            self.messages += 1;
            self.counters.messages += 1;
            subscription.encode(&mut self.outbox, self.messages, tail.bytes());
            return self.update_queues(place);
        }
        let bytes = self.backlog_bytes + tail.bytes().len();
        if self.backlog == self.limits.backlog_max || bytes > self.limits.backlog_bytes_max {
            return self.fail(now, StompCloseReason::SlowConsumer, None);
        }
        self.turns += 1;
        subscription.backlog.push_back(QueuedMessage { turn: self.turns, tail: tail.share() });
        self.backlog += 1;
        self.backlog_bytes = bytes;
        self.update_queues(place);
    }

    /// Delivers market data of a topic, whose newest message the market holds. A rare event is sent
    /// at once, unless the client has requested conflation.
    pub fn offer(
        &mut self,
        now: Timestamp,
        place: u16,
        topic: u32,
        offer: MarketDataOffer,
        market: &mut MarketTopics,
    ) {
        if self.state != StompState::Connected {
            return;
        }
        let is_due = self.interval.is_some_and(|interval| self.pace.due(interval) <= now);
        let is_window_over = self.windows.first().is_some_and(|(until, _)| *until <= now);
        if is_window_over || is_due && !self.slots_queue.is_empty() {
            // Waiting topics go first.
            self.send_waiting(now, market);
        }
        let is_below_mark = self.is_below_mark();
        let Some(Some(subscription)) = self.subscriptions.get_mut(place as usize) else { return };
        if subscription.is_waiting(topic) {
            self.counters.conflated += 1;
            return;
        }
        if let Some(conflation) = &mut subscription.conflation {
            if !conflation.is_open(now) {
                conflation.begin(now);
            } else if offer != MarketDataOffer::Image {
                return self.hold(now, place, topic);
            }
        }
        let is_rare = offer == MarketDataOffer::RareEvent;
        let is_open = is_below_mark && subscription.has_room();
        let is_turn = match self.interval {
            None => self.slots_queue.is_empty(),
            Some(interval) => is_rare || self.slots_queue.is_empty() && self.pace.due(interval) <= now,
        };
        if !is_open || !is_turn {
            return self.wait(now, place, topic);
        }
        self.send_market_data(now, place, topic, is_rare, market);
        self.update_queues(place);
    }

    /// Sends the waiting message of a topic before a rare event replaces it.
    pub fn flush_topic(&mut self, now: Timestamp, place: u16, topic: u32, market: &mut MarketTopics) {
        if self.interval.is_none() || self.state != StompState::Connected || !self.is_below_mark() {
            return;
        }
        let Some(Some(subscription)) = self.subscriptions.get_mut(place as usize) else { return };
        let is_separate = subscription.conflation.is_none();
        if is_separate && subscription.has_room() && subscription.slots.remove(topic) {
            self.slots -= 1;
            self.send_market_data(now, place, topic, true, market);
            self.update_queues(place);
        }
    }

    /// Sends waiting messages that may go, first those that must not be lost.
    pub fn send_waiting(&mut self, now: Timestamp, market: &mut MarketTopics) {
        if self.state != StompState::Connected {
            return;
        }
        self.release_windows(now);
        // The loop ends at the mark, so a turn is bounded.
        while self.is_below_mark() {
            if let Some(&(_, place)) = self.backlog_queue.first() {
                self.send_backlog(now, place);
            } else if !self.slots_queue.is_empty() {
                let place = match self.interval {
                    Some(interval) if self.pace.due(interval) > now => return,
                    Some(_) => self.slots_queue.next_turn(),
                    None => self.slots_queue.first(),
                };
                let Some(place) = place else { return };
                let slot = self.subscription(place).and_then(|subscription| subscription.slots.pop());
                let slot = slot.expect("a queued subscription has something to send");
                self.slots -= 1;
                self.send_market_data(now, place, slot.topic, false, market);
                self.update_queues(place);
            } else {
                return;
            }
        }
    }

    /// Returns when waiting market data may be sent, if it waits only for time.
    pub(super) fn next_send_at(&self) -> Option<Timestamp> {
        let interval = self.interval.filter(|_| !self.slots_queue.is_empty() && self.is_below_mark());
        let due = interval.map(|interval| self.pace.due(interval));
        let window = self.windows.first().map(|(until, _)| *until);
        [due, window].into_iter().flatten().min()
    }

    /// Sets another rate, or none.
    pub fn set_interval(&mut self, interval: Option<u64>) {
        self.interval = interval;
        self.pace.change(interval.unwrap_or(0));
    }

    pub(super) fn take_acknowledgement(&mut self, message: MessageId) {
        if let Some(subscription) = self.subscription(message.place) {
            subscription.acknowledge(message.number);
            self.update_queues(message.place);
        }
    }

    /// Removes a subscription and its waiting messages.
    pub(super) fn forget(&mut self, place: u16, removed: &Subscription) {
        if let Some(turn) = removed.backlog_turn {
            self.backlog_queue.remove(&(turn, place));
        }
        if let Some(turn) = removed.slots_turn {
            self.slots_queue.remove(removed.is_named, turn, place);
        }
        if let Some(conflation) = &removed.conflation {
            self.windows.remove(&(conflation.until(), place));
        }
        self.deliveries.forget(place);
        self.backlog -= removed.backlog.len();
        self.backlog_bytes -= removed.backlog.iter().map(|waiting| waiting.tail.len()).sum::<usize>();
        self.slots -= removed.waiting_topics();
    }

    fn wait(&mut self, now: Timestamp, place: u16, topic: u32) {
        if self.slots == self.limits.slots_max {
            return self.fail(now, StompCloseReason::SlowConsumer, None);
        }
        self.slots += 1;
        self.queue_topic(now, place, topic);
        self.update_queues(place);
    }

    /// Puts a topic in the queue of its subscription: in a throttled session by its last delivery,
    /// else at the end.
    fn queue_topic(&mut self, now: Timestamp, place: u16, topic: u32) {
        if self.slots_queue.is_empty() {
            self.pace.wait(now);
        }
        let turn = match self.interval {
            Some(_) => self.deliveries.last(place, topic),
            None => {
                self.turns += 1;
                self.turns
            }
        };
        if let Some(subscription) = self.subscription(place) {
            subscription.slots.push(TopicSlot { turn, topic });
        }
    }

    /// Holds a topic until the end of its subscription's window.
    fn hold(&mut self, now: Timestamp, place: u16, topic: u32) {
        if self.slots == self.limits.slots_max {
            return self.fail(now, StompCloseReason::SlowConsumer, None);
        }
        let Some(Some(subscription)) = self.subscriptions.get_mut(place as usize) else { return };
        let Some(conflation) = &mut subscription.conflation else { return };
        conflation.hold(topic);
        self.slots += 1;
        self.windows.insert((conflation.until(), place));
    }

    /// Queues the topics of every window that is over, and begins the next window.
    fn release_windows(&mut self, now: Timestamp) {
        while let Some(&(until, place)) = self.windows.first().filter(|(until, _)| *until <= now) {
            self.windows.remove(&(until, place));
            while let Some(topic) = self.release_topic(place) {
                self.queue_topic(now, place, topic);
            }
            if let Some(conflation) = self.subscription(place).and_then(|of| of.conflation.as_mut()) {
                conflation.begin(now);
            }
            self.update_queues(place);
        }
    }

    fn release_topic(&mut self, place: u16) -> Option<u32> {
        self.subscription(place)?.conflation.as_mut()?.release()
    }

    fn send_market_data(
        &mut self,
        now: Timestamp,
        place: u16,
        topic: u32,
        is_rare: bool,
        market: &mut MarketTopics,
    ) {
        self.note_output_start(now);
        let Some(Some(subscription)) = self.subscriptions.get_mut(place as usize) else { return };
        let format = subscription.request.format;
        let tail = if market.has_updates(topic) {
            let from = subscription.book_seq(topic);
            let Some((tail, seq)) = market.book_message(topic, from, format) else { return };
            subscription.set_book_seq(topic, seq);
            tail
        } else {
            market.tail(topic, format)
        };
        let took_number = subscription.encode_market_data(&mut self.outbox, self.messages + 1, tail);
        self.messages += u64::from(took_number);
        self.counters.messages += 1;
        let Some(interval) = self.interval else { return };
        self.turns += 1;
        self.deliveries.record(place, topic, self.turns);
        if is_rare {
            self.pace.rare(now, interval);
        } else {
            self.pace.turn(now, interval);
        }
    }

    fn send_backlog(&mut self, now: Timestamp, place: u16) {
        self.note_output_start(now);
        let Some(Some(subscription)) = self.subscriptions.get_mut(place as usize) else { return };
        let waiting = subscription.backlog.pop_front().expect("a queued subscription has something to send");
        self.messages += 1;
        self.counters.messages += 1;
        subscription.encode(&mut self.outbox, self.messages, &waiting.tail);
        self.backlog -= 1;
        self.backlog_bytes -= waiting.tail.len();
        self.update_queues(place);
    }

    /// Puts a subscription at its place in both queues: under the turn of its first message, if its
    /// window is open.
    fn update_queues(&mut self, place: u16) {
        let Some(Some(subscription)) = self.subscriptions.get_mut(place as usize) else { return };
        let is_open = subscription.has_room();
        let first = subscription.backlog.front().map(|waiting| waiting.turn).filter(|_| is_open);
        if first != subscription.backlog_turn {
            let old = std::mem::replace(&mut subscription.backlog_turn, first);
            old.map(|turn| self.backlog_queue.remove(&(turn, place)));
            first.map(|turn| self.backlog_queue.insert((turn, place)));
        }
        let first = subscription.slots.front().map(|slot| slot.turn).filter(|_| is_open);
        if first != subscription.slots_turn {
            let old = std::mem::replace(&mut subscription.slots_turn, first);
            let is_named = subscription.is_named;
            old.into_iter().for_each(|turn| self.slots_queue.remove(is_named, turn, place));
            first.into_iter().for_each(|turn| self.slots_queue.insert(is_named, turn, place));
        }
    }

    fn is_below_mark(&self) -> bool {
        self.outbox.pending() < self.limits.mark_bytes
    }
}
