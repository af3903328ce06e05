//! Events that the subscriptions of a thread need, so that shards send it no others.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::id::SecurityId;

use super::BrokerCommand;
use crate::stomp::pattern::Pattern;
use crate::stomp::topic::{DEPTH, Naming, ORDERS, TRADE, TopicKind, kind_of_family};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interest {
    /// Ticks of one security.
    Ticks(SecurityId),
    AllTicks,
    /// The book of one security.
    Depth(SecurityId),
    AllDepths,
    /// Price levels of one security.
    Levels(SecurityId),
    AllLevels,
    /// Orders in the book of one security.
    BookOrders(SecurityId),
    AllBookOrders,
    /// Trades of one security.
    Trades(SecurityId),
    AllTrades,
    /// Orders, positions, cash and the system.
    Rest,
}

/// First segments of topics.
const BAR: &str = "bar";
const POSITION: &str = "position";

/// Number of subscriptions for each interest.
#[derive(Debug, Default)]
pub(super) struct Interests {
    counts: BTreeMap<Interest, u32>,
    /// Subscriptions that name bars. A subscription to everything gets the bars that are made
    /// anyway.
    bars: u32,
}

impl Interests {
    /// Returns whether bars must be made.
    pub(super) fn wants_bars(&self) -> bool {
        self.bars > 0
    }

    /// Returns whether this broker gets ticks of a security.
    pub(super) fn has_ticks(&self, security: SecurityId) -> bool {
        self.has_any([Interest::AllTicks, Interest::Ticks(security)])
    }

    /// Returns whether this broker gets the book of a security.
    pub(super) fn has_depth(&self, security: SecurityId) -> bool {
        self.has_any([Interest::AllDepths, Interest::Depth(security)])
    }

    /// Returns whether this broker gets the price levels of a security.
    pub(super) fn has_levels(&self, security: SecurityId) -> bool {
        self.has_any([Interest::AllLevels, Interest::Levels(security)])
    }

    /// Returns whether this broker gets the orders in the book of a security.
    pub(super) fn has_book_orders(&self, security: SecurityId) -> bool {
        self.has_any([Interest::AllBookOrders, Interest::BookOrders(security)])
    }

    fn has_any(&self, interests: [Interest; 2]) -> bool {
        interests.iter().any(|interest| self.counts.contains_key(interest))
    }

    /// Counts one subscription more or less. Returns whether it is the first, or was the last.
    pub(super) fn count(&mut self, interest: Interest, on: bool) -> bool {
        let count = self.counts.entry(interest).or_default();
        *count = if on { *count + 1 } else { count.saturating_sub(1) };
        let is_over = *count == 0;
        let is_first = on && *count == 1;
        if is_over {
            self.counts.remove(&interest);
        }
        is_first || is_over
    }

    pub(super) fn insert(
        &mut self,
        pattern: &Pattern,
        naming: &Naming,
        commands: &mut VecDeque<BrokerCommand>,
    ) {
        self.bars += u32::from(pattern.name_at(0) == Some(BAR));
        for interest in of(pattern, naming).into_iter().flatten() {
            if self.count(interest, true) {
                commands.push_back(BrokerCommand::Watch { interest, on: true });
            }
        }
    }

    pub(super) fn remove(
        &mut self,
        pattern: &Pattern,
        naming: &Naming,
        commands: &mut VecDeque<BrokerCommand>,
    ) {
        self.bars -= u32::from(pattern.name_at(0) == Some(BAR));
        for interest in of(pattern, naming).into_iter().flatten() {
            if self.count(interest, false) {
                commands.push_back(BrokerCommand::Watch { interest, on: false });
            }
        }
    }
}

/// Returns the interests of a pattern. One that begins with a wildcard may need three. Price
/// levels, orders of books and trades must be named: a subscription to everything gets those that
/// others have requested.
fn of(pattern: &Pattern, naming: &Naming) -> [Option<Interest>; 3] {
    // Index of the security in a topic: `tick.42`, `position.PAIRS.42`.
    let at = if pattern.name_at(0) == Some(POSITION) { 2 } else { 1 };
    let names_it = pattern.segments().len() > at;
    let of_security = |one: fn(SecurityId) -> Interest, all: Interest| match pattern.name_at(at).map(security)
    {
        Some(Some(id)) => Some(one(id)),
        None if names_it || pattern.below() => Some(all),
        Some(None) | None => None,
    };
    let ticks = of_security(Interest::Ticks, Interest::AllTicks);
    let depth = of_security(Interest::Depth, Interest::AllDepths);
    match pattern.name_at(0) {
        None => [ticks, depth, Some(Interest::Rest)],
        // Bars are made from ticks.
        Some("tick" | BAR) => [ticks, None, None],
        Some("book") => [None, depth, None],
        Some(DEPTH) => [of_security(Interest::Levels, Interest::AllLevels), None, None],
        Some(ORDERS) => [of_security(Interest::BookOrders, Interest::AllBookOrders), None, None],
        Some(TRADE) => [of_security(Interest::Trades, Interest::AllTrades), None, None],
        // Positions are valued at market prices.
        Some(POSITION) => [ticks, None, Some(Interest::Rest)],
        Some(first) => match kind_of_family(first, naming) {
            Some(TopicKind::MarketData) | None => [None, None, None],
            Some(TopicKind::Order | TopicKind::System) => [None, None, Some(Interest::Rest)],
        },
    }
}

fn security(name: &str) -> Option<SecurityId> {
    let is_number = name.bytes().all(|b| b.is_ascii_digit()) && (name == "0" || !name.starts_with('0'));
    let id: u32 = name.parse().ok().filter(|_| is_number)?;
    (id <= SecurityId::MAX).then_some(SecurityId(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_needs_the_events_of_its_topics() {
        let naming = Naming::default();
        let (one, all) = (Some(Interest::Ticks(SecurityId(42))), Some(Interest::AllTicks));
        let (book, books) = (Some(Interest::Depth(SecurityId(42))), Some(Interest::AllDepths));
        let (levels, all_levels) = (Some(Interest::Levels(SecurityId(42))), Some(Interest::AllLevels));
        let rest = Some(Interest::Rest);
        for (text, needs) in [
            ("tick.42", [one, None, None]),
            ("tick.042", [None, None, None]),
            ("tick.*", [all, None, None]),
            ("tick.>", [all, None, None]),
            ("tick", [None, None, None]),
            ("tick.x", [None, None, None]),
            ("bar.42.1m", [one, None, None]),
            ("bar.*.1m", [all, None, None]),
            ("book.42", [None, book, None]),
            ("book.*", [None, books, None]),
            ("depth.42", [levels, None, None]),
            ("depth.>", [all_levels, None, None]),
            ("orders.42.book", [Some(Interest::BookOrders(SecurityId(42))), None, None]),
            ("orders.*.book", [Some(Interest::AllBookOrders), None, None]),
            ("orders.x.book", [None, None, None]),
            ("trade.42", [Some(Interest::Trades(SecurityId(42))), None, None]),
            ("trade.*", [Some(Interest::AllTrades), None, None]),
            ("depth.x", [None, None, None]),
            ("pitlane.>", [None, None, rest]),
            ("the service.A.*", [None, None, rest]),
            ("position.A.42", [one, None, rest]),
            ("position.A.*", [all, None, rest]),
            ("position.>", [all, None, rest]),
            ("position.A", [None, None, rest]),
            ("*.42", [one, book, rest]),
            (">", [all, books, rest]),
            ("nonsense.1", [None, None, None]),
        ] {
            let pattern = Pattern::parse(&format!("/topic/{text}"), &naming).unwrap();
            assert_eq!(of(&pattern, &naming), needs, "{text}");
        }
    }

    #[test]
    fn the_first_subscription_starts_and_the_last_stops_a_watch() {
        let (naming, mut interests, mut commands) =
            (Naming::default(), Interests::default(), VecDeque::new());
        let pattern = Pattern::parse("/topic/tick.1", &naming).unwrap();
        for _ in 0..3 {
            interests.insert(&pattern, &naming, &mut commands);
        }
        assert_eq!(commands.len(), 1);
        for _ in 0..3 {
            interests.remove(&pattern, &naming, &mut commands);
        }
        let interest = Interest::Ticks(SecurityId(1));
        assert_eq!(commands.pop_back(), Some(BrokerCommand::Watch { interest, on: false }));
        assert_eq!(commands.len(), 1);
    }
}
