//! The start: creates every part, connects it to the others, and starts its thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use pitlane_auth::audit::{Anchor, AuditWriter, Link};
use pitlane_auth::{Auth, AuthSettings};
use pitlane_config::{Config, Durability, IdleBy, Layout, ServiceMode};
use pitlane_engine::codec;
use pitlane_engine::command::AuditAnchor;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::EndedDay;
use pitlane_gateway::FEED;
use pitlane_gateway::gateway::Gateway;
use pitlane_gateway::gateway::fix::FixEndpoint;
use pitlane_gateway::gateway::listeners::{GatewayListeners, ListenerProtocol};
use pitlane_gateway::gateway::stomp::StompEndpoint;
use pitlane_gateway::notifications::{NotificationChannel, channels};
use pitlane_gateway::printer::Printer;
use pitlane_gateway::reload::RELOADS_MAX;
use pitlane_gateway::report::OrderReportPrinter;
use pitlane_gateway::stomp::{self, Logins};
use pitlane_gateway::strategies;
use pitlane_gateway::{PlatformParts, PlatformSettings, connect_copies};
use pitlane_history::{HistorySettings, HistoryStart};
use pitlane_http::{
    ClusterParts, HttpEvent, HttpParts, HttpServer, HttpSettings, RefDataReloads, Remote,
    RemoteStrategiesParts, ServiceStatus, next_incarnation,
};
use pitlane_journal::disk::Disk;
use pitlane_journal::metadata::JournalMetadata;
use pitlane_journal::{Fault, header};
use pitlane_market_data::pace::Pace;
use pitlane_market_data::record::{self, MarketRecorder};
use pitlane_market_data::recorded_rows::RecordedRows;
use pitlane_market_data::replay::MarketReplay;
use pitlane_net::listener::BoundAddress;
use pitlane_net::settings::NetSettings;
use pitlane_net::tls::{Certificate, Tls, TlsError, TlsSettings};
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_runtime::clock::Clock;
use pitlane_runtime::lifecycle::{Lifecycle, LifecyclePhase, StopReason};
use pitlane_runtime::log::Events;
use pitlane_runtime::mailbox::mailbox;
use pitlane_runtime::metrics::{Registry, StageReport};
use pitlane_runtime::stages::LatencyReader;
use pitlane_runtime::thread_class::ThreadClass;
use pitlane_runtime::wakeups::Wakeups;

use super::housekeeping::Housekeeper;
use super::refdata_reload::RefDataReloader;
use super::standby::StandbyMember;
use super::store::{JournalParts, RecoveredState};
use super::watchdog::Watchdog;
use super::{RunningServer, ServeError, ServeSettings, reload_by_signal, system};
use crate::port_owner::PortOwner;
use crate::topology::ThreadPlan;
use crate::topology::worker_thread::{Duty, ThreadSpec, pin};

pub(super) fn start(
    settings: &ServeSettings,
    store: RecoveredState,
    now: Timestamp,
    lifecycle: &Arc<Lifecycle>,
    log: Option<Events>,
    standby: Option<StandbyMember>,
) -> Result<RunningServer, ServeError> {
    let config = &settings.config;
    let topology = &config.topology;
    pin(topology.main_cores.first().copied());
    let RecoveredState {
        mut recovered,
        reference,
        configured,
        journal_parts,
        numbers,
        rest_numbers,
        id_supply,
        acceptor,
        venues,
        past,
        remote_numbers,
    } = store;
    let remote = Remote::new();
    let plan = ThreadPlan::new(topology.clone(), &config.own_shards(), remote.wakeup().clone());
    let wakeups = plan.wakeups.clone();
    let registry = Arc::new(Registry::new(topology.shards));
    let formats = vec![("image", codec::FORMAT), ("journal", header::FORMAT), ("state", codec::STATE_FORMAT)];
    let status = Arc::new(ServiceStatus::new(now, config.durability(), formats));

    if let Some(standby) = &standby {
        standby.set_shard_wakeups(wakeups.shards.clone());
        status.set_standby(standby.state().clone());
    }
    let (mut specs, mut healths, mut lock) = (Vec::new(), Vec::new(), None);
    if let Some(JournalParts { syncer, segment_manager, healths: all, lock: held }) = journal_parts {
        let core = topology.journal_cores.first().copied();
        specs.extend(JournalParts::thread_specs(
            syncer,
            segment_manager,
            &mut recovered,
            &wakeups,
            (core, config.durability()),
            standby.as_deref(),
        ));
        (healths, lock) = (all, Some(held));
    }
    let anchored = recovered.iter().find_map(|recovered| recovered.shard.audit_anchor());
    let platform = PlatformSettings { numbers, ..PlatformSettings::of(config, &reference) };
    let hosts = strategies::hosts(&platform.strategies, &reference, &settings.registry);
    let running_days =
        recovered.iter().filter_map(|recovered| EndedDay::of_running(&recovered.shard)).collect();
    let mut parts = PlatformParts::new(now, &reference, &platform, recovered, &wakeups, &registry, hosts);
    let replay = MarketReplay::open(&config.replay, &config.simulation, &reference);
    let replay =
        replay.map_err(|error| ServeError::System("replay.data".to_string(), io::Error::other(error)))?;
    let far_past = if config.cluster.is_on() { past.clone() } else { Vec::new() };
    let is_distributed = config.service.mode == ServiceMode::Distributed;
    let mut remote_strategies = is_distributed
        .then(|| RemoteStrategiesParts::of(config, past, acceptor.reported.clone(), remote_numbers));
    if let Some(remote) = &mut remote_strategies {
        remote.open_generic_log(config, now).map_err(system("cannot open the events between strategies"))?;
    }
    if let Some(market) = &mut parts.gateways[0].market {
        market.set_replay(replay);
        // As fast as the receivers accept the data: those in other processes, if there are any.
        let is_paced = market.is_replay() && config.replay.speed_permille.is_none();
        if let Some(remote) = remote_strategies.as_mut().filter(|_| is_paced) {
            let pace = Arc::new(Pace::new(wakeups.ports[FEED.0 as usize].clone()));
            market.set_pace(pace.clone());
            remote.pace = Some(pace);
        }
    }
    let mut cluster = ClusterParts::of(config, &configured, parts.remote_shards, &wakeups);
    if let Some(cluster) = &mut cluster {
        (cluster.past, cluster.reported) = (far_past, acceptor.least_reported()?);
        cluster.incarnation = start_number(config, now)?;
    }
    let tls = open_tls(config, now)?;
    let listeners_bound =
        GatewayListeners::bind(config, tls.as_deref()).map_err(|failed| listen_error(config, failed))?;
    let mut listeners = listeners_bound.listeners();
    let mut auth = Auth::open(auth_settings(config, &reference)).map_err(ServeError::Auth)?;
    let (endpoints, mut fix_log_writer) = match listeners_bound.has_protocol(ListenerProtocol::Fix) {
        true => acceptor.endpoints(now, config, &reference, &wakeups, &mut auth)?,
        false => Default::default(),
    };
    let venues = venues.connectors(now, config, &reference, &mut fix_log_writer)?;
    for (gateway, connector) in parts.gateways.iter_mut().zip(venues) {
        connector.into_iter().for_each(|connector| gateway.attach_venue(connector));
    }
    let fix_log = fix_log_writer.start().map_err(system(NO_THREAD))?;
    let links = (&*wakeups, &remote, endpoints);
    let posts = attach_clients(config, &reference, &mut parts.gateways, listeners_bound, &mut auth, links)
        .map_err(system("cannot share a listener"))?;
    connect_copies(&parts.gateways, &mut parts.shards);
    specs.extend(plan.thread_specs(parts.shards, parts.gateways, &NetSettings::of(&config.net)));

    let mut audit_writer = AuditWriter::open(&config.service.data_dir, now).map_err(ServeError::Audit)?;
    if let Some(AuditAnchor { log, line, hash }) = anchored {
        let anchored = Anchor { log, line, hash: Link(hash) };
        audit_writer.compare(anchored, standby.is_some()).map_err(ServeError::Audit)?;
    }

    let (printer, printing) = Printer::start(lifecycle.clone()).map_err(system(NO_THREAD))?;
    let begin = |path: &Option<PathBuf>, content, key| {
        let begun = path.as_deref().map(|path| record::start(path, content)).transpose();
        begun.map_err(system(key)).map(Option::unzip)
    };
    let (ticks, ticks_thread) = begin(&config.record.file, RecordedRows::Ticks, "record.file")?;
    let (levels, levels_thread) =
        begin(&config.record.levels_file, RecordedRows::Levels, "record.levels_file")?;
    let recorder = MarketRecorder::new(ticks, levels);
    let history = HistorySettings::of(config).map(|settings| {
        let clock = Clock::starting_at(now);
        pitlane_history::start(HistoryStart {
            settings,
            reference: &reference,
            clock,
            registry: registry.clone(),
        })
    });
    let history = history.transpose().map_err(system("cannot open the history of the market"))?;
    let (history, history_thread) =
        history.map(|(recorder, client, thread)| ((recorder, client), thread)).unzip();
    let (answered, answers) = mailbox(RELOADS_MAX, remote.wakeup().clone());
    let reload_requested = Arc::new(AtomicBool::new(false));
    let reloader = RefDataReloader {
        config: config.clone(),
        params: settings.params.clone(),
        registry: settings.registry.clone(),
        current: reference.clone(),
        requested: reload_requested.clone(),
        shards: parts.reloads.shards,
        answers: answered,
    };
    let http = HttpParts {
        running_days,
        port: parts.http,
        wakeups: wakeups.shards.clone(),
        reference: reference.clone(),
        remote: remote.clone(),
        registry: registry.clone(),
        service_status: status.clone(),
        stages: stage_report(parts.stages),
        report: Some(OrderReportPrinter::new(printer.clone(), settings.quiet, recorder)),
        numbers: rest_numbers,
        reloads: Some(RefDataReloads::new(answers, parts.reloads.gateways)),
        tls: tls.clone(),
        auth_client: auth.client(remote.wakeup().clone()),
        notification_channels: posts,
        log,
        audit: Some(audit_writer.client_with_anchors(auth.wakeup().clone(), remote.wakeup().clone())),
        clock: Clock::starting_at(now),
        recorder: parts.http_recorder,
        remote_strategies,
        cluster,
        history,
        send_event: http_event_handler(lifecycle.clone(), reload_requested),
    };
    let http = HttpServer::bind(HttpSettings::of(config, &settings.params), http)
        .map_err(|failed| listen_error(config, failed))?;
    listeners.splice(0..0, http.listeners().iter().copied());
    let ready = ready_line(config, &reference, &listeners);
    status.set_listeners(listeners);

    let auth_reload = auth.reload();
    specs.push(auth_thread(auth, audit_writer, topology.main_cores.first().copied()));
    let thread_wakeups = specs.iter().map(|spec| spec.wakeup.clone()).collect();
    let start = |spec: ThreadSpec| spec.start(lifecycle.clone(), now);
    let threads: io::Result<Vec<_>> = specs.into_iter().map(start).collect();
    let mut threads = threads.map_err(system(NO_THREAD))?;
    let core = topology.http_cores.first().copied();
    threads.push(start_http(http, core, lifecycle.clone()).map_err(system(NO_THREAD))?);
    let reload = reload_by_signal(lifecycle).map_err(system("cannot receive signals"))?;
    let data_dir = config.service.data_dir.clone();
    let housekeeper = Housekeeper::new(healths, registry, status.clone(), data_dir, id_supply).with_reload(
        reload,
        tls,
        auth_reload,
    );
    Ok(RunningServer {
        wakeups: thread_wakeups,
        remote,
        status,
        housekeeper,
        reloader,
        threads,
        printer,
        printing,
        recordings: ticks_thread.into_iter().chain(levels_thread).chain(history_thread).collect(),
        ready,
        watchdog: Watchdog::default(),
        _lock: lock,
        standby,
        _fix_log: fix_log,
    })
}

const NO_THREAD: &str = "cannot start a thread";

/// Returns the settings of authentication, with the names of all strategies.
pub fn auth_settings(config: &Config, reference: &RefData) -> AuthSettings {
    AuthSettings::of(config, reference.strategies().iter().map(|row| row.name.clone()).collect())
}

/// Describes why a listener could not be bound; for a port in use, who listens there.
fn listen_error(config: &Config, (key, error): (&'static str, io::Error)) -> ServeError {
    let address = config.listeners().into_iter().find(|(other, ..)| *other == key).map(|found| found.1);
    match address.filter(|_| error.kind() == io::ErrorKind::AddrInUse) {
        Some(address) => {
            ServeError::PortInUse { key, address, owner: PortOwner::find(Path::new("/"), address) }
        }
        None => ServeError::System(key.to_string(), error),
    }
}

/// The thread `auth`, which authenticates clients and writes the audit log. It is separate from the
/// shards: a password takes 20 ms, during which threads on the same core must not wait.
fn auth_thread(auth: Auth, mut audit_writer: AuditWriter, core: Option<u32>) -> ThreadSpec {
    let (mut authenticator, wakeup_slot, wakeup) = auth.into_parts();
    authenticator.set_audit(audit_writer.client(wakeup.clone(), wakeup.clone()));
    // The audit writer is first: an action waits for at most one password.
    let duties =
        vec![Duty::AuditWriter(Box::new(audit_writer)), Duty::Authenticator(Box::new(authenticator))];
    let (name, idle) = ("auth".to_string(), IdleBy::Park);
    ThreadSpec { name, duties, idle, core, wakeup_slot, wakeup, net: None, class: ThreadClass::Computation }
}

/// Returns the number of this start among those of a member of a cluster.
fn start_number(config: &Config, now: Timestamp) -> Result<u64, Fault> {
    let notes = match config.durability() {
        Durability::None => None,
        Durability::Os | Durability::Disk | Durability::Replicated => {
            Some(JournalMetadata::open(&Disk::Real, &config.service.data_dir)?)
        }
    };
    next_incarnation(notes.as_ref(), now)
}

/// Opens the certificate if a listener uses TLS.
fn open_tls(config: &Config, now: Timestamp) -> Result<Option<Arc<Tls>>, TlsError> {
    if !config.listeners().iter().any(|(_, _, tls)| *tls) {
        return Ok(None);
    }
    let certificate = match (&config.tls.cert, &config.tls.key) {
        (Some(chain), Some(key)) => Certificate::Files { chain: chain.clone(), key: key.clone() },
        // The settings refuse one without the other.
        (Some(_), None) | (None, Some(_)) | (None, None) => {
            Certificate::SelfSigned { folder: config.service.data_dir.clone() }
        }
    };
    let settings = TlsSettings { certificate, client_ca: config.tls.client_ca.clone() };
    Tls::open(settings, now).map(|tls| Some(Arc::new(tls)))
}

/// Gives the gateways their listeners and endpoints, and returns the http thread's ends of their
/// notification channels. In the shared layout all gateways are in one thread, and the first one
/// has its sockets.
fn attach_clients(
    config: &Config,
    reference: &Arc<RefData>,
    gateways: &mut [Gateway],
    listeners: GatewayListeners,
    auth: &mut Auth,
    (wakeups, remote, endpoints): (&Wakeups, &Remote, Vec<FixEndpoint>),
) -> io::Result<Vec<NotificationChannel>> {
    let with_sockets = match config.topology.layout {
        Layout::Shared => 1,
        Layout::Dedicated => gateways.len(),
    };
    let mut ends = Vec::new();
    let mut endpoints = endpoints.into_iter();
    for gateway in &mut gateways[..with_sockets] {
        let source = gateway.source();
        let wakeup = wakeups.ports[source.port.0 as usize].clone();
        let (post, end) = channels(wakeup.clone(), remote.wakeup().clone());
        ends.push(end);
        let stomp_endpoint = listeners.has_protocol(ListenerProtocol::Stomp).then(|| {
            let logins = Logins::new(Some(auth.client(wakeup)), config.stomp.generic_event_role);
            let settings = BrokerSettings { receives_all_ticks: false, ..stomp::settings(config) };
            StompEndpoint::new(settings, reference.clone(), logins)
        });
        gateway.attach_clients(listeners.try_clone()?, stomp_endpoint, endpoints.next(), post);
        gateway.set_send_first(config.net.send_first);
    }
    Ok(ends)
}

/// Returns a function that collects the stage latencies of all threads, for the http thread.
fn stage_report(mut readers: Vec<(String, LatencyReader)>) -> Box<dyn FnMut() -> StageReport + Send> {
    Box::new(move || {
        let mut report = StageReport::default();
        for (thread, reader) in &mut readers {
            reader.poll();
            report.summaries.extend(reader.summaries(thread));
            report.totals.extend(reader.totals(thread));
        }
        report
    })
}

/// Returns a function that handles the events of the http thread.
fn http_event_handler(lifecycle: Arc<Lifecycle>, reload: Arc<AtomicBool>) -> Box<dyn Fn(HttpEvent) + Send> {
    Box::new(move |event| match event {
        HttpEvent::Complete => lifecycle.ack_phase(LifecyclePhase::Opening),
        HttpEvent::ExitRequested => lifecycle.stop(StopReason::Asked),
        HttpEvent::ReloadRequested => {
            reload.store(true, Ordering::Release);
            lifecycle.wake_main();
        }
        HttpEvent::Quiet => {
            lifecycle.ack_phase(LifecyclePhase::Closing);
            // The http thread has nothing to drain but its events, and receives those until the
            // end.
            lifecycle.ack_phase(LifecyclePhase::Draining);
        }
    })
}

fn start_http(http: HttpServer, core: Option<u32>, lifecycle: Arc<Lifecycle>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("http".to_string()).spawn(move || {
        pin(core);
        ThreadClass::Requests.apply();
        if let Err(error) = http.run() {
            lifecycle.stop(StopReason::Failed(format!("the http thread: {error}")));
        }
        lifecycle.ack_phase(LifecyclePhase::Ended);
    })
}

/// Builds the ready line: the addresses, the durability and the size of the market.
fn ready_line(config: &Config, reference: &RefData, listeners: &[BoundAddress]) -> String {
    let mut line = "ready".to_string();
    for BoundAddress { name, address } in listeners {
        line += &format!(" {name}={address}");
    }
    let (securities, exchanges) = (reference.securities().len(), reference.exchanges().len());
    let (shards, seed) = (config.topology.shards, config.service.seed);
    line + &format!(
        " durability={} securities={securities} exchanges={exchanges} shards={shards} seed={seed}",
        config.durability()
    )
}
