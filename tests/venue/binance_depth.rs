//! Books of Binance without a socket: the stream of differences and its snapshot, compared with the
//! book of the stand-in. Events are lost, repeated and late, and connections end.

use pitlane_dialogue::binance_book::BinanceBook;
use pitlane_engine::event::LEVELS_PER_SIDE_MAX;
use pitlane_engine::id::SecurityId;
use pitlane_engine::rng::Rng;
use pitlane_engine::time::NS_PER_MS;
use pitlane_protocols::binance::{BUFFERED_LEVELS_MAX, STREAMS_MAX};
use pitlane_protocols::venue::{LinkIndex, VenueAdapter};
use pitlane_tests::binance::{BinanceHarness, connect_random, handshake_answer, text_frame};
use pitlane_tests::fix::seconds;
use pitlane_tests::test_market::{ABROAD, reference_of};

const STREAM: LinkIndex = LinkIndex(1);
const SECURITY: SecurityId = ABROAD[0];

/// The adapter with both connections, and the true book of one security.
struct BookHarness {
    harness: BinanceHarness,
    live: BinanceBook,
    dice: Rng,
}

impl BookHarness {
    /// Returns a connected harness whose venue has so many levels on each side.
    fn new(levels: u64, seed: u64) -> BookHarness {
        let harness = BinanceHarness::with_books(0);
        let mut books = BookHarness { harness, live: BinanceBook::new(levels), dice: Rng::new(seed) };
        books.offer_snapshot();
        books.connect();
        books
    }

    fn connect(&mut self) {
        let (session, now) = (&mut self.harness.session, self.harness.now);
        assert!(session.wants_connection(STREAM, now));
        session.handle_connect(STREAM, now, connect_random());
        self.deliver(handshake_answer());
    }

    /// Breaks the connection of the streams and opens it again.
    fn reconnect(&mut self) {
        self.harness.session.handle_disconnect(STREAM, self.harness.now);
        self.harness.settle();
        assert_eq!(self.text(), "|", "nothing is known without the stream");
        while !self.harness.session.wants_connection(STREAM, self.harness.now) {
            self.harness.now = self.harness.now.plus(seconds(1));
        }
        self.connect();
    }

    fn deliver(&mut self, mut bytes: Vec<u8>) {
        let sent = self.harness.session.poll_transmit(STREAM).len();
        self.harness.session.handle_transmitted(STREAM, sent);
        self.harness.session.handle_bytes(STREAM, self.harness.now, &mut bytes);
        self.harness.settle();
    }

    fn deliver_event(&mut self, data: &str) {
        self.deliver(text_frame(&format!(r#"{{"stream":"s8@depth@100ms","data":{data}}}"#)));
    }

    /// Changes the true book.
    fn event(&mut self, count: u64, distance_max: u64) -> String {
        self.live.change(&mut self.dice, count, distance_max)
    }

    /// Lets snapshots show the book as it is now; otherwise they are as old as the last call.
    fn offer_snapshot(&mut self) {
        self.harness.exchange.books.insert("S8".to_string(), self.live.clone());
    }

    fn snapshots_asked(&self) -> u64 {
        self.harness.exchange.received.get("depth S8").copied().unwrap_or(0)
    }

    fn text(&self) -> String {
        self.harness.shard.book_text(SECURITY)
    }

    /// Returns the published part of the true book.
    fn expected(&self) -> String {
        let [bids, asks] = [0, 1].map(|side| self.live.best(side, LEVELS_PER_SIDE_MAX).join(" "));
        format!("{bids} | {asks}").trim().to_string()
    }
}

#[test]
fn a_book_is_made_from_a_snapshot_and_the_events_behind_it() {
    let mut books = BookHarness::new(20, 1);
    assert_eq!((books.text(), books.snapshots_asked()), ("|".to_string(), 0));
    // The first event shows that the stream works; its changes are in the snapshot already.
    let events = [books.event(3, 20), books.event(1, 20)];
    books.offer_snapshot();
    let later = books.event(2, 20);
    books.deliver_event(&events[0]);
    assert_eq!(books.snapshots_asked(), 1);
    books.deliver_event(&events[1]);
    books.deliver_event(&later);
    assert_eq!(books.text(), books.expected());
    let snapshots = books.harness.shard.books[&SECURITY].1;
    for _ in 0..10 {
        let event = books.event(4, 30);
        books.deliver_event(&event);
        books.deliver_event(&event);
        assert_eq!(books.text(), books.expected());
    }
    assert_eq!(books.snapshots_asked(), 1);
    assert_eq!(books.harness.shard.books[&SECURITY].1, snapshots, "the rest came as updates");
    // A quiet security has no event: its snapshot comes all the same.
    books.reconnect();
    books.offer_snapshot();
    books.harness.wait(seconds(3));
    assert_eq!((books.text(), books.snapshots_asked()), (books.expected(), 2));
    assert_eq!(books.harness.shard.books[&SECURITY].1, snapshots + 2, "one for the loss, one for the return");
}

#[test]
fn a_missing_event_and_a_snapshot_that_is_too_old_start_the_book_again() {
    let mut books = BookHarness::new(20, 2);
    let first = books.event(1, 20);
    books.deliver_event(&first);
    books.offer_snapshot();
    books.harness.wait(seconds(3));
    let event = books.event(1, 20);
    books.deliver_event(&event);
    assert_eq!(books.text(), books.expected());
    // One event is lost. The snapshot is older than the next, and is asked for again.
    let asked = books.snapshots_asked();
    books.event(2, 20);
    let event = books.event(2, 20);
    books.deliver_event(&event);
    assert_eq!((books.text(), books.snapshots_asked()), ("|".to_string(), asked + 1));
    books.harness.wait(seconds(1));
    assert_eq!(books.snapshots_asked(), asked + 1, "not at once");
    books.harness.wait(seconds(1));
    assert_eq!(books.snapshots_asked(), asked + 2);
    books.harness.wait(seconds(3));
    assert_eq!(books.snapshots_asked(), asked + 2, "and later each time");
    books.offer_snapshot();
    books.harness.wait(seconds(1));
    assert_eq!((books.text(), books.snapshots_asked()), (books.expected(), asked + 3));
}

#[test]
fn messages_that_make_no_sense_lose_the_book_and_nothing_else() {
    let mut books = BookHarness::new(20, 3);
    let faults = [
        r#"{}"#,
        r#"{"U":9,"u":8,"b":[],"a":[]}"#,
        r#"{"U":1001,"u":1001,"b":[["x","1"]],"a":[]}"#,
        r#"{"U":1001,"u":1001,"b":[["1","-1"]],"a":[]}"#,
        r#"{"U":1001,"u":1001,"b":[["1"]],"a":[]}"#,
        r#"{"U":1001,"u":1001,"b":[],"a":[["0","1"]]}"#,
        r#"{"U":-1,"u":1001,"b":[],"a":[]}"#,
    ];
    for (data, count) in faults.into_iter().zip(1..) {
        books.offer_snapshot();
        books.harness.wait(seconds(3));
        assert_eq!(books.text(), books.expected(), "before {data}");
        books.harness.exchange.books.clear();
        books.deliver_event(data);
        assert_eq!(books.text(), "|", "{data}");
        let status = books.harness.session.status(books.harness.now);
        assert_eq!(status.counts.incomplete, count);
        let error = status.health.last_error.expect("the venue refuses the snapshot");
        assert!(error.contains("Invalid symbol"), "{error}");
    }
}

#[test]
fn a_book_that_has_become_thin_gets_another_snapshot() {
    let mut books = BookHarness::new(1_000, 4);
    let event = books.event(1, 5);
    books.offer_snapshot();
    books.deliver_event(&event);
    assert_eq!(books.text(), books.expected());
    // Most of the best levels disappear, a few at a time.
    for _ in 0..200 {
        let event = books.event(20, 480);
        books.deliver_event(&event);
        books.offer_snapshot();
        books.harness.wait(100 * NS_PER_MS);
    }
    let removed = books.live.remove_best(450);
    books.deliver_event(&removed);
    let known = books.text().split_whitespace().count();
    assert!(known < LEVELS_PER_SIDE_MAX, "500 levels were known: {known}");
    let asked = books.snapshots_asked();
    books.offer_snapshot();
    books.harness.wait(seconds(3));
    assert_eq!((books.text(), books.snapshots_asked()), (books.expected(), asked + 1));
}

#[test]
fn snapshots_leave_half_of_the_weight_to_orders() {
    let mut books = BookHarness::new(1, 5);
    let symbols = (0..2_000).map(|number| format!("S{number}"));
    let book = BinanceBook::new(1);
    books.harness.exchange.books = symbols.map(|symbol| (symbol, book.clone())).collect();
    books.harness.session.set_reference(reference_of(2_000));
    let minute = books.harness.now.0 / seconds(60);
    let mut most = 0;
    for _ in 0..600 {
        books.deliver(text_frame(r#"{"result":null,"id":1}"#));
        books.harness.wait(seconds(1));
        let limits = books.harness.session.status(books.harness.now).health.limits;
        most = most.max(limits.iter().map(|limit| limit.used).max().unwrap_or(0));
    }
    assert!(most > 2_900 && most <= 3_100, "{most}");
    assert!(books.harness.now.0 / seconds(60) > minute + 3);
    assert_eq!(books.harness.exchange.received["depth"], STREAMS_MAX as u64 / 3, "each book once");
    assert!(books.harness.exchange.banned_until_ms == 0);
}

#[test]
fn events_that_wait_for_a_snapshot_are_bounded() {
    let mut books = BookHarness::new(20, 6);
    books.harness.exchange.books.clear();
    // No snapshot comes while these arrive; the oldest are dropped, and the newest still fit.
    for _ in 0..BUFFERED_LEVELS_MAX / 100 + 50 {
        let event = books.event(200, 300);
        books.deliver_event(&event);
    }
    books.offer_snapshot();
    books.harness.wait(seconds(59));
    let event = books.event(1, 20);
    books.deliver_event(&event);
    books.harness.wait(seconds(10));
    assert_eq!(books.text(), books.expected());
}

#[test]
fn books_equal_those_of_the_venue_whatever_is_lost() {
    for seed in 0..4 {
        let mut books = BookHarness::new(30, 100 + seed);
        for _ in 0..400 {
            let count = 1 + books.dice.below(5);
            let event = books.event(count, 40);
            match books.dice.below(20) {
                0 => {}
                1 => {
                    books.deliver_event(&event);
                    books.deliver_event(&event);
                }
                _ => books.deliver_event(&event),
            }
            if books.dice.below(3) == 0 {
                books.offer_snapshot();
            }
            match books.dice.below(60) {
                0 => books.reconnect(),
                1 => books.harness.disconnect(),
                _ => {}
            }
            let pause = books.dice.below(400);
            books.harness.wait(pause * NS_PER_MS);
        }
        for _ in 0..70 {
            let event = books.event(1, 40);
            books.deliver_event(&event);
            books.offer_snapshot();
            books.harness.wait(seconds(1));
        }
        assert_eq!(books.text(), books.expected(), "seed {seed}");
        assert!(books.snapshots_asked() > 5, "{}", books.snapshots_asked());
    }
}
