//! Timestamps on a sample of the cycles: the time of events from their lane to the socket, and of
//! client frames from their arrival to the end of their processing. See [`crate::stages`].

use crate::stages::{CounterStamp, LatencyRecorder, LatencyStage};

/// The cycle being timed, one at a time, whatever the number of its events and subscribers.
#[derive(Debug, Default)]
pub struct StompLatency {
    /// When the first event of the cycle was taken.
    taken: Option<CounterStamp>,
    /// When all of its events were rendered.
    rendered: Option<CounterStamp>,
}

impl StompLatency {
    /// Starts a measurement at the first event of a cycle, if clients are connected and the cycle
    /// is sampled.
    pub fn takes(&mut self, recorder: Option<&mut LatencyRecorder>) {
        self.taken = recorder.and_then(LatencyRecorder::sample_turn);
    }

    /// Records that all events of the cycle are rendered.
    pub fn rendered(&mut self, recorder: Option<&mut LatencyRecorder>) {
        if let (Some(taken), Some(recorder)) = (self.taken.take(), recorder) {
            let rendered = recorder.stamp();
            recorder.count(LatencyStage::StompRender, taken, rendered);
            self.rendered = Some(rendered);
        }
    }

    /// Records that the clients with output have been written to.
    pub fn wrote(&mut self, recorder: Option<&mut LatencyRecorder>) {
        if let (Some(rendered), Some(recorder)) = (self.rendered.take(), recorder) {
            recorder.count(LatencyStage::StompWrite, rendered, recorder.stamp());
        }
    }
}

/// Starts a measurement on a client's bytes; the result is passed to [`done`].
pub fn came(recorder: Option<&mut LatencyRecorder>) -> Option<CounterStamp> {
    recorder.and_then(LatencyRecorder::sample_turn)
}

/// Records that the bytes have been processed.
pub fn done(came: Option<CounterStamp>, recorder: Option<&mut LatencyRecorder>) {
    if let (Some(came), Some(recorder)) = (came, recorder) {
        recorder.count(LatencyStage::StompDecode, came, recorder.stamp());
    }
}
