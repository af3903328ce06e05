//! Stamps on one turn in so many: how long events take from their lane to the system, and what clients say to its being done. See
//! [`crate::stages`].

use crate::stages::{Recorder, Stage, Stamp};

/// What is being timed. A turn at a time, whatever the number of its events and of those who hear them.
#[derive(Debug, Default)]
pub struct Watch {
    /// The first event of the turn was taken.
    taken: Option<Stamp>,
    /// All of its events are rendered.
    rendered: Option<Stamp>,
}

impl Watch {
    /// The first event of a turn is taken, and somebody may want it.
    pub fn takes(&mut self, recorder: Option<&mut Recorder>) {
        self.taken = recorder.and_then(Recorder::sample_turn);
    }

    /// All events of the turn have been told.
    pub fn rendered(&mut self, recorder: Option<&mut Recorder>) {
        if let (Some(taken), Some(recorder)) = (self.taken.take(), recorder) {
            let rendered = recorder.stamp();
            recorder.count(Stage::StompRender, taken, rendered);
            self.rendered = Some(rendered);
        }
    }

    /// Everybody who had something to hear was written to.
    pub fn wrote(&mut self, recorder: Option<&mut Recorder>) {
        if let (Some(rendered), Some(recorder)) = (self.rendered.take(), recorder) {
            recorder.count(Stage::StompWrite, rendered, recorder.stamp());
        }
    }
}

/// Bytes of a client have come; to be given to [`done`].
pub fn came(recorder: Option<&mut Recorder>) -> Option<Stamp> {
    recorder.and_then(Recorder::sample_turn)
}

/// What they say is done.
pub fn done(came: Option<Stamp>, recorder: Option<&mut Recorder>) {
    if let (Some(came), Some(recorder)) = (came, recorder) {
        recorder.count(Stage::StompDecode, came, recorder.stamp());
    }
}
