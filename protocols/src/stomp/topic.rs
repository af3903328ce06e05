//! Topics as types. Their names exist only on the wire: segments separated by dots, in which
//! characters with a meaning are encoded.

use std::borrow::Cow;

use pitlane_engine::id::{Currency, IntId, SecurityId};
use pitlane_engine::index::index_u8;

/// Topic of a message. Names of strategies come from the reference data, which permit no dot, `*`
/// or `>` in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic<'a> {
    Tick(SecurityId),
    Book(SecurityId),
    /// Price levels as a snapshot and updates.
    Depth(SecurityId),
    /// Orders of a book as a snapshot and updates.
    BookOrders(SecurityId),
    /// Each trade of the market.
    Trade(SecurityId),
    /// Trading session and halts.
    SecurityStatus(SecurityId),
    Bar {
        security: SecurityId,
        /// `1s`, `1m`, …
        size: &'a str,
    },
    /// Status updates of one order. The first segment is the platform's name, see [`Naming`].
    OrderStatus {
        strategy: &'a str,
        order: IntId,
    },
    Order {
        strategy: &'a str,
        order: IntId,
    },
    Position {
        strategy: &'a str,
        security: SecurityId,
    },
    Transaction {
        strategy: &'a str,
    },
    CashBalance {
        strategy: &'a str,
        currency: Currency,
    },
    Subscription {
        strategy: &'a str,
        security: SecurityId,
    },
    Session(&'a str),
    Lifecycle {
        strategy: &'a str,
    },
    LogEvent(&'a str),
    GenericEvent(&'a str),
}

/// Delivery rule of a topic's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopicKind {
    /// Only the newest counts: conflated for slow consumers, throttled over WebSocket.
    MarketData,
    /// Never dropped; visible only to users who may see the strategy.
    Order,
    /// Never dropped: trades, and what concerns the whole system.
    System,
}

/// First segments of the order status topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    prefix: String,
    aliases: Vec<String>,
}

/// Aliases for the order status topics, more than any installation has.
pub const ALIASES_MAX: usize = 8;

/// Why names for the order status topics are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamingError {
    /// Empty, or with a dot, `*`, `>`, a slash or a control character.
    NotASegment,
    /// The first segment of another topic, or a repeated name.
    Taken,
    TooMany,
}

/// First segment of the depth topics.
pub const DEPTH: &str = "depth";
/// First segment of the topics of the orders in a book, and their last.
pub const ORDERS: &str = "orders";
const BOOK_OF_ORDERS: &str = "book";
/// First segment of the topics of trades.
pub const TRADE: &str = "trade";
/// First segment of the topics of the trading status.
const STATUS: &str = "status";

/// First segments of all other topics.
pub const FAMILIES: [&str; 16] = [
    "tick",
    "book",
    DEPTH,
    ORDERS,
    TRADE,
    STATUS,
    "bar",
    "order",
    "position",
    "transaction",
    "cash-balance",
    "subscription",
    "session",
    "lifecycle",
    "log-event",
    "generic-event",
];

impl Naming {
    pub fn new(prefix: &str, aliases: &[&str]) -> Result<Naming, NamingError> {
        if aliases.len() > ALIASES_MAX {
            return Err(NamingError::TooMany);
        }
        let all: Vec<&str> = std::iter::once(prefix).chain(aliases.iter().copied()).collect();
        for (at, name) in all.iter().enumerate() {
            if name.is_empty() || name.contains(['.', '*', '>', '/']) || name.contains(char::is_control) {
                return Err(NamingError::NotASegment);
            }
            if FAMILIES.contains(name) || all[..at].contains(name) {
                return Err(NamingError::Taken);
            }
        }
        let aliases = aliases.iter().map(|alias| alias.to_string()).collect();
        Ok(Naming { prefix: prefix.to_string(), aliases })
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn alias(&self, number: u8) -> Option<&str> {
        self.aliases.get(number as usize).map(String::as_str)
    }

    /// Returns the index of an alias.
    pub fn alias_of(&self, segment: &str) -> Option<u8> {
        self.aliases.iter().position(|alias| alias == segment).map(index_u8)
    }
}

impl Default for Naming {
    fn default() -> Naming {
        // The specification writes the platform's name as `the service`.
        Naming { prefix: "pitlane".to_string(), aliases: vec!["the service".to_string()] }
    }
}

impl Topic<'_> {
    pub fn kind(&self) -> TopicKind {
        match self {
            Topic::Tick(_) | Topic::Book(_) | Topic::Depth(_) | Topic::BookOrders(_) | Topic::Bar { .. } => {
                TopicKind::MarketData
            }
            Topic::OrderStatus { .. }
            | Topic::Order { .. }
            | Topic::Position { .. }
            | Topic::Transaction { .. }
            | Topic::CashBalance { .. } => TopicKind::Order,
            Topic::Trade(_)
            | Topic::SecurityStatus(_)
            | Topic::Subscription { .. }
            | Topic::Session(_)
            | Topic::Lifecycle { .. }
            | Topic::LogEvent(_)
            | Topic::GenericEvent(_) => TopicKind::System,
        }
    }

    /// Returns the strategy of a topic that only some users may see.
    pub fn guarded_strategy(&self) -> Option<&str> {
        match *self {
            Topic::OrderStatus { strategy, .. }
            | Topic::Order { strategy, .. }
            | Topic::Position { strategy, .. }
            | Topic::Transaction { strategy }
            | Topic::CashBalance { strategy, .. } => Some(strategy),
            Topic::Tick(_)
            | Topic::Book(_)
            | Topic::Depth(_)
            | Topic::BookOrders(_)
            | Topic::Trade(_)
            | Topic::SecurityStatus(_)
            | Topic::Bar { .. }
            | Topic::Subscription { .. }
            | Topic::Session(_)
            | Topic::Lifecycle { .. }
            | Topic::LogEvent(_)
            | Topic::GenericEvent(_) => None,
        }
    }

    /// Appends the name without `/topic/`.
    pub fn push_name(&self, naming: &Naming, out: &mut Vec<u8>) {
        self.push_name_after(self.family(naming), out);
    }

    /// Appends the name with another first segment.
    pub fn push_name_after(&self, first: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(first.as_bytes());
        match *self {
            Topic::Tick(security)
            | Topic::Book(security)
            | Topic::Depth(security)
            | Topic::Trade(security)
            | Topic::SecurityStatus(security) => push_number(out, security),
            Topic::BookOrders(security) => {
                push_number(out, security);
                push_segment(out, BOOK_OF_ORDERS);
            }
            Topic::Bar { security, size } => {
                push_number(out, security);
                push_segment(out, size);
            }
            Topic::OrderStatus { strategy, ref order } | Topic::Order { strategy, ref order } => {
                push_segment(out, strategy);
                push_segment(out, order.as_str());
            }
            Topic::Position { strategy, security } | Topic::Subscription { strategy, security } => {
                push_segment(out, strategy);
                push_number(out, security);
            }
            Topic::CashBalance { strategy, currency } => {
                push_segment(out, strategy);
                push_segment(out, currency.as_str());
            }
            Topic::Transaction { strategy } | Topic::Lifecycle { strategy } => push_segment(out, strategy),
            Topic::Session(name) | Topic::LogEvent(name) | Topic::GenericEvent(name) => {
                push_segment(out, name)
            }
        }
    }

    fn family<'n>(&self, naming: &'n Naming) -> &'n str {
        match self {
            Topic::Tick(_) => "tick",
            Topic::Book(_) => "book",
            Topic::Depth(_) => DEPTH,
            Topic::BookOrders(_) => ORDERS,
            Topic::Trade(_) => TRADE,
            Topic::SecurityStatus(_) => STATUS,
            Topic::Bar { .. } => "bar",
            Topic::OrderStatus { .. } => &naming.prefix,
            Topic::Order { .. } => "order",
            Topic::Position { .. } => "position",
            Topic::Transaction { .. } => "transaction",
            Topic::CashBalance { .. } => "cash-balance",
            Topic::Subscription { .. } => "subscription",
            Topic::Session(_) => "session",
            Topic::Lifecycle { .. } => "lifecycle",
            Topic::LogEvent(_) => "log-event",
            Topic::GenericEvent(_) => "generic-event",
        }
    }
}

/// Returns the kind of topics that begin with this segment, or `None` if there are none.
pub fn kind_of_family(first: &str, naming: &Naming) -> Option<TopicKind> {
    match first {
        "tick" | "book" | "bar" | DEPTH | ORDERS => Some(TopicKind::MarketData),
        "order" | "position" | "transaction" | "cash-balance" => Some(TopicKind::Order),
        TRADE | STATUS | "subscription" | "session" | "lifecycle" | "log-event" | "generic-event" => {
            Some(TopicKind::System)
        }
        _ => (first == naming.prefix).then_some(TopicKind::Order),
    }
}

/// Decodes a segment. A `%` that is not one of our codes stays as it is.
pub fn decode_segment(segment: &str) -> Cow<'_, str> {
    const CODES: [(&str, &str); 5] = [("%2E", "."), ("%2A", "*"), ("%3E", ">"), ("%2F", "/"), ("%25", "%")];
    if !segment.contains('%') {
        return Cow::Borrowed(segment);
    }
    let mut name = String::with_capacity(segment.len());
    let mut rest = segment;
    while let Some(at) = rest.find('%') {
        name.push_str(&rest[..at]);
        rest = &rest[at..];
        let code = CODES.iter().find(|(code, _)| rest.starts_with(code));
        let (len, meant) = code.map_or((1, "%"), |(code, meant)| (code.len(), meant));
        name.push_str(meant);
        rest = &rest[len..];
    }
    name.push_str(rest);
    Cow::Owned(name)
}

fn push_number(out: &mut Vec<u8>, security: SecurityId) {
    out.push(b'.');
    out.extend_from_slice(itoa::Buffer::new().format(security.0).as_bytes());
}

/// Appends a name as one segment, with percent-encoding of the characters that have a meaning in
/// topic names. The crate `percent-encoding` would encode every character beyond ASCII too, and so
/// change the topics of strategies with such names.
fn push_segment(out: &mut Vec<u8>, name: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.push(b'.');
    for &octet in name.as_bytes() {
        if matches!(octet, b'.' | b'*' | b'>' | b'/' | b'%') {
            out.extend_from_slice(&[b'%', HEX[(octet >> 4) as usize], HEX[(octet & 15) as usize]]);
        } else {
            out.push(octet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(topic: Topic, name: &str) {
        let mut out = Vec::new();
        topic.push_name(&Naming::default(), &mut out);
        assert_eq!(std::str::from_utf8(&out).unwrap(), name);
        let family = name.split('.').next().unwrap();
        assert_eq!(kind_of_family(family, &Naming::default()), Some(topic.kind()), "{name}");
        let strategy = (topic.kind() == TopicKind::Order).then_some("MOMENTUM");
        assert_eq!(topic.guarded_strategy(), strategy, "{name}");
    }

    #[test]
    fn every_topic_of_the_table_has_its_name() {
        let (security, strategy) = (SecurityId(42), "MOMENTUM");
        let order = IntId::parse(b"a.b*c>d/e%f").unwrap();
        check(Topic::Tick(security), "tick.42");
        check(Topic::Book(security), "book.42");
        check(Topic::Depth(security), "depth.42");
        check(Topic::BookOrders(security), "orders.42.book");
        check(Topic::Trade(security), "trade.42");
        check(Topic::SecurityStatus(security), "status.42");
        check(Topic::Bar { security, size: "1m" }, "bar.42.1m");
        check(Topic::OrderStatus { strategy, order }, "pitlane.MOMENTUM.a%2Eb%2Ac%3Ed%2Fe%25f");
        check(Topic::Order { strategy, order: IntId::numbered(b'n', 7) }, "order.MOMENTUM.n7");
        check(Topic::Position { strategy, security }, "position.MOMENTUM.42");
        check(Topic::Transaction { strategy }, "transaction.MOMENTUM");
        let currency = Currency::parse(b"USD").unwrap();
        check(Topic::CashBalance { strategy, currency }, "cash-balance.MOMENTUM.USD");
        check(Topic::Subscription { strategy, security }, "subscription.MOMENTUM.42");
        check(Topic::Session("FIX:CLIENT1"), "session.FIX:CLIENT1");
        check(Topic::Lifecycle { strategy }, "lifecycle.MOMENTUM");
        check(Topic::LogEvent("error"), "log-event.error");
        check(Topic::GenericEvent("signal.x"), "generic-event.signal%2Ex");
    }

    #[test]
    fn a_segment_is_decoded_as_it_was_encoded() {
        for name in ["plain", "a.b*c>d/e%f", "%2E", "100%", "%", "ü%2"] {
            let mut out = Vec::new();
            push_segment(&mut out, name);
            let segment = std::str::from_utf8(&out[1..]).unwrap();
            assert!(!segment.contains(['.', '*', '>', '/']));
            assert_eq!(decode_segment(segment), name);
        }
        assert_eq!(decode_segment("50%x"), "50%x");
    }

    #[test]
    fn order_topics_cannot_take_the_name_of_others() {
        assert_eq!(Naming::new("tick", &[]), Err(NamingError::Taken));
        assert_eq!(Naming::new("a", &["a"]), Err(NamingError::Taken));
        assert_eq!(Naming::new("a.b", &[]), Err(NamingError::NotASegment));
        assert_eq!(Naming::new("a", &[""]), Err(NamingError::NotASegment));
        assert_eq!(Naming::new("a", &["b"; 9]), Err(NamingError::TooMany));
        let naming = Naming::new("acme", &["x y"]).unwrap();
        assert_eq!(
            (naming.prefix(), naming.alias_of("x y"), naming.alias(0)),
            ("acme", Some(0), Some("x y"))
        );
    }
}
