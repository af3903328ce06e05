//! `pitlane serve`: a platform on the real clock, from its first line to its last.
//!
//! ```text
//! journal recovered ─► certificate, listeners ─► threads ─► Opening: every thread has its initial state ─► Open: "ready"
//!        a stop is requested ─► Closing ─► Draining ─► Ended ─► "stopped"
//! ```

mod acceptor;
mod refdata_reload;
mod standby;
mod start;
mod store;
mod venues;
mod housekeeping;
mod watchdog;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pitlane_auth::audit::AuditError;
use pitlane_config::refdata;
use pitlane_config::{Config, ConfigFaults, Params};
use pitlane_engine::index::index_u32;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_gateway::binance::BinanceVenueSettings;
use pitlane_gateway::fix::message_log::FixLogThread;
use pitlane_gateway::fix::venue::{VenueSessionError, VenueSessionSettings};
use pitlane_gateway::printer::Printer;
use pitlane_http::{Remote, ServicePhase, ServiceStatus};
use pitlane_journal::{Fault, Lock, io_advice};
use pitlane_net::tls::TlsError;
use pitlane_runtime::clock::{self, Clock};
use pitlane_runtime::lifecycle::{Lifecycle, LifecyclePhase, Main, StopReason};
use pitlane_runtime::log::Events;
use pitlane_runtime::service_manager::ServiceManager;
use pitlane_runtime::wakeup::{Wakeup, wake_all};
use pitlane_strategy::Registry;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

use self::housekeeping::Housekeeper;
use self::refdata_reload::RefDataReloader;
use self::standby::StandbyMember;
pub use self::start::auth_settings;
use self::store::RecoveredState;
use self::watchdog::Watchdog;
use crate::port_owner::PortOwner;

/// Time limit of an orderly stop. Work that is not done by then is in the journal and is done after
/// the next start.
const END_MAX: Duration = Duration::from_secs(5);

/// Time by which the journal may be ahead of the wall clock without a warning: two machines of a
/// cluster differ by less.
const AHEAD_NS_MAX: u64 = NS_PER_S;

#[derive(Clone, Debug)]
pub struct ServeSettings {
    pub config: Config,
    /// Every setting, for display.
    pub params: Params,
    /// The kinds of strategies that this program knows.
    pub registry: Registry,
    /// Whether only the first and the last line are printed.
    pub quiet: bool,
    /// Time after `ready` at which the service stops.
    pub time: Option<Duration>,
}

/// Reason why the service could not start or did not stop in order.
#[derive(Debug)]
pub enum ServeError {
    /// A resource of the system is not available: a thread, a folder, a port.
    System(String, io::Error),
    /// Another process, or another part of this one, listens on an address of the settings.
    PortInUse {
        key: &'static str,
        address: SocketAddr,
        /// None: the kernel does not show it.
        owner: Option<PortOwner>,
    },
    Journal(Fault),
    Tls(TlsError),
    /// A file of users or tokens has a fault.
    Auth(refdata::RefDataFaults),
    /// A strategy of the settings cannot be added to the reference data.
    Settings(ConfigFaults),
    Audit(AuditError),
    /// A part of the service failed.
    Failed(String),
    /// Another server may lead: this one restarts, to follow.
    Deposed(String),
    /// The service did not stop in time.
    Late(LifecyclePhase),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(f)?;
        match self.disk_error() {
            Some(error) => write!(f, "\n  {}", io_advice(error)),
            None => Ok(()),
        }
    }
}

impl ServeError {
    /// Returns the error of a file system that is full or read-only; those of the journal have
    /// their own advice.
    fn disk_error(&self) -> Option<&io::Error> {
        let error = match self {
            ServeError::System(_, error)
            | ServeError::Tls(TlsError::Io(_, error))
            | ServeError::Audit(AuditError::Io(_, error)) => error,
            ServeError::PortInUse { .. }
            | ServeError::Journal(_)
            | ServeError::Tls(_)
            | ServeError::Auth(_)
            | ServeError::Settings(_)
            | ServeError::Audit(_)
            | ServeError::Failed(_)
            | ServeError::Deposed(_)
            | ServeError::Late(_) => return None,
        };
        let kinds =
            [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::ReadOnlyFilesystem];
        kinds.contains(&error.kind()).then_some(error)
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::System(what, error) => write!(f, "{what}: {error}"),
            ServeError::PortInUse { key, address, owner } => {
                write!(f, "{key}: {address} is in use")?;
                if let Some(owner) = owner {
                    write!(f, ": {owner}")?;
                }
                write!(
                    f,
                    "\n  stop it, or choose another address: --set {key}=HOST:PORT (port 0 takes any free one)"
                )
            }
            ServeError::Journal(fault) => write!(f, "{fault}"),
            ServeError::Tls(error) => write!(f, "{error}"),
            ServeError::Auth(faults) => write!(f, "{faults}"),
            ServeError::Settings(faults) => write!(f, "{faults}"),
            ServeError::Audit(error) => write!(f, "the audit log: {error}"),
            ServeError::Failed(reason) => f.write_str(reason),
            ServeError::Deposed(reason) => write!(f, "no longer the leader: {reason}"),
            ServeError::Late(phase) => {
                write!(f, "not stopped after {END_MAX:?}: stuck in {phase:?}")
            }
        }
    }
}

impl From<Fault> for ServeError {
    fn from(fault: Fault) -> ServeError {
        ServeError::Journal(fault)
    }
}

impl From<TlsError> for ServeError {
    fn from(error: TlsError) -> ServeError {
        ServeError::Tls(error)
    }
}

fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServeError {
    |error| ServeError::System(what.into(), error)
}

/// Runs until the time is over or a stop is requested; a second signal ends the process at once.
/// `reference` has what the files say; strategies that only the settings name are added here. `log`
/// has the log events since the start, for subscribers of the log.
pub fn serve(
    settings: &ServeSettings,
    reference: &Arc<RefData>,
    log: Option<Events>,
) -> Result<(), ServeError> {
    let (lifecycle, mut main) = Lifecycle::begin().map_err(system("cannot begin"))?;
    let lifecycle = Arc::new(lifecycle);
    let signalled = stop_by_signal(&lifecycle).map_err(system("cannot receive signals"))?;
    let wait = StopConditions { signalled, time: settings.time };
    let mut manager = ServiceManager::from_environment();
    let config = &settings.config;
    let folder = store::make_folder(config);
    folder.map_err(system(format!("service.data_dir {}", config.service.data_dir.display())))?;
    let mut standby = StandbyMember::open(config, &lifecycle)?;
    let reference = match &mut standby {
        // A long time may have passed since the files were read.
        Some(standby) => match standby.wait_to_lead(&lifecycle, &mut main, &wait, &mut manager)? {
            true => &refdata_reload::read_current(settings, reference),
            false => return Ok(()),
        },
        None => reference,
    };
    // The folder is this server's now, so that the ids of earlier starts can be read.
    let reference = &refdata_reload::with_strategies(settings, reference).map_err(ServeError::Settings)?;
    let now = Clock::new().now();
    let wrong = |error: VenueSessionError| ServeError::System(error.key, io::Error::other(error.problem));
    let venues = (
        VenueSessionSettings::all(config).map_err(wrong)?,
        BinanceVenueSettings::all(config).map_err(wrong)?,
    );
    let store = RecoveredState::open(config, venues, reference, now, &mut manager)?;
    if let Some(standby) = &mut standby
        && !standby.wait_until_shipped(&store, &lifecycle, &mut main, &wait, &mut manager)?
    {
        return Ok(());
    }
    let now = not_before(store.last(), now);
    let mut running = start::start(settings, store, now, &lifecycle, log, standby)?;
    running.watchdog = Watchdog::new(manager, lifecycle.clone());
    running.run(&lifecycle, main, &wait)
}

/// Returns the time of this start: not before the last command of the journal, even if the wall
/// clock was set back since.
fn not_before(last: Timestamp, now: Timestamp) -> Timestamp {
    let ahead_ns = last.since(now);
    if ahead_ns > AHEAD_NS_MAX {
        let (ahead_s, catch_up_s) = (ahead_ns / NS_PER_S, clock::catch_up_ns(ahead_ns) / NS_PER_S);
        tracing::warn!(
            ahead_s,
            catch_up_s,
            "the journal is ahead of the wall clock: the service begins at its last time, {last}, and slows down by a hundredth \
             until the wall clock has caught up. If the clock was wrong then, GTD orders and sessions are early by as much"
        );
    }
    last.max(now)
}

/// The signals wake main; the second signal finds the flag set and ends the process.
fn stop_by_signal(lifecycle: &Lifecycle) -> io::Result<Arc<AtomicBool>> {
    let signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, signalled.clone())?;
        flag::register(signal, signalled.clone())?;
        pipe::register(signal, lifecycle.wake_socket()?)?;
    }
    Ok(signalled)
}

/// SIGHUP requests a reload of certificate, users and tokens, and wakes main at once.
fn reload_by_signal(lifecycle: &Lifecycle) -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    // The flag is registered first: main must find it set when it wakes.
    flag::register(SIGHUP, asked.clone())?;
    pipe::register(SIGHUP, lifecycle.wake_socket()?)?;
    Ok(asked)
}

/// Conditions on which main waits.
struct StopConditions {
    signalled: Arc<AtomicBool>,
    /// Time limit, counted from `ready`.
    time: Option<Duration>,
}

impl StopConditions {
    fn is_over(&self, lifecycle: &Lifecycle) -> bool {
        self.signalled.load(Ordering::Relaxed) || lifecycle.stopped().is_some()
    }
}

/// Returns an error if this server must not lead any longer: then it sends nothing more, not even
/// an orderly stop.
fn check_lead(lifecycle: &Lifecycle) -> Result<(), ServeError> {
    match lifecycle.stopped() {
        Some(StopReason::Deposed(reason)) => Err(ServeError::Deposed(reason.clone())),
        Some(StopReason::Asked | StopReason::OutputClosed | StopReason::Failed(_)) | None => Ok(()),
    }
}

/// The started threads.
struct RunningServer {
    /// Wake-ups of all threads of the platform.
    wakeups: Vec<Wakeup>,
    remote: Remote,
    status: Arc<ServiceStatus>,
    housekeeper: Housekeeper,
    reloader: RefDataReloader,
    /// All threads that take part in the phases.
    threads: Vec<JoinHandle<()>>,
    printer: Printer,
    printing: JoinHandle<()>,
    /// Threads that end after the http thread.
    recordings: Vec<JoinHandle<()>>,
    ready: String,
    watchdog: Watchdog,
    _lock: Option<Lock>,
    /// Announces that another server may lead, when everything is written.
    standby: Option<StandbyMember>,
    /// Writes its pending data when this is dropped.
    _fix_log: FixLogThread,
}

impl RunningServer {
    /// Waits until all threads are ready, then for the stop, then for the end.
    fn run(mut self, lifecycle: &Lifecycle, mut main: Main, wait: &StopConditions) -> Result<(), ServeError> {
        let all = index_u32(self.threads.len());
        let is_open = || lifecycle.acknowledged(LifecyclePhase::Opening) == all;
        self.wait(&mut main, None, || wait.is_over(lifecycle) || is_open())?;
        check_lead(lifecycle)?;
        if is_open() {
            // A client that reads the line may send a request at once, and lines about orders
            // follow this line.
            self.status.set_phase(ServicePhase::Running);
            self.printer.begin(format!("{}\n", self.ready));
            self.enter(lifecycle, LifecyclePhase::Open);
            self.watchdog.open(&self.ready);
            let until = wait.time.map(|time| Instant::now() + time);
            self.wait(&mut main, until, || wait.is_over(lifecycle))?;
            check_lead(lifecycle)?;
        }
        let until = Some(Instant::now() + END_MAX);
        for phase in [LifecyclePhase::Closing, LifecyclePhase::Draining, LifecyclePhase::Ended] {
            self.enter(lifecycle, phase);
            if !self.wait(&mut main, until, || lifecycle.acknowledged(phase) == all)? {
                return Err(ServeError::Late(phase));
            }
        }
        self.end(lifecycle, until)
    }

    /// Waits, and checks journal, certificate and users meanwhile.
    fn wait(
        &mut self,
        main: &mut Main,
        until: Option<Instant>,
        mut condition: impl FnMut() -> bool,
    ) -> Result<bool, ServeError> {
        loop {
            let threads = index_u32(self.threads.len());
            self.watchdog.poll(threads, &self.remote);
            let interval = self.watchdog.interval().unwrap_or(housekeeping::EVERY);
            let next_check = Instant::now() + housekeeping::EVERY.min(interval);
            let next = until.map_or(next_check, |until| until.min(next_check));
            let (reloader, housekeeper) = (&self.reloader, &self.housekeeper);
            let is_asked = || reloader.is_requested() || housekeeper.is_reload_requested();
            main.wait(Some(next), || condition() || is_asked()).map_err(system("cannot wait"))?;
            if condition() {
                return Ok(true);
            }
            self.reloader.poll();
            self.housekeeper.reload_if_requested();
            if Instant::now() < next {
                continue;
            }
            self.housekeeper.check();
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(false);
            }
        }
    }

    fn enter(&mut self, lifecycle: &Lifecycle, phase: LifecyclePhase) {
        lifecycle.enter(phase);
        match phase {
            LifecyclePhase::Opening | LifecyclePhase::Open | LifecyclePhase::Draining => {}
            LifecyclePhase::Closing => {
                self.status.set_phase(ServicePhase::Stopping);
                self.watchdog.stop();
                self.remote.close();
            }
            LifecyclePhase::Ended => self.remote.end(),
        }
        wake_all(&self.wakeups);
    }

    /// All threads have ended; their last lines are printed.
    fn end(self, lifecycle: &Lifecycle, until: Option<Instant>) -> Result<(), ServeError> {
        drop(self.printer);
        for thread in self.threads {
            thread.join().map_err(|_| ServeError::Failed("a thread has failed".to_string()))?;
        }
        drop(self.standby);
        let is_recorded = || self.recordings.iter().all(JoinHandle::is_finished);
        let is_written = || self.printing.is_finished() && is_recorded();
        while !is_written() && until.is_none_or(|until| Instant::now() < until) {
            // No thread wakes main when the last line is written; the reader of that line has
            // waited longer than this.
            thread::sleep(Duration::from_millis(1));
        }
        match lifecycle.stopped() {
            Some(StopReason::Failed(reason)) => Err(ServeError::Failed(reason.clone())),
            Some(StopReason::Deposed(reason)) => Err(ServeError::Deposed(reason.clone())),
            Some(StopReason::Asked | StopReason::OutputClosed) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use signal_hook::low_level::raise;

    use super::*;

    #[test]
    fn a_signal_to_reload_wakes_main_at_once() {
        let (lifecycle, mut main) = Lifecycle::begin().unwrap();
        let asked = reload_by_signal(&lifecycle).unwrap();
        raise(SIGHUP).unwrap();
        // There is no deadline: only the signal itself can end this wait.
        assert!(main.wait(None, || asked.load(Ordering::Relaxed)).unwrap());
        let mut looks = 0;
        raise(SIGHUP).unwrap();
        let second_look = || {
            looks += 1;
            looks == 2
        };
        assert!(main.wait(None, second_look).unwrap(), "main is woken even if it looked just before");
    }
}
