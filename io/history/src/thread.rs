//! The thread `history`, and its two ends in the http thread: one for ticks, one for questions.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pitlane_engine::event::{Event, EventKind, Tick};
use pitlane_engine::id::ShardId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{Day, Timestamp};
use pitlane_runtime::clock::Clock;
use pitlane_runtime::metrics::Registry;
use pitlane_runtime::thread_class::ThreadClass;
use rtrb::{Consumer, Producer, RingBuffer};

use super::query::{self, HistoryAnswer, HistoryQuery, RowFormat};
use super::settings::HistorySettings;
use super::store::HistoryStore;

/// Maximum number of ticks that wait for the thread: 8 MB, and the ticks of a second of a fast
/// market.
const TICKS_MAX: usize = 1 << 16;
/// Maximum number of requests that wait for the thread. More are refused.
const REQUESTS_MAX: usize = 64;

/// Pause of the thread while ticks arrive. Rows of so much time are lost when the process is
/// killed.
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// Pause while none arrive: bars end that late.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// What the history learns of the market.
#[derive(Clone, Copy, Debug)]
enum MarketInput {
    Tick { published: Timestamp, tick: Tick },
    TradingDay { shard: ShardId, day: Day },
}

type AnswerReceiver = Box<dyn FnOnce(io::Result<HistoryAnswer>) + Send>;

enum HistoryRequest {
    Query {
        query: HistoryQuery,
        format: RowFormat,
        answer: AnswerReceiver,
    },
    Reference(Arc<RefData>),
    /// Takes the ticks out of the ring before it is full.
    Drain,
    End,
}

/// The thread does not take more requests at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryBusy;

/// The end for ticks.
#[derive(Debug)]
pub struct HistoryRecorder {
    ring: Producer<MarketInput>,
    requests: SyncSender<HistoryRequest>,
    registry: Arc<Registry>,
}

/// The end for questions.
#[derive(Clone, Debug)]
pub struct HistoryClient {
    requests: SyncSender<HistoryRequest>,
}

/// What the thread is made from.
pub struct HistoryStart<'a> {
    pub settings: HistorySettings,
    pub reference: &'a RefData,
    pub clock: Clock,
    pub registry: Arc<Registry>,
}

/// Opens the files and starts the thread, which ends after [`HistoryClient::end`] when everything
/// is written.
pub fn start(start: HistoryStart<'_>) -> io::Result<(HistoryRecorder, HistoryClient, JoinHandle<()>)> {
    let HistoryStart { settings, reference, mut clock, registry } = start;
    let store = HistoryStore::open(settings, reference, clock.now())?;
    let (recorder, client, inputs, received) = ends(registry.clone());
    let worker = HistoryWorker { store, inputs, clock, registry };
    let thread = thread::Builder::new().name("history".to_string()).spawn(move || {
        ThreadClass::Housekeeping.apply();
        worker.run(&received);
    })?;
    Ok((recorder, client, thread))
}

/// Creates the two ends, and what the thread reads from them.
fn ends(
    registry: Arc<Registry>,
) -> (HistoryRecorder, HistoryClient, Consumer<MarketInput>, Receiver<HistoryRequest>) {
    let (ring, inputs) = RingBuffer::new(TICKS_MAX);
    let (requests, received) = sync_channel(REQUESTS_MAX);
    let recorder = HistoryRecorder { ring, requests: requests.clone(), registry };
    (recorder, HistoryClient { requests }, inputs, received)
}

impl HistoryRecorder {
    /// Takes an event of a shard. It never waits.
    pub fn handle_event(&mut self, shard: ShardId, event: &Event) {
        let input = if let EventKind::Tick(tick) = &event.body {
            MarketInput::Tick { published: event.at, tick: *tick }
        } else if let EventKind::TradingDay { day } = &event.body {
            MarketInput::TradingDay { shard, day: *day }
        } else {
            return;
        };
        if self.ring.push(input).is_err() {
            self.registry.history.dropped.add(1);
        }
        if self.ring.slots() == TICKS_MAX / 2 {
            // If the thread has requests to read, it takes the ticks with them.
            let _ = self.requests.try_send(HistoryRequest::Drain);
        }
    }
}

impl HistoryClient {
    /// Asks the history. The answer is given on its thread.
    pub fn ask(
        &self,
        query: HistoryQuery,
        format: RowFormat,
        answer: impl FnOnce(io::Result<HistoryAnswer>) + Send + 'static,
    ) -> Result<(), HistoryBusy> {
        self.send(HistoryRequest::Query { query, format, answer: Box::new(answer) })
    }

    /// Passes on new reference data, with new time zones of exchanges perhaps.
    pub fn set_reference(&self, reference: Arc<RefData>) -> Result<(), HistoryBusy> {
        self.send(HistoryRequest::Reference(reference))
    }

    /// Ends the thread after the ticks that were recorded before. It waits for room, which the
    /// thread makes.
    pub fn end(&self) {
        let _ = self.requests.send(HistoryRequest::End);
    }

    fn send(&self, request: HistoryRequest) -> Result<(), HistoryBusy> {
        self.requests.try_send(request).map_err(|_full| HistoryBusy)
    }
}

/// The thread's own state.
struct HistoryWorker {
    store: HistoryStore,
    inputs: Consumer<MarketInput>,
    clock: Clock,
    registry: Arc<Registry>,
}

impl HistoryWorker {
    fn run(mut self, requests: &Receiver<HistoryRequest>) {
        let mut pause = IDLE_PAUSE;
        loop {
            let request = match requests.recv_timeout(pause) {
                Ok(HistoryRequest::End) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(request) => Some(request),
                Err(RecvTimeoutError::Timeout) => None,
            };
            // First, so that an answer has every tick that was recorded before its question, and
            // none that a kill could take back.
            let taken = self.drain();
            self.write();
            pause = if taken > 0 { BUSY_PAUSE } else { IDLE_PAUSE };
            match request {
                Some(HistoryRequest::Query { query, format, answer }) => {
                    let now = self.clock.now();
                    answer(query::answer(&self.store, &query, format, now));
                }
                Some(HistoryRequest::Reference(reference)) => self.store.set_reference(&reference),
                Some(HistoryRequest::Drain | HistoryRequest::End) | None => {}
            }
        }
        self.drain();
        self.write();
        self.store.sync();
    }

    /// Takes the ticks that are in the ring now, and returns their number.
    fn drain(&mut self) -> u64 {
        let mut ticks = 0;
        for _ in 0..self.inputs.slots() {
            let Ok(input) = self.inputs.pop() else { break };
            match input {
                MarketInput::Tick { published, tick } => {
                    self.store.add_tick(published, &tick);
                    ticks += 1;
                }
                MarketInput::TradingDay { shard, day } => self.store.set_trading_day(shard, day),
            }
        }
        self.registry.history.ticks.add(ticks);
        ticks
    }

    fn write(&mut self) {
        let now = self.clock.now();
        self.store.advance(now);
        self.store.retain(now);
        self.registry.history.bytes.set(self.store.bytes());
        self.registry.history.failed_writes.set(self.store.lost());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_behind_costs_ticks_of_the_history_only_and_they_are_counted() {
        let registry = Arc::new(Registry::new(1));
        let (mut recorder, _client, mut inputs, received) = ends(registry.clone());
        let mut record = |count: usize| {
            for _ in 0..count {
                let body = EventKind::Tick(Tick::default());
                recorder.handle_event(ShardId(0), &Event { seq: 1, at: Timestamp(1), body });
            }
        };
        record(TICKS_MAX / 2 - 1);
        assert!(received.try_recv().is_err(), "the thread takes ticks when it wants to");
        record(1);
        assert!(matches!(received.try_recv(), Ok(HistoryRequest::Drain)), "half of the room is used");
        record(TICKS_MAX / 2);
        assert_eq!(registry.history.dropped.get(), 0);
        record(3);
        assert_eq!((registry.history.dropped.get(), inputs.slots()), (3, TICKS_MAX));
        assert!(inputs.pop().is_ok());
        record(1);
        assert_eq!(registry.history.dropped.get(), 3, "there was room again");
    }

    #[test]
    fn questions_beyond_the_bound_are_refused() {
        let (_recorder, client, _inputs, received) = ends(Arc::new(Registry::new(1)));
        let ask = || client.ask(HistoryQuery::Quotes { securities: Vec::new() }, RowFormat::Csv, |_| {});
        (0..REQUESTS_MAX).for_each(|_| assert_eq!(ask(), Ok(())));
        assert_eq!(ask(), Err(HistoryBusy));
        assert!(received.recv().is_ok());
        assert_eq!(ask(), Ok(()));
    }
}
