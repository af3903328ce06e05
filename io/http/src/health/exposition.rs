//! The closed list of metrics, each with its help text.

mod sessions;

use pitlane_protocols::fix::session::VenueCounts;
use pitlane_runtime::metrics::exposition::{Exposition, MetricKind, Seconds};
use pitlane_runtime::metrics::process::Process;
use pitlane_runtime::metrics::{Counter, ShardMeter};

use crate::app_state::AppState;
use crate::cluster::{PeerCounts, PeerPhase};
use crate::health::{COMMIT, is_ready};
use crate::status::Journaling;
use MetricKind::{Counter as C, Gauge as G, Histogram as H};

pub(super) fn all(app: &AppState) -> String {
    let mut out = Exposition::default();
    service(app, &mut out);
    shards(app, &mut out);
    journal(app, &mut out);
    view(app, &mut out);
    history(app, &mut out);
    venues(app, &mut out);
    sessions::sessions(app, &mut out);
    sessions::market_data(app, &mut out);
    http(app, &mut out);
    remote_strategies(app, &mut out);
    cluster(app, &mut out);
    if let Some(standby) = app.monitoring.service_status.standby() {
        standby.expose(&mut out);
    }
    stages(app, &mut out);
    process(&mut out);
    out.into_text()
}

fn service(app: &AppState, out: &mut Exposition) {
    let service_status = &app.monitoring.service_status;
    out.family("pitlane_build_info", G, "Always 1; its labels name the build.");
    let (version, commit) = (env!("CARGO_PKG_VERSION"), COMMIT);
    out.sample(&[("version", &version), ("commit", &commit)], 1);
    let uptime = Seconds(app.now().since(service_status.started()));
    out.single("pitlane_uptime_seconds", G, "Time since the start of the process.", uptime);
    let ready = is_ready(app) as u8;
    out.single("pitlane_ready", G, "1 while the service accepts orders.", ready);
    let sound = (service_status.journaling() == Journaling::Sound) as u8;
    out.single("pitlane_journal_healthy", G, "1 while the journal is as durable as configured.", sound);
    let kills = app.trading.shard_client.view().kills().count();
    out.single("pitlane_kill_switches", G, "Kill switches that are on.", kills);
    if let Some(tls) = &app.monitoring.tls {
        let name = "pitlane_tls_certificate_expiry_timestamp_seconds";
        out.single(
            name,
            G,
            "When the certificate in force runs out, since the epoch.",
            Seconds(tls.not_after().0),
        );
    }
}

type ShardColumn = (&'static str, &'static str, fn(&ShardMeter) -> &Counter);

/// Counters that every shard's thread publishes.
const SHARD: [ShardColumn; 12] = [
    ("pitlane_shard_commands_total", "Commands applied, timers among them.", |s| &s.commands),
    ("pitlane_shard_timers_total", "Timers applied.", |s| &s.timers),
    ("pitlane_shard_resumed_total", "Steps that continued an earlier command.", |s| &s.resumed),
    ("pitlane_shard_events_total", "Events sent, once for each port.", |s| &s.events),
    ("pitlane_shard_stalls_total", "Cycles that ended at a full lane.", |s| &s.stalls),
    ("pitlane_shard_waits_total", "Cycles that ended because the journal had no room yet.", |s| &s.waits),
    (
        "pitlane_shard_rejected_commands_total",
        "Commands rejected because the journal could not store them.",
        |s| &s.refused,
    ),
    ("pitlane_shard_dropped_prices_total", "Prices dropped because the journal could not store them.", |s| {
        &s.dropped
    }),
    ("pitlane_journal_records_total", "Records written to the journal.", |s| &s.journal.records),
    ("pitlane_journal_bytes_total", "Bytes written to the journal.", |s| &s.journal.bytes),
    ("pitlane_journal_syncs_total", "Times the journal was forced to disk.", |s| &s.journal.syncs),
    ("pitlane_journal_snapshots_total", "Snapshots written.", |s| &s.journal.snapshots),
];

fn shards(app: &AppState, out: &mut Exposition) {
    for (name, help, counter) in SHARD {
        out.family(name, C, help);
        for (shard, meter) in app.monitoring.registry.shards.iter().enumerate() {
            out.sample(&[("shard", &shard)], counter(meter).get());
        }
    }
}

/// Adds the state of the journal, as of the last second.
fn journal(app: &AppState, out: &mut Exposition) {
    let registry = &app.monitoring.registry;
    let mut column = |name, help, value: &dyn Fn(&ShardMeter) -> String| {
        out.family(name, G, help);
        for (shard, meter) in registry.shards.iter().enumerate() {
            out.sample(&[("shard", &shard)], value(meter));
        }
    };
    let help = "Records written to the journal and not yet forced to disk.";
    column("pitlane_journal_unsynced_records", help, &|meter| meter.journal.unsynced.get().to_string());
    let help = "Bytes of the journal's segments.";
    column("pitlane_journal_size_bytes", help, &|meter| meter.journal.segment_bytes.get().to_string());
    let help = "Time of the newest snapshot, since the epoch; 0 if there is none.";
    let name = "pitlane_journal_last_snapshot_timestamp_seconds";
    column(name, help, &|meter| Seconds(meter.journal.snapshot_at_ns.get()).to_string());
    let free = registry.data_free_bytes.get();
    out.single("pitlane_data_free_bytes", G, "Free bytes on the file system of the data folder.", free);
}

fn view(app: &AppState, out: &mut Exposition) {
    let counts = app.trading.shard_client.event_counts();
    out.single("pitlane_read_model_events_total", C, "Events that the read model applied.", counts.events);
    out.single("pitlane_ticks_total", C, "Ticks.", counts.ticks);
    out.single("pitlane_orders_total", C, "Orders entered.", counts.orders);
    out.single("pitlane_orders_rejected_total", C, "Orders rejected.", counts.rejected);
    out.single("pitlane_fills_total", C, "Fills of orders.", counts.fills);
    out.single(
        "pitlane_order_requests_rejected_total",
        C,
        "Cancels and modifications rejected.",
        counts.refusals,
    );
    out.single("pitlane_transactions_total", C, "Transactions booked.", counts.transactions);
    let view = app.trading.shard_client.view();
    out.single("pitlane_alerts_total", C, "Alerts that an operator should read.", view.alerts_seen());
    out.family("pitlane_read_model_orders", G, "Orders the read model holds.");
    out.sample(&[("state", &"open")], view.open_orders_len());
    out.sample(&[("state", &"finished")], view.finished_orders_len());
    out.single(
        "pitlane_read_model_positions",
        G,
        "Positions the read model holds.",
        view.positions().count(),
    );
    out.family("pitlane_read_model_complete", G, "1 when nothing of the shard is missing in the read model.");
    for shard in 0..app.trading.shard_client.shards() {
        let complete = view.is_complete(pitlane_engine::id::ShardId(shard)) as u8;
        out.sample(&[("shard", &shard)], complete);
    }
}

fn history(app: &AppState, out: &mut Exposition) {
    if app.history.is_none() {
        return;
    }
    let meter = &app.monitoring.registry.history;
    out.single("pitlane_history_ticks_total", C, "Ticks that the history received.", meter.ticks.get());
    let help = "Ticks that are missing in the history because it had no room for them.";
    out.single("pitlane_history_dropped_ticks_total", C, help, meter.dropped.get());
    let help = "Writes of the history that the disk refused.";
    out.single("pitlane_history_failed_writes_total", C, help, meter.failed_writes.get());
    out.single("pitlane_history_size_bytes", G, "Bytes of the files of the history.", meter.bytes.get());
}

type VenueColumn = (&'static str, &'static str, fn(&VenueCounts) -> u64);

/// Counters of every venue that we connect to.
const VENUE: [VenueColumn; 7] = [
    ("pitlane_venue_orders_total", "New orders sent to the venue.", |c| c.orders_out),
    ("pitlane_venue_executions_total", "Execution Reports of the venue for orders of this service.", |c| {
        c.executions
    }),
    (
        "pitlane_venue_rejected_instructions_total",
        "Instructions rejected because the venue was not connected.",
        |c| c.refused,
    ),
    ("pitlane_venue_unknown_values_total", "Venue messages ignored because of an unknown value.", |c| {
        c.unknown_values
    }),
    ("pitlane_venue_unknown_orders_total", "Venue messages ignored because of an unknown order.", |c| {
        c.unknown_orders
    }),
    ("pitlane_venue_prices_total", "Quotes and trades taken from the venue's market data.", |c| c.prices),
    ("pitlane_venue_incomplete_total", "Venue messages ignored because a field is missing.", |c| {
        c.incomplete
    }),
];

/// Adds the metrics of the venues, as of the last second.
fn venues(app: &AppState, out: &mut Exposition) {
    let mut rows = Vec::new();
    app.notifications.hub.for_each_session(|_, row| {
        rows.extend(row.venue.map(|counts| (row.name.clone(), row.state, counts)))
    });
    if rows.is_empty() {
        return;
    }
    out.family("pitlane_venue_connected", G, "1 while orders can be sent to the venue.");
    for (name, state, _) in &rows {
        out.sample(&[("venue", &name.as_deref().unwrap_or_default())], (*state == "LOGGED_ON") as u8);
    }
    for (metric, help, count) in VENUE {
        out.family(metric, C, help);
        for (name, _, counts) in &rows {
            out.sample(&[("venue", &name.as_deref().unwrap_or_default())], count(counts));
        }
    }
}

fn http(app: &AppState, out: &mut Exposition) {
    let meter = &app.monitoring.meter;
    out.family("pitlane_http_requests_total", C, "Requests answered, by the class of their status.");
    for (class, count) in meter.responses_by_class() {
        out.sample(&[("class", &class)], count);
    }
    let rejected = meter.rejected.get();
    out.single(
        "pitlane_http_forbidden_requests_total",
        C,
        "Requests rejected before they reached a handler.",
        rejected,
    );
    let refused = meter.logins_refused.get();
    out.single(
        "pitlane_http_failed_logins_total",
        C,
        "Requests with wrong credentials, or too many.",
        refused,
    );
    out.single("pitlane_http_connections", G, "Connections open now.", app.access.admission.len());
    out.single("pitlane_http_connections_total", C, "Connections accepted.", meter.accepted.get());
    let refused_connections = meter.refused.get();
    out.single(
        "pitlane_http_rejected_connections_total",
        C,
        "Connections rejected because a limit was reached.",
        refused_connections,
    );
    let failed = meter.handshakes_failed.get();
    out.single("pitlane_http_failed_tls_handshakes_total", C, "TLS handshakes that failed.", failed);
    let evicted = meter.evicted.get();
    out.single(
        "pitlane_http_evicted_connections_total",
        C,
        "Connections closed to make room for others.",
        evicted,
    );
    let slow = meter.timed_out.get();
    out.single(
        "pitlane_http_timed_out_connections_total",
        C,
        "Connections closed for being slow or idle.",
        slow,
    );
    let forgotten = app.trading.shard_client.ids_forgotten();
    let help = "Order ids of the trading day forgotten because the table was full: they could be used again.";
    out.single("pitlane_http_order_ids_forgotten_total", C, help, forgotten);
    let waiting = app.trading.shard_client.waiting_len();
    out.single("pitlane_http_pending_requests", G, "Requests that wait for a shard.", waiting);
    out.family(
        "pitlane_notifications_dropped_total",
        C,
        "Notifications dropped because a queue between threads was full.",
    );
    for (queue, count) in
        [("websocket", app.notifications.ws_broker.dropped()), ("log", app.notifications.hub.dropped_log())]
    {
        out.sample(&[("queue", &queue)], count);
    }
    app.notifications
        .hub
        .each_channel(|name, dropped| out.sample(&[("queue", &format!("gateway-{name}"))], dropped));
}

/// Adds the metrics of strategies in processes of their own.
fn remote_strategies(app: &AppState, out: &mut Exposition) {
    let Some(remote_strategies) = &app.notifications.remote_strategies else { return };
    let up = remote_strategies.up.get() as u8;
    out.single(
        "pitlane_broker_connected",
        G,
        "1 while remote strategies can connect: their broker is up, or none is needed.",
        up,
    );
    out.single(
        "pitlane_strategy_link_connections",
        G,
        "Connections of strategy processes without a broker.",
        remote_strategies.connection_count(),
    );
    out.family("pitlane_remote_strategy_up", G, "1 while the process of the strategy holds its lease.");
    remote_strategies.for_each(|name, present, _| out.sample(&[("strategy", &name)], present as u8));
    out.family(
        "pitlane_remote_strategy_unacknowledged_events",
        G,
        "Order events that the process has not acknowledged.",
    );
    remote_strategies.for_each_unconfirmed(|name, behind| out.sample(&[("strategy", &name)], behind));
    let counts = &remote_strategies.counts;
    let totals = [
        (
            "pitlane_remote_strategy_messages_received_total",
            "Messages received from remote strategies.",
            counts.messages.get(),
        ),
        (
            "pitlane_remote_strategy_decode_errors_total",
            "Messages of remote strategies that could not be decoded.",
            counts.decode_errors.get(),
        ),
        (
            "pitlane_strategy_link_refused_total",
            "Connections of strategy processes that were refused, or ended for a broken rule.",
            counts.refused_links.get(),
        ),
        (
            "pitlane_remote_strategy_misrouted_messages_total",
            "Messages refused because their reply subject is outside of the inbox of their strategy.",
            counts.misrouted.get(),
        ),
        (
            "pitlane_remote_strategy_event_messages_total",
            "Messages with order events sent to remote strategies.",
            counts.event_batches.get(),
        ),
        (
            "pitlane_remote_strategy_price_messages_total",
            "Messages with prices sent to remote strategies.",
            counts.price_batches.get(),
        ),
        (
            "pitlane_remote_strategy_conflated_prices_total",
            "Prices replaced by newer ones before they were sent.",
            remote_strategies.conflated(),
        ),
        (
            "pitlane_remote_strategy_expired_leases_total",
            "Processes whose lease expired.",
            counts.expired_leases.get(),
        ),
        (
            "pitlane_remote_strategy_dropped_messages_total",
            "Replies and notifications dropped because a queue was full.",
            remote_strategies.dropped(),
        ),
    ];
    for (name, help, value) in totals {
        out.single(name, C, help, value);
    }
}

type MemberColumn = (&'static str, &'static str, fn(&PeerCounts) -> u64);

/// Counters of every other server.
const MEMBER: [MemberColumn; 5] = [
    ("pitlane_cluster_routed_commands_total", "Commands sent to the member that owns the security.", |c| {
        c.routed
    }),
    ("pitlane_cluster_rejected_commands_total", "Commands rejected because the member was down.", |c| {
        c.refused
    }),
    ("pitlane_cluster_events_total", "Events received from the member.", |c| c.events),
    ("pitlane_cluster_gaps_total", "Gaps in the events of the member that were requested again.", |c| c.gaps),
    ("pitlane_cluster_snapshots_total", "Snapshots received of the shards of the member.", |c| c.snapshots),
];

/// Adds the metrics of the other servers.
fn cluster(app: &AppState, out: &mut Exposition) {
    let Some(cluster) = &app.trading.cluster else { return };
    let members = cluster.members(app.now());
    out.family("pitlane_cluster_member_up", G, "1 while the member is connected and in step.");
    for member in &members {
        out.sample(&[("member", &member.name)], (member.phase == PeerPhase::Up) as u8);
    }
    out.family("pitlane_cluster_commands_in_doubt", G, "Commands sent to the member without an answer yet.");
    members.iter().for_each(|member| out.sample(&[("member", &member.name)], member.in_doubt));
    for (name, help, count) in MEMBER {
        out.family(name, C, help);
        members.iter().for_each(|member| out.sample(&[("member", &member.name)], count(&member.counts)));
    }
    let (taken, conflated) = cluster.totals();
    out.single(
        "pitlane_cluster_accepted_commands_total",
        C,
        "Commands of other members applied by shards of this server.",
        taken,
    );
    out.single(
        "pitlane_cluster_conflated_prices_total",
        C,
        "Prices replaced by newer ones before they were sent.",
        conflated,
    );
    let decode_errors = cluster.decode_errors.get();
    out.single(
        "pitlane_cluster_decode_errors_total",
        C,
        "Messages of other members that could not be decoded.",
        decode_errors,
    );
}

fn stages(app: &AppState, out: &mut Exposition) {
    let help = "Duration of a stage in a thread, of one command in 61.";
    out.family("pitlane_stage_duration_seconds", H, help);
    for total in &app.monitoring.stages().totals {
        out.histogram(&[("thread", &total.thread), ("stage", &total.stage)], &total.buckets);
    }
}

/// Adds the metrics that every process has, under the names that Prometheus clients give them.
fn process(out: &mut Exposition) {
    let process = Process::read();
    if let Some(ns) = process.cpu_ns {
        out.single("process_cpu_seconds_total", C, "Processor time used.", Seconds(ns));
    }
    let gauges = [
        ("process_start_time_seconds", "Start of the process, since the epoch.", process.started_s),
        ("process_resident_memory_bytes", "Memory held.", process.resident_bytes),
        ("process_threads", "Threads.", process.threads),
        ("process_open_fds", "File descriptors open.", process.fds),
        ("process_max_fds", "File descriptors allowed.", process.fds_max),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            out.single(name, G, help, value);
        }
    }
}
