//! The life of a running platform, from the first command to the last: how its threads agree on where they are.
//!
//! ```text
//! Opening ─► Open ─► Closing ─► Draining ─► Ended
//!    │        │         │          │          └ events are heard, threads end
//!    │        │         │          └ shards take what is left on their lanes, and then nothing more
//!    │        │         └ sources begin nothing new, send what they hold, and then nothing more
//!    │        └ a stop is asked for: by a signal, over http, by the time
//!    └ shards learn what they must know, readers learn what the shards know
//! ```
//!
//! Main moves the platform on when every thread has arrived: has done all it has to do in this part of the course. So
//! nothing is sent to a shard that has closed, and nothing that was said is left unheard.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Course {
    Opening,
    Open,
    Closing,
    Draining,
    Ended,
}

impl Course {
    pub const ALL: [Course; 5] =
        [Course::Opening, Course::Open, Course::Closing, Course::Draining, Course::Ended];
}

/// Why a thread asks for the end. Signals and the clock are main's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Over http.
    Asked,
    /// Whoever read our output has gone.
    NobodyListens,
    /// Something we cannot do without has failed.
    Failed(String),
    /// Another server may lead: this one says nothing more, and begins anew.
    Deposed(String),
}

/// What all threads share of it.
#[derive(Debug)]
pub struct Lifecycle {
    course: AtomicU8,
    /// Threads that have arrived, by course.
    arrived: [AtomicU32; Course::ALL.len()],
    stop: OnceLock<Stop>,
    /// One byte wakes main. Signals write here too.
    doorbell: UnixStream,
}

impl Lifecycle {
    /// A life that begins, and main's end of it.
    pub fn begin() -> io::Result<(Lifecycle, Main)> {
        let (ours, theirs) = UnixStream::pair()?;
        theirs.set_nonblocking(true)?;
        let life = Lifecycle {
            course: AtomicU8::new(Course::Opening as u8),
            arrived: Default::default(),
            stop: OnceLock::new(),
            doorbell: theirs,
        };
        Ok((life, Main { doorbell: ours }))
    }

    #[inline]
    pub fn course(&self) -> Course {
        Course::ALL[self.course.load(Ordering::Acquire) as usize]
    }

    /// For main alone, which afterwards wakes everybody.
    pub fn enter(&self, course: Course) {
        self.course.store(course as u8, Ordering::Release);
    }

    /// A thread has done what it had to do in this part of the course. Once for each.
    pub fn ack_phase(&self, course: Course) {
        self.arrived[course as usize].fetch_add(1, Ordering::AcqRel);
        self.ring_main();
    }

    pub fn arrived(&self, course: Course) -> u32 {
        self.arrived[course as usize].load(Ordering::Acquire)
    }

    /// Asks for the end. The first reason counts.
    pub fn stop(&self, why: Stop) {
        let _ = self.stop.set(why);
        self.ring_main();
    }

    pub fn stopped(&self) -> Option<&Stop> {
        self.stop.get()
    }

    /// A copy of the end that wakes main, for signals.
    pub fn doorbell(&self) -> io::Result<UnixStream> {
        self.doorbell.try_clone()
    }

    /// Wakes main, to look at what it waits for.
    pub fn ring_main(&self) {
        // If it cannot be written to, main has been rung for so often that it is awake.
        let _ = (&self.doorbell).write(&[1]);
    }
}

/// Main's end: where it waits.
#[derive(Debug)]
pub struct Main {
    doorbell: UnixStream,
}

impl Main {
    /// Waits until `is_so` or the time is over; says whether it is so. It is looked at after every ring.
    pub fn wait(&mut self, until: Option<Instant>, mut is_so: impl FnMut() -> bool) -> io::Result<bool> {
        loop {
            if is_so() {
                return Ok(true);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            self.doorbell.set_read_timeout(left)?;
            match self.doorbell.read(&mut [0; 64]) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn main_waits_until_all_have_arrived() {
        let (life, mut main) = Lifecycle::begin().unwrap();
        let life = Arc::new(life);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let life = life.clone();
                thread::spawn(move || life.ack_phase(Course::Opening))
            })
            .collect();
        assert!(main.wait(None, || life.arrived(Course::Opening) == 3).unwrap());
        assert_eq!(life.arrived(Course::Closing), 0);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn the_first_reason_to_stop_counts_and_wakes_main() {
        let (life, mut main) = Lifecycle::begin().unwrap();
        let past = Some(Instant::now());
        assert!(!main.wait(past, || life.stopped().is_some()).unwrap());
        life.stop(Stop::Asked);
        life.stop(Stop::NobodyListens);
        assert!(main.wait(None, || life.stopped().is_some()).unwrap());
        assert_eq!(life.stopped(), Some(&Stop::Asked));
    }

    #[test]
    fn a_doorbell_that_nobody_answers_does_not_block() {
        let (life, _main) = Lifecycle::begin().unwrap();
        for _ in 0..1_000_000 {
            life.ring_main();
        }
    }

    #[test]
    fn the_course_is_told_as_it_was_set() {
        let (life, _main) = Lifecycle::begin().unwrap();
        for (at, course) in Course::ALL.into_iter().enumerate() {
            assert_eq!(course as usize, at);
            life.enter(course);
            assert_eq!(life.course(), course);
        }
    }
}
