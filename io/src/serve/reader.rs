//! The reader's thread: a copy of what the shards know, for the lines that are printed.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pitlane_engine::command::{Body, Watch};
use pitlane_engine::id::{Origin, ShardId, Source};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::view::{View, ViewSettings};

use super::report::Report;
use crate::platform::EVENTS_PER_POLL_MAX;
use crate::platform::errands::Errands;
use crate::topology::bells::Bells;
use crate::topology::crew::Bed;
use crate::topology::life::{Course, Life};
use crate::wake::Bell;

/// Nothing is due here by itself; the reader is called when there is something to hear.
const SLEEP_MAX: Duration = Duration::from_secs(1);

pub struct Reader {
    port: PortEnd,
    errands: Errands,
    view: View,
    reference: Arc<RefData>,
    report: Report,
    bells: Arc<Bells>,
}

impl Reader {
    pub fn new(port: PortEnd, reference: Arc<RefData>, report: Report, bells: Arc<Bells>) -> Reader {
        let id = port.id();
        let mut errands = Errands::new(Source { origin: Origin::Server, port: id, session: 0 });
        errands.tell_all(Body::Watch { port: id, what: Watch::Everything, on: true });
        errands.tell_all(Body::Snapshot { port: id });
        let view = View::new(port.shards(), ViewSettings::default());
        Reader { port, errands, view, reference, report, bells }
    }

    pub fn start(self, bed: Bed, bell: Bell, life: Arc<Life>) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name("http".to_string()).spawn(move || {
            bed.occupy();
            self.run(&bed, &bell, &life);
        })
    }

    fn run(mut self, bed: &Bed, bell: &Bell, life: &Life) {
        let mut arrived = None;
        loop {
            let course = life.course();
            if self.poll() > 0 {
                continue;
            }
            let is_done = course != Course::Opening || self.is_complete();
            if course != Course::Open && is_done && arrived != Some(course) {
                arrived = Some(course);
                life.arrive(course);
                if course == Course::Ended {
                    return self.report.end(&self.view, &self.reference);
                }
                continue;
            }
            bell.doze();
            if self.poll() == 0 && life.course() == course {
                bed.sleep(SLEEP_MAX);
            }
            bell.rise();
        }
    }

    fn poll(&mut self) -> usize {
        let mut work = self.errands.poll(&mut self.port);
        while work < EVENTS_PER_POLL_MAX
            && let Some((shard, event)) = self.port.poll_event()
        {
            self.view.apply(shard, &event);
            self.report.hear(&self.view, &self.reference, &event);
            work += 1;
        }
        self.report.flush();
        self.bells.wake_shards(self.port.take_called());
        work
    }

    fn is_complete(&self) -> bool {
        (0..self.port.shards()).all(|shard| self.view.is_complete(ShardId(shard)))
    }
}
