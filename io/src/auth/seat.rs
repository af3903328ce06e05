//! A thread's place at the clerk's desk: questions go one way, verdicts come back, and the bells are rung.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pitlane_engine::time::Timestamp;
use rtrb::{Consumer, Producer, RingBuffer};

use super::memory::{self, Mark, Memory};
use super::{Credentials, Identity, Roll, Shared, Verdict};
use crate::wake::Bell;

/// Questions of one thread on their way. At 20 ms each a longer line would only keep clients waiting who have given up.
pub const QUESTIONS_MAX: usize = 64;

/// Too many questions are on their way: later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

#[derive(Debug)]
pub struct Question {
    pub ticket: u64,
    pub mark: Mark,
    pub credentials: Credentials,
}

#[derive(Debug)]
pub struct Answer {
    pub ticket: u64,
    pub mark: Mark,
    pub verdict: Verdict,
    /// When it was given, and of which generation of the books.
    pub given: Timestamp,
    pub generation: u64,
}

/// One thread's end.
#[derive(Debug)]
pub struct Seat {
    anybody: Option<Identity>,
    shared: Arc<Shared>,
    questions: Producer<Question>,
    answers: Consumer<Answer>,
    clerk: Bell,
    memory: Memory,
    /// Verdicts that needed no question.
    ready: VecDeque<(u64, Verdict)>,
    /// Questions and verdicts not yet polled.
    open: usize,
}

/// The clerk's end.
#[derive(Debug)]
pub struct Desk {
    pub questions: Consumer<Question>,
    /// Has room for every question that is on its way.
    pub answers: Producer<Answer>,
    pub bell: Bell,
}

pub(super) fn pair(anybody: Option<Identity>, shared: Arc<Shared>, clerk: Bell, bell: Bell) -> (Seat, Desk) {
    let (questions, asked) = RingBuffer::new(QUESTIONS_MAX);
    let (told, answers) = RingBuffer::new(QUESTIONS_MAX);
    let (memory, ready) = (Memory::default(), VecDeque::new());
    let seat = Seat { anybody, shared, questions, answers, clerk, memory, ready, open: 0 };
    (seat, Desk { questions: asked, answers: told, bell })
}

impl Seat {
    /// What everybody is, where nobody must log in. Then there is nothing to ask.
    pub fn anybody(&self) -> Option<&Identity> {
        self.anybody.as_ref()
    }

    /// Who shows these, if it was verified a moment ago.
    pub fn recall(&mut self, now: Timestamp, credentials: &Credentials) -> Option<Identity> {
        let mark = memory::mark(&self.shared.key, credentials);
        self.memory.recall(now, self.generation(), &mark).cloned()
    }

    /// Asks who shows these. The verdict comes by [`Seat::poll`] under the same ticket, whatever becomes of it.
    pub fn ask(&mut self, now: Timestamp, ticket: u64, credentials: Credentials) -> Result<(), Busy> {
        if self.open == QUESTIONS_MAX {
            return Err(Busy);
        }
        let known = self.anybody.clone().or_else(|| self.recall(now, &credentials));
        match known {
            Some(identity) => self.ready.push_back((ticket, Ok(identity))),
            None => {
                let mark = memory::mark(&self.shared.key, &credentials);
                self.questions.push(Question { ticket, mark, credentials }).map_err(|_| Busy)?;
                self.clerk.wake();
            }
        }
        self.open += 1;
        Ok(())
    }

    /// The next verdict that has come.
    pub fn poll(&mut self) -> Option<(u64, Verdict)> {
        let told = self.ready.pop_front().or_else(|| {
            let Answer { ticket, mark, verdict, given, generation } = self.answers.pop().ok()?;
            if let Ok(identity) = &verdict {
                self.memory.learn(given, generation, mark, identity.clone());
            }
            Some((ticket, verdict))
        })?;
        self.open -= 1;
        Some(told)
    }

    /// For whoever keeps a session open for somebody.
    pub fn roll(&self) -> Roll {
        Roll::new(self.shared.clone(), self.anybody.is_some())
    }

    /// Rises when the books have changed.
    pub fn generation(&self) -> u64 {
        self.shared.generation.load(Ordering::Acquire)
    }
}
