//! Timestamps on a sample of the messages, from the wire and back: see [`crate::stages`].

use pitlane_engine::event::Event;
use pitlane_engine::id::IntId;

use crate::stages::{CounterStamp, LatencyRecorder, LatencyStage};

/// The message being timed, one at a time.
#[derive(Debug, Default)]
pub struct FixLatency {
    /// Arrival time of bytes that are not decoded yet.
    came: Option<CounterStamp>,
    /// The request whose answer is awaited.
    sent: Option<(IntId, CounterStamp)>,
    /// Whether the bytes of the answer have to be written.
    answered: bool,
}

/// The measurement while one session is driven.
pub struct DriveTiming<'a> {
    watch: &'a mut FixLatency,
    recorder: Option<&'a mut LatencyRecorder>,
    decoded: Option<CounterStamp>,
}

impl FixLatency {
    /// Starts a measurement on received bytes, if they are sampled.
    pub fn came(&mut self, recorder: Option<&mut LatencyRecorder>) {
        if self.sent.is_none()
            && let Some(stamp) = recorder.and_then(LatencyRecorder::sample)
        {
            self.came = Some(stamp);
        }
    }

    pub fn at<'a>(&'a mut self, recorder: Option<&'a mut LatencyRecorder>) -> DriveTiming<'a> {
        DriveTiming { watch: self, recorder, decoded: None }
    }

    /// Records an event; returns the time if it is the awaited one.
    pub fn heard(&mut self, event: &Event, recorder: Option<&mut LatencyRecorder>) -> Option<CounterStamp> {
        let (id, sent) = self.sent?;
        let recorder = recorder?;
        event.report().filter(|report| report.id == id)?;
        let heard = recorder.stamp();
        recorder.count(LatencyStage::Answer, sent, heard);
        self.sent = None;
        Some(heard)
    }

    /// Records that the report of the event is encoded.
    pub fn encoded(&mut self, heard: Option<CounterStamp>, recorder: Option<&mut LatencyRecorder>) {
        if let (Some(heard), Some(recorder)) = (heard, recorder) {
            recorder.count(LatencyStage::Encode, heard, recorder.stamp());
            self.answered = true;
        }
    }

    pub fn writes(&self, recorder: Option<&LatencyRecorder>) -> Option<CounterStamp> {
        recorder.filter(|_| self.answered).map(LatencyRecorder::stamp)
    }

    pub fn wrote(&mut self, begun: Option<CounterStamp>, recorder: Option<&mut LatencyRecorder>) {
        if let (Some(begun), Some(recorder)) = (begun, recorder) {
            recorder.count(LatencyStage::Write, begun, recorder.stamp());
            self.answered = false;
        }
    }
}

impl DriveTiming<'_> {
    /// Records that the bytes have become a request.
    pub fn decoded(&mut self) {
        if let (Some(came), Some(recorder)) = (self.watch.came.take(), &mut self.recorder) {
            let decoded = recorder.stamp();
            recorder.count(LatencyStage::Decode, came, decoded);
            self.decoded = Some(decoded);
        }
    }

    /// Records that the request is on its lane.
    pub fn sent(&mut self, id: IntId) {
        if let (Some(decoded), Some(recorder)) = (self.decoded.take(), &mut self.recorder) {
            let sent = recorder.stamp();
            recorder.count(LatencyStage::Send, decoded, sent);
            self.watch.sent = Some((id, sent));
        }
    }
}
