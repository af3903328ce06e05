//! Consumers rebuild the books of the simulated venue, by price levels and by single orders: with
//! slow reading, random disconnects and restarts, and compared with the open orders, price by price
//! and place by place. They are written from docs/stomp.md alone and share no code with the server.
//!
//! A run has 60,000 events; `make depth` has 10 million (`PITLANE_DEPTH_EVENTS`).

mod consumer;
mod level_book;
mod market;
mod order_queues;

use pitlane_protocols::stomp::session::Transport;
use pitlane_tests::dice::Dice;

use consumer::{BookConsumer, ConsumerPlan, RebuiltBook};
use level_book::LevelsOfBook;
use market::DepthMarket;
use order_queues::OrdersOfBook;

/// Events of a short run.
const EVENTS: u64 = 60_000;
/// Events between two comparisons of everything.
const CHECKED_EVERY: u64 = 2_000;

#[test]
fn consumers_have_the_price_levels_exactly_whatever_happens() {
    rebuild::<LevelsOfBook>();
}

#[test]
fn consumers_have_every_order_at_its_place_whatever_happens() {
    rebuild::<OrdersOfBook>();
}

fn rebuild<B: RebuiltBook>() {
    let events = match std::env::var("PITLANE_DEPTH_EVENTS") {
        Ok(text) => text.parse().expect("PITLANE_DEPTH_EVENTS is a number"),
        Err(_) => EVENTS,
    };
    let mut run = DepthRun::<B>::new(1);
    while run.market.events < events {
        run.step();
    }
    run.check_all();
    let counts = run.consumers.iter().fold([0; 4], |sum, consumer| {
        let own = [consumer.snapshots, consumer.updates, consumer.merged, consumer.checksums];
        std::array::from_fn(|at| sum[at] + own[at])
    });
    println!(
        "{} events, {} restarts; snapshots, updates, merged, checksums: {counts:?}",
        events, run.restarts
    );
    assert!(counts.iter().all(|count| *count > 50), "every kind of message was seen: {counts:?}");
    assert!(run.restarts > 0 && run.resumed > 20, "{} restarts, {} resumed", run.restarts, run.resumed);
}

struct DepthRun<B> {
    dice: Dice,
    market: DepthMarket,
    consumers: Vec<BookConsumer<B>>,
    checked_at: u64,
    restarts: u64,
    /// Reconnects of consumers that continued with the book they had.
    resumed: u64,
}

impl<B: RebuiltBook> DepthRun<B> {
    fn new(seed: u64) -> DepthRun<B> {
        let plan = |transport, share| ConsumerPlan { transport, share };
        // Bytes read in a step, at most: some keep up, some are behind all the time.
        let consumers = [
            plan(Transport::Tcp, 1 << 20),
            plan(Transport::Tcp, 4_000),
            plan(Transport::Tcp, 400),
            plan(Transport::WebSocket, 1 << 20),
        ];
        DepthRun {
            dice: Dice::new(seed),
            market: DepthMarket::new(),
            consumers: consumers.into_iter().map(BookConsumer::new).collect(),
            checked_at: 0,
            restarts: 0,
            resumed: 0,
        }
    }

    fn step(&mut self) {
        // A shard publishes its books after any number of commands.
        for _ in 0..1 + self.dice.below(8) {
            self.market.trade(&mut self.dice);
        }
        self.market.publish();
        for consumer in &mut self.consumers {
            match consumer.is_connected() {
                true if self.dice.below(200) == 0 => consumer.disconnect(&mut self.market),
                true => consumer.read(&mut self.market, &mut self.dice),
                false if self.dice.percent(10) => {
                    self.resumed += u64::from(consumer.connect(&mut self.market, &mut self.dice));
                }
                false => {}
            }
        }
        if self.dice.below(1_000) == 0 {
            self.restart();
        }
        if self.market.events - self.checked_at > CHECKED_EVERY {
            self.checked_at = self.market.events;
            self.check_all();
        }
    }

    fn restart(&mut self) {
        self.market.restart();
        self.consumers.iter_mut().for_each(BookConsumer::lose_connection);
        self.restarts += 1;
    }

    /// Lets every consumer read everything, and compares its books with the open orders.
    fn check_all(&mut self) {
        for consumer in &mut self.consumers {
            if !consumer.is_connected() {
                self.resumed += u64::from(consumer.connect(&mut self.market, &mut self.dice));
            }
            consumer.read_all(&mut self.market);
            consumer.assert_books(&self.market);
        }
    }
}
