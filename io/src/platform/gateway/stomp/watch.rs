//! Timestamps on a sample of the cycles: the time of events from their lane to the socket, and of
//! client frames from their arrival to the end of their processing. See [`crate::stages`].

use crate::stages::{Recorder, Stage, Stamp};

/// The cycle being timed, one at a time, whatever the number of its events and subscribers.
#[derive(Debug, Default)]
pub struct Watch {
    /// When the first event of the cycle was taken.
    taken: Option<Stamp>,
    /// When all of its events were rendered.
    rendered: Option<Stamp>,
}

impl Watch {
    /// Starts a measurement at the first event of a cycle, if clients are connected and the cycle
    /// is sampled.
    pub fn takes(&mut self, recorder: Option<&mut Recorder>) {
        self.taken = recorder.and_then(Recorder::sample_turn);
    }

    /// Records that all events of the cycle are rendered.
    pub fn rendered(&mut self, recorder: Option<&mut Recorder>) {
        if let (Some(taken), Some(recorder)) = (self.taken.take(), recorder) {
            let rendered = recorder.stamp();
            recorder.count(Stage::StompRender, taken, rendered);
            self.rendered = Some(rendered);
        }
    }

    /// Records that the clients with output have been written to.
    pub fn wrote(&mut self, recorder: Option<&mut Recorder>) {
        if let (Some(rendered), Some(recorder)) = (self.rendered.take(), recorder) {
            recorder.count(Stage::StompWrite, rendered, recorder.stamp());
        }
    }
}

/// Starts a measurement on a client's bytes; the result is passed to [`done`].
pub fn came(recorder: Option<&mut Recorder>) -> Option<Stamp> {
    recorder.and_then(Recorder::sample_turn)
}

/// Records that the bytes have been processed.
pub fn done(came: Option<Stamp>, recorder: Option<&mut Recorder>) {
    if let (Some(came), Some(recorder)) = (came, recorder) {
        recorder.count(Stage::StompDecode, came, recorder.stamp());
    }
}
