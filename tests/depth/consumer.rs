//! A consumer of books that knows only docs/stomp.md: it connects, reads at its own pace, and gives
//! every body to the book that it belongs to.

use std::collections::BTreeMap;

use pitlane_engine::id::SecurityId;
use pitlane_engine::time::NS_PER_S;
use pitlane_protocols::stomp::broker::SessionId;
use pitlane_protocols::stomp::session::Transport;
use pitlane_tests::dice::Dice;
use serde::Deserialize;

use crate::market::{DepthMarket, SECURITIES};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsumerPlan {
    pub(crate) transport: Transport,
    /// Bytes that it reads in a step, at most.
    pub(crate) share: u64,
}

/// A book that a consumer rebuilds.
pub(crate) trait RebuiltBook: Default {
    /// Returns the topic of a security.
    fn topic(security: SecurityId) -> String;

    /// Replaces the book by that of a SNAPSHOT.
    fn replace(&mut self, body: &str);

    /// Applies an UPDATE. Returns the number of its changes.
    fn update(&mut self, body: &str) -> usize;

    /// Returns the text that a checksum covers.
    fn canonical_text(&self) -> String;

    /// Compares the book with that of the open orders.
    fn assert_equal(&mut self, market: &DepthMarket, security: SecurityId);
}

pub(crate) struct BookConsumer<B> {
    plan: ConsumerPlan,
    session: Option<SessionId>,
    wire: Vec<u8>,
    /// Sequence number and book of each security.
    books: BTreeMap<u32, (u64, B)>,
    pub(crate) snapshots: u64,
    pub(crate) updates: u64,
    /// Updates of more than one step of the server, which carry a checksum.
    pub(crate) merged: u64,
    pub(crate) checksums: u64,
}

/// Members that all messages have.
#[derive(Deserialize)]
struct BookHead<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(rename = "prevSeq")]
    prev_seq: Option<u64>,
    seq: u64,
    #[serde(rename = "securityId")]
    security: u32,
    checksum: Option<u32>,
}

impl<B: RebuiltBook> BookConsumer<B> {
    pub(crate) fn new(plan: ConsumerPlan) -> BookConsumer<B> {
        BookConsumer {
            plan,
            session: None,
            wire: Vec::new(),
            books: BTreeMap::new(),
            snapshots: 0,
            updates: 0,
            merged: 0,
            checksums: 0,
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    /// Connects and subscribes. Returns whether it continues with the books that it has.
    pub(crate) fn connect(&mut self, market: &mut DepthMarket, dice: &mut Dice) -> bool {
        let session = market.broker.open(market.now, self.plan.transport).expect("there is room");
        self.session = Some(session);
        let resumes = dice.percent(70) && !self.books.is_empty();
        if !resumes {
            self.books.clear();
        }
        let mut frames = b"CONNECT\naccept-version:1.2\nhost:x\n\n\0".to_vec();
        for security in SECURITIES {
            let resume = self.books.get(&security.0).map(|(seq, _)| format!("resume:{seq}\n"));
            let resume = resume.unwrap_or_default();
            let topic = B::topic(security);
            let frame = format!("SUBSCRIBE\nid:{security}\ndestination:/topic/{topic}\n{resume}\n\0");
            frames.extend_from_slice(frame.as_bytes());
        }
        market.broker.handle_bytes(market.now, session, &frames);
        market.settle();
        resumes
    }

    pub(crate) fn disconnect(&mut self, market: &mut DepthMarket) {
        if let Some(session) = self.session.take() {
            market.broker.close(session);
            market.settle();
        }
        self.lose_connection();
    }

    pub(crate) fn lose_connection(&mut self) {
        self.session = None;
        self.wire.clear();
    }

    /// Reads some of what waits.
    pub(crate) fn read(&mut self, market: &mut DepthMarket, dice: &mut Dice) {
        let bytes = dice.below(self.plan.share);
        self.take(market, usize::try_from(bytes).expect("a share is small"));
    }

    /// Reads until nothing more comes, however long a throttle takes.
    pub(crate) fn read_all(&mut self, market: &mut DepthMarket) {
        loop {
            let before = (self.snapshots, self.updates);
            self.take(market, usize::MAX);
            market.now = market.now.plus(NS_PER_S);
            market.settle();
            self.take(market, usize::MAX);
            if before == (self.snapshots, self.updates) {
                return;
            }
        }
    }

    fn take(&mut self, market: &mut DepthMarket, mut most: usize) {
        let Some(session) = self.session else { return };
        while let Some(transmit) = market.broker.transmit(session).filter(|_| most > 0) {
            let count = transmit.bytes.len().min(most);
            if count == 0 {
                break;
            }
            self.wire.extend_from_slice(&transmit.bytes[..count]);
            most -= count;
            market.broker.handle_transmitted(market.now, session, count);
        }
        let wire = std::mem::take(&mut self.wire);
        let mut frames = wire.split(|octet| *octet == 0).peekable();
        while let Some(frame) = frames.next() {
            if frames.peek().is_none() {
                self.wire = frame.to_vec();
                break;
            }
            self.handle_frame(frame);
        }
    }

    fn handle_frame(&mut self, frame: &[u8]) {
        let text = std::str::from_utf8(frame).expect("frames are UTF-8").trim_start_matches('\n');
        let Some((head, body)) = text.split_once("\n\n") else { return };
        if !head.starts_with("MESSAGE") {
            assert!(head.starts_with("CONNECTED"), "{text}");
            return;
        }
        let message: BookHead<'_> = serde_json::from_str(body).expect("a body is JSON");
        let (seq, book) = self.books.entry(message.security).or_default();
        match (message.kind, message.prev_seq) {
            ("SNAPSHOT", None) => {
                self.snapshots += 1;
                book.replace(body);
            }
            ("UPDATE", Some(prev_seq)) => {
                self.updates += 1;
                assert_eq!(prev_seq, *seq, "an update follows the last message");
                assert!(book.update(body) > 0, "an update changes something");
            }
            (kind, prev_seq) => panic!("{kind} with {prev_seq:?}"),
        }
        assert!(message.seq > *seq || message.kind == "SNAPSHOT", "numbers rise");
        *seq = message.seq;
        if let Some(checksum) = message.checksum {
            self.checksums += 1;
            self.merged += u64::from(message.kind == "UPDATE");
            assert_eq!(checksum, crc32c::crc32c(book.canonical_text().as_bytes()), "{}", message.seq);
        }
    }

    /// Compares the books with those that the open orders make.
    pub(crate) fn assert_books(&mut self, market: &DepthMarket) {
        for security in SECURITIES {
            let (_, book) = self.books.get_mut(&security.0).expect("every topic begins with a snapshot");
            book.assert_equal(market, security);
        }
    }
}

/// Reads a decimal of at most eight decimals, in units of 10⁻⁸.
pub(crate) fn scaled(text: &str) -> i64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{part:0<8}").parse().expect("a decimal")
}

pub(crate) fn decimal(scaled: i64) -> String {
    let text = format!("{}.{:08}", scaled / 100_000_000, scaled % 100_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[test]
fn decimals_are_read_and_written() {
    for (text, value) in [("100", 10_000_000_000), ("0.5", 50_000_000), ("12.00000001", 1_200_000_001)] {
        assert_eq!((scaled(text), decimal(value)), (value, text.to_string()));
    }
    assert_eq!(SecurityId(7).to_string(), "7", "topics are named by it");
}
