//! `pitlane serve`: a platform on the real clock, from its first line to its last.
//!
//! ```text
//! threads ─► Opening: all know what they must ─► Open: "ready" ─► a stop is asked for ─► Closing, Draining, Ended ─► "stopped"
//! ```

mod reader;
mod report;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pitlane_engine::refdata::RefData;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

use self::reader::Reader;
use self::report::Report;
use crate::clock::Clock;
use crate::config::Config;
use crate::platform::{Parts, PlatformSettings};
use crate::printer::Printer;
use crate::topology::Plan;
use crate::topology::bells::Bells;
use crate::topology::crew::{Bed, pin};
use crate::topology::life::{Course, Life, Main, Stop};

/// How long an orderly end may take. What is not done by then is in the journal, and is done after the next start.
const END_MAX: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct ServeSettings {
    pub config: Config,
    /// Print the first and the last line only.
    pub quiet: bool,
    /// End after so long.
    pub time: Option<Duration>,
}

/// Why it could not start, or did not end in good order.
#[derive(Debug)]
pub enum ServeError {
    /// A thread, a signal or a socket could not be had.
    System(&'static str, io::Error),
    /// It had to end.
    Failed(String),
    /// It did not end in time.
    Late(Course),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::System(what, error) => write!(f, "{what}: {error}"),
            ServeError::Failed(why) => f.write_str(why),
            ServeError::Late(course) => {
                write!(f, "not ended in good order after {END_MAX:?}: stuck in {course:?}")
            }
        }
    }
}

/// Runs until the time is up or a stop is asked for; a second signal ends the process at once.
pub fn serve(settings: &ServeSettings, reference: &Arc<RefData>) -> Result<(), ServeError> {
    let (life, mut main) = Life::begin().map_err(|error| ServeError::System("cannot begin", error))?;
    let life = Arc::new(life);
    let signalled =
        stop_by_signal(&life).map_err(|error| ServeError::System("cannot hear signals", error))?;
    let begun = Instant::now();
    let running = Running::start(settings, reference, &life)
        .map_err(|error| ServeError::System("cannot start a thread", error))?;
    let wait = Wait { signalled, until: settings.time.map(|time| begun + time) };
    running.run(&life, &mut main, &wait, &ready_line(settings, reference))
}

fn ready_line(settings: &ServeSettings, reference: &RefData) -> String {
    let (securities, exchanges) = (reference.securities().len(), reference.exchanges().len());
    let (shards, seed) = (settings.config.topology.shards, settings.config.service.seed);
    format!("ready securities={securities} exchanges={exchanges} shards={shards} seed={seed} durability=none")
}

/// Signals ring for main; the second one finds the flag set and ends the process.
fn stop_by_signal(life: &Life) -> io::Result<Arc<AtomicBool>> {
    let signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, signalled.clone())?;
        flag::register(signal, signalled.clone())?;
        pipe::register(signal, life.doorbell()?)?;
    }
    Ok(signalled)
}

/// The threads, once started.
struct Running {
    bells: Arc<Bells>,
    /// Of shards, gateways and the reader.
    threads: Vec<JoinHandle<()>>,
    printer: Printer,
    printing: JoinHandle<()>,
}

impl Running {
    fn start(settings: &ServeSettings, reference: &Arc<RefData>, life: &Arc<Life>) -> io::Result<Running> {
        let topology = &settings.config.topology;
        let platform = &PlatformSettings::of(&settings.config, reference);
        pin(topology.main_cores.first().copied());
        let bed = Bed::default();
        let bell = bed.bell();
        let plan = Plan::new(topology.clone(), bell.clone());
        let bells = plan.bells.clone();
        let born = Parts::newborn(reference, platform);
        let parts = Parts::new(Clock::new().now(), reference, platform, born, &bells);
        let (printer, printing) = Printer::start(life.clone())?;
        let report = Report::new(printer.clone(), settings.quiet);
        let reader = Reader::new(parts.http, reference.clone(), report, bells.clone());
        let mut threads = plan.start(parts.shards, parts.gateways, life)?;
        threads.push(reader.start(bed, bell, life.clone())?);
        Ok(Running { bells, threads, printer, printing })
    }

    /// Waits until all threads have arrived, then for the stop, then for the end.
    fn run(mut self, life: &Life, main: &mut Main, wait: &Wait, ready: &str) -> Result<(), ServeError> {
        let failed = |error| ServeError::System("cannot wait", error);
        let all = self.threads.len() as u32;
        let is_open = || life.arrived(Course::Opening) == all;
        main.wait(wait.until, || wait.is_over(life) || is_open()).map_err(failed)?;
        if is_open() {
            self.printer.print(&mut format!("{ready}\n"));
            self.enter(life, Course::Open);
            main.wait(wait.until, || wait.is_over(life)).map_err(failed)?;
        }
        let until = Instant::now() + END_MAX;
        for course in [Course::Closing, Course::Draining, Course::Ended] {
            self.enter(life, course);
            if !main.wait(Some(until), || life.arrived(course) == all).map_err(failed)? {
                return Err(ServeError::Late(course));
            }
        }
        drop(self.printer);
        for thread in self.threads {
            thread.join().map_err(|_| ServeError::Failed("a thread has failed".to_string()))?;
        }
        while !self.printing.is_finished() && Instant::now() < until {
            // Nobody rings for the end of the last line; whoever reads it has waited longer.
            thread::sleep(Duration::from_millis(1));
        }
        match life.stopped() {
            Some(Stop::Failed(why)) => Err(ServeError::Failed(why.clone())),
            Some(Stop::Signal | Stop::Asked | Stop::TimeUp | Stop::NobodyListens) | None => Ok(()),
        }
    }

    fn enter(&self, life: &Life, course: Course) {
        life.enter(course);
        self.bells.wake_all();
    }
}

/// What main waits for.
struct Wait {
    signalled: Arc<AtomicBool>,
    until: Option<Instant>,
}

impl Wait {
    fn is_over(&self, life: &Life) -> bool {
        self.signalled.load(Ordering::Relaxed) || life.stopped().is_some()
    }
}
