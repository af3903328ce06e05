//! Timestamps on a sample of the cycles: the time of events from their lane to the socket, and of
//! client frames from their arrival to the end of their processing. See
//! [`pitlane_runtime::stages`].

use pitlane_runtime::stages::{CounterStamp, LatencyRecorder, LatencyStage};

/// The cycle being timed, one at a time, whatever the number of its events and subscribers.
#[derive(Debug, Default)]
pub struct StompLatency {
    /// When the first event of the cycle was taken.
    started: Option<CounterStamp>,
    /// When all of its events were rendered.
    rendered: Option<CounterStamp>,
}

impl StompLatency {
    /// Starts a measurement at the first event of a cycle, if clients are connected and the cycle
    /// is sampled.
    pub fn start(&mut self, recorder: Option<&mut LatencyRecorder>) {
        self.started = recorder.and_then(LatencyRecorder::sample_cycle);
    }

    /// Records that all events of the cycle are rendered.
    pub fn rendered(&mut self, recorder: Option<&mut LatencyRecorder>) {
        if let (Some(started), Some(recorder)) = (self.started.take(), recorder) {
            let rendered = recorder.stamp();
            recorder.count(LatencyStage::StompRender, started, rendered);
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

/// Starts a measurement on a client's bytes; the result is passed to [`finish_input`].
pub fn start_input(recorder: Option<&mut LatencyRecorder>) -> Option<CounterStamp> {
    recorder.and_then(LatencyRecorder::sample_cycle)
}

/// Records that the bytes have been processed.
pub fn finish_input(start_input: Option<CounterStamp>, recorder: Option<&mut LatencyRecorder>) {
    if let (Some(start_input), Some(recorder)) = (start_input, recorder) {
        recorder.count(LatencyStage::StompDecode, start_input, recorder.stamp());
    }
}
