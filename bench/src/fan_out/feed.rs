//! The same feed of ticks to consumers over FIX and over STOMP, open loop: each tick has a planned
//! time, whether or not the consumers keep up. Every message is decoded.
//!
//! A consumer that is behind gets the newest state of a security instead of each tick (conflation),
//! so the share of ticks that were replaced is part of the result. The size of a tick's trade is
//! the number of the tick: each consumer must see rising numbers for each security, and in the end
//! the last one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pitlane_engine::index::index_usize;
use pitlane_engine::refdata::RefData;

use super::endpoint::FanOutProtocol;
use super::server::{FanOutServer, PublishMode};
use crate::conditions::Pinning;
use crate::consumers::{ConsumerPool, Observed, TIMEOUT, WARM_UP};
use crate::convert::whole;
use crate::fix_wire::BoxError;
use crate::report::recording::{Recording, SLICE_NS};
use crate::tick_reader::{BodyReader, SeenTick};

/// How consumers receive the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedConsumer {
    /// A Market Data Request (V) for the best prices and trades, and Incremental Refreshes (X).
    Fix,
    /// The topic `tick.*` over TCP.
    Stomp(BodyReader),
}

impl FeedConsumer {
    pub const ALL: [FeedConsumer; 3] =
        [FeedConsumer::Fix, FeedConsumer::Stomp(BodyReader::Sbe), FeedConsumer::Stomp(BodyReader::SimdJson)];

    pub fn name(self) -> String {
        match self {
            FeedConsumer::Fix => "FIX".to_string(),
            FeedConsumer::Stomp(body) => format!("STOMP, {}", body.name()),
        }
    }

    /// Returns its name in the form of a file name.
    fn slug(self) -> &'static str {
        match self {
            FeedConsumer::Fix => "fix",
            FeedConsumer::Stomp(BodyReader::Sbe) => "stomp-sbe",
            FeedConsumer::Stomp(BodyReader::SharedSbe) => "stomp-shared-sbe",
            FeedConsumer::Stomp(BodyReader::None | BodyReader::SimdJson | BodyReader::SerdeJson) => {
                "stomp-json"
            }
        }
    }
}

/// A feed at planned times.
#[derive(Clone, Copy, Debug)]
pub struct FeedLoad {
    /// Ticks per second.
    pub rate: u64,
    pub consumers: usize,
    pub time: Duration,
}

/// What the consumers have understood.
#[derive(Clone, Debug)]
pub struct FeedResult {
    /// Latencies from the planned time of a tick until it is decoded, and the deliveries per
    /// second.
    pub recording: Recording,
    /// Bytes of one delivery.
    pub octets: f64,
    /// Share of the deliveries of every tick to every consumer that were replaced by newer ones.
    pub conflated: f64,
}

/// Measures one feed. It is an error if a consumer receives something that the feed has not sent,
/// an older tick after a newer one, or not the last one.
pub fn deliver(
    pinning: &Pinning,
    reference: &Arc<RefData>,
    consumer: FeedConsumer,
    load: FeedLoad,
) -> Result<FeedResult, BoxError> {
    let FeedLoad { rate, consumers, time } = load;
    let pause_ns = 1_000_000_000 / rate.max(1);
    let protocol = match consumer {
        FeedConsumer::Fix => FanOutProtocol::Fix,
        FeedConsumer::Stomp(_) => FanOutProtocol::Stomp,
    };
    let server = FanOutServer::start(pinning, reference, protocol, PublishMode::Numbered(pause_ns));
    let mut pool = match consumer {
        FeedConsumer::Fix => ConsumerPool::fix(server.address, reference, consumers)?,
        FeedConsumer::Stomp(body) => ConsumerPool::stomp(server.address, "tick.*", consumers, 0, body),
    };
    let mut received = ReceivedTicks::new(reference, consumers);
    let (clock, shared) = (server.clock.clone(), server.shared.clone());
    pool.read_for(&shared, WARM_UP, |observed| _ = received.count(observed));
    let name = format!("{}-to-{consumers}-at-{rate}", consumer.slug());
    let mut recording = Recording::new(&name, (rate * consumers as u64) as f64, SLICE_NS);
    let begin_ns = shared.begin_ns.load(Ordering::Acquire);
    let (measured_ns, begin, octets) = (clock.delta_as_nanos(0, clock.raw()), Instant::now(), pool.octets);
    pool.read_for(&shared, time, |observed| {
        if let Some(number) = received.count(observed) {
            let now = clock.delta_as_nanos(0, clock.raw());
            let planned = begin_ns + number.saturating_sub(1) * pause_ns;
            recording.count(planned.saturating_sub(measured_ns), now.saturating_sub(planned));
        }
    });
    recording.per_s_reached = recording.all.len() as f64 / begin.elapsed().as_secs_f64();
    let octets = (pool.octets - octets) as f64 / recording.all.len().max(1) as f64;
    shared.stop_publishing.store(true, Ordering::Release);
    let deadline = Instant::now() + TIMEOUT;
    let is_complete = |received: &ReceivedTicks| {
        shared.has_ended.load(Ordering::Acquire) && received.has_all(shared.published.load(Ordering::Acquire))
    };
    while !is_complete(&received) && received.fault.is_none() {
        pool.poll(&shared, &mut |observed| _ = received.count(observed));
        if Instant::now() > deadline {
            received.fault = Some("a consumer has not received the last ticks".to_string());
        }
    }
    server.end();
    let published = shared.published.load(Ordering::Acquire) * consumers as u64;
    if let Some(fault) = received.fault {
        return Err(format!("{} to {consumers}: {fault}", consumer.name()).into());
    }
    let conflated = published.saturating_sub(received.messages) as f64 / published.max(1) as f64;
    Ok(FeedResult { recording, octets, conflated })
}

/// The newest tick that each consumer knows of each security, by number.
struct ReceivedTicks {
    newest: Vec<Vec<u64>>,
    /// Ids of the securities in the order of the feed.
    securities: Vec<u32>,
    messages: u64,
    /// The first message that is wrong.
    fault: Option<String>,
}

impl ReceivedTicks {
    fn new(reference: &RefData, consumers: usize) -> ReceivedTicks {
        let securities: Vec<u32> = reference.securities().iter().map(|row| row.id.0).collect();
        let newest = vec![vec![0; securities.len()]; consumers];
        ReceivedTicks { newest, securities, messages: 0, fault: None }
    }

    /// Counts a tick and returns its number.
    fn count(&mut self, observed: Observed) -> Option<u64> {
        let Observed::Tick { consumer, tick } = observed else { return None };
        let SeenTick { security, last_size, .. } = tick;
        let number = u64::try_from(whole(last_size)).unwrap_or(0);
        let place = index_usize(number) % self.securities.len();
        let newest = &mut self.newest[consumer][place];
        if self.securities[place] != security || number <= *newest {
            let fault = format!("tick {number} of security {security} comes after tick {newest}");
            self.fault.get_or_insert(fault);
        }
        *newest = number;
        self.messages += 1;
        Some(number)
    }

    /// Returns whether every consumer knows the last tick of each security.
    fn has_all(&self, published: u64) -> bool {
        let count = self.securities.len() as u64;
        let last = |place: usize| {
            let back = (published + count - place as u64) % count;
            published.saturating_sub(back)
        };
        self.newest
            .iter()
            .all(|of_consumer| of_consumer.iter().enumerate().all(|(place, newest)| *newest == last(place)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform;

    /// The real endpoints with sockets, as the bench starts them.
    #[test]
    fn every_kind_of_consumer_understands_the_feed() {
        let reference = Arc::new(platform::reference(3));
        let load = FeedLoad { rate: 1_000, consumers: 2, time: Duration::from_millis(20) };
        for consumer in FeedConsumer::ALL {
            let result = deliver(&Pinning::default(), &reference, consumer, load);
            let FeedResult { recording, octets, conflated } = result.expect("every message is in order");
            assert!(!recording.all.is_empty() && octets > 50.0, "{consumer:?}: {octets}");
            assert!((0.0..1.0).contains(&conflated), "{consumer:?}: {conflated}");
        }
    }

    fn received(consumers: usize) -> ReceivedTicks {
        ReceivedTicks::new(&platform::reference(3), consumers)
    }

    fn tick(consumer: usize, security: u32, number: u32) -> Observed<'static> {
        let tick = SeenTick { security, last_size: number.into(), ..SeenTick::default() };
        Observed::Tick { consumer, tick }
    }

    #[test]
    fn all_is_received_when_each_consumer_knows_the_last_tick_of_each_security() {
        let mut received = received(2);
        assert!(received.has_all(0));
        // Tick 1 belongs to the second security, tick 3 to the first. Tick 2 was replaced by 5.
        for (consumer, security, number) in [(0, 2, 1), (0, 1, 3), (0, 2, 4), (0, 3, 5), (1, 1, 3), (1, 2, 4)]
        {
            received.count(tick(consumer, security, number));
        }
        assert!(!received.has_all(5), "the second consumer lacks tick 5");
        received.count(tick(1, 3, 5));
        assert!(received.has_all(5));
        assert_eq!((received.messages, received.fault), (7, None));
    }

    #[test]
    fn ticks_that_are_old_or_of_another_security_are_noticed() {
        for (security, number) in [(2, 1), (2, 4), (3, 7)] {
            let mut received = received(1);
            received.count(tick(0, 2, 4));
            received.count(tick(0, security, number));
            assert!(received.fault.is_some(), "tick {number} of security {security}");
        }
    }
}
