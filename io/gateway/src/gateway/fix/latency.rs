//! Timestamps on a sample of the messages, from the wire and back: see [`pitlane_runtime::stages`].

use pitlane_engine::event::Event;
use pitlane_engine::id::IntId;
use pitlane_runtime::stages::{CounterStamp, LatencyRecorder, LatencyStage};

/// The message being timed, one at a time.
#[derive(Debug, Default)]
pub(super) struct FixLatency {
    /// Arrival time of bytes that are not decoded yet.
    received: Option<CounterStamp>,
    /// The request whose answer is awaited.
    sent: Option<(IntId, CounterStamp)>,
    /// Whether the bytes of the answer have to be written.
    answered: bool,
}

/// The measurement while one session is driven.
pub(super) struct DriveTiming<'a> {
    latency: &'a mut FixLatency,
    recorder: Option<&'a mut LatencyRecorder>,
    decoded: Option<CounterStamp>,
}

impl FixLatency {
    /// Starts a measurement on received bytes, if they are sampled.
    pub(super) fn received(&mut self, recorder: Option<&mut LatencyRecorder>) {
        if self.sent.is_none()
            && let Some(stamp) = recorder.and_then(LatencyRecorder::sample)
        {
            self.received = Some(stamp);
        }
    }

    pub(super) fn at<'a>(&'a mut self, recorder: Option<&'a mut LatencyRecorder>) -> DriveTiming<'a> {
        DriveTiming { latency: self, recorder, decoded: None }
    }

    /// Records an event; returns the time if it is the awaited one.
    pub(super) fn event_received(
        &mut self,
        event: &Event,
        recorder: Option<&mut LatencyRecorder>,
    ) -> Option<CounterStamp> {
        let (id, sent) = self.sent?;
        let recorder = recorder?;
        event.report().filter(|report| report.id == id)?;
        let event_received = recorder.stamp();
        recorder.count(LatencyStage::Answer, sent, event_received);
        self.sent = None;
        Some(event_received)
    }

    /// Records that the report of the event is encoded.
    pub(super) fn report_encoded(
        &mut self,
        event_received: Option<CounterStamp>,
        recorder: Option<&mut LatencyRecorder>,
    ) {
        if let (Some(event_received), Some(recorder)) = (event_received, recorder) {
            recorder.count(LatencyStage::Encode, event_received, recorder.stamp());
            self.answered = true;
        }
    }

    pub(super) fn write_started(&self, recorder: Option<&LatencyRecorder>) -> Option<CounterStamp> {
        recorder.filter(|_| self.answered).map(LatencyRecorder::stamp)
    }

    pub(super) fn write_finished(
        &mut self,
        begun: Option<CounterStamp>,
        recorder: Option<&mut LatencyRecorder>,
    ) {
        if let (Some(begun), Some(recorder)) = (begun, recorder) {
            recorder.count(LatencyStage::Write, begun, recorder.stamp());
            self.answered = false;
        }
    }
}

impl DriveTiming<'_> {
    /// Records that the bytes have become a request.
    pub(super) fn decoded(&mut self) {
        if let (Some(received), Some(recorder)) = (self.latency.received.take(), &mut self.recorder) {
            let decoded = recorder.stamp();
            recorder.count(LatencyStage::Decode, received, decoded);
            self.decoded = Some(decoded);
        }
    }

    /// Records that the request is on its lane.
    pub(super) fn sent(&mut self, id: IntId) {
        if let (Some(decoded), Some(recorder)) = (self.decoded.take(), &mut self.recorder) {
            let sent = recorder.stamp();
            recorder.count(LatencyStage::Send, decoded, sent);
            self.latency.sent = Some((id, sent));
        }
    }
}
