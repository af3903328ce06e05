//! The closed list of metrics, each with its help text.

use crate::http::app_state::AppState;
use crate::http::cluster::{Counts, Phase};
use crate::http::health::{COMMIT, is_ready};
use crate::http::status::Journaling;
use crate::metrics::exposition::{Exposition, Kind, Seconds};
use crate::metrics::process::Process;
use crate::metrics::{Counter, ShardMeter};
use Kind::{Counter as C, Gauge as G};
use pitlane_protocols::fix::session::VenueCounts;

pub fn all(house: &AppState) -> String {
    let mut out = Exposition::default();
    service(house, &mut out);
    shards(house, &mut out);
    view(house, &mut out);
    venues(house, &mut out);
    http(house, &mut out);
    outposts(house, &mut out);
    cluster(house, &mut out);
    if let Some(standby) = house.standing.standby() {
        standby.expose(&mut out);
    }
    stages(house, &mut out);
    process(&mut out);
    out.into_text()
}

fn service(house: &AppState, out: &mut Exposition) {
    let standing = &house.standing;
    out.family("pitlane_build_info", G, "Always 1; its labels say what was built.");
    let (version, commit) = (env!("CARGO_PKG_VERSION"), COMMIT);
    out.sample(&[("version", &version), ("commit", &commit)], 1);
    let uptime = Seconds(house.now().since(standing.started()));
    out.single("pitlane_uptime_seconds", G, "Time since the start of the process.", uptime);
    let ready = is_ready(house) as u8;
    out.single("pitlane_ready", G, "1 while orders are taken.", ready);
    let sound = (standing.journaling() == Journaling::Sound) as u8;
    out.single("pitlane_journal_sound", G, "1 while the journal keeps its promise.", sound);
    let kills = house.floor.view().kills().count();
    out.single("pitlane_kill_switches", G, "Kill switches that are on.", kills);
    if let Some(tls) = &house.tls {
        let name = "pitlane_tls_certificate_not_after_seconds";
        out.single(
            name,
            G,
            "When the certificate in force runs out, since the epoch.",
            Seconds(tls.not_after().0),
        );
    }
}

type Column = (&'static str, &'static str, fn(&ShardMeter) -> &Counter);

/// Counters that every shard's thread publishes.
const SHARD: [Column; 12] = [
    ("pitlane_shard_commands_total", "Commands applied, timers among them.", |s| &s.commands),
    ("pitlane_shard_timers_total", "Timers applied.", |s| &s.timers),
    ("pitlane_shard_resumed_total", "Steps that went on with an earlier command.", |s| &s.resumed),
    ("pitlane_shard_events_total", "Events handed on, once for each port.", |s| &s.events),
    ("pitlane_shard_stalls_total", "Cycles that ended at a full lane.", |s| &s.stalls),
    ("pitlane_shard_waits_total", "Cycles that ended because the journal had no room yet.", |s| &s.waits),
    ("pitlane_shard_refused_total", "Commands refused because the journal did not take them.", |s| {
        &s.refused
    }),
    ("pitlane_shard_dropped_total", "Prices left out because the journal did not take them.", |s| &s.dropped),
    ("pitlane_journal_records_total", "Records written to the journal.", |s| &s.journal.records),
    ("pitlane_journal_bytes_total", "Bytes written to the journal.", |s| &s.journal.bytes),
    ("pitlane_journal_syncs_total", "Times the journal was forced to disk.", |s| &s.journal.syncs),
    ("pitlane_journal_snapshots_total", "Snapshots written.", |s| &s.journal.snapshots),
];

fn shards(house: &AppState, out: &mut Exposition) {
    for (name, help, counter) in SHARD {
        out.family(name, C, help);
        for (shard, meter) in house.registry.shards.iter().enumerate() {
            out.sample(&[("shard", &shard)], counter(meter).get());
        }
    }
}

fn view(house: &AppState, out: &mut Exposition) {
    let heard = house.floor.heard();
    out.single("pitlane_view_events_total", C, "Events the read model took in.", heard.events);
    out.single("pitlane_ticks_total", C, "Ticks.", heard.ticks);
    out.single("pitlane_orders_total", C, "Orders entered.", heard.orders);
    out.single("pitlane_orders_rejected_total", C, "Orders rejected.", heard.rejected);
    out.single("pitlane_fills_total", C, "Fills of orders.", heard.fills);
    out.single("pitlane_requests_refused_total", C, "Cancels and modifications refused.", heard.refusals);
    out.single("pitlane_transactions_total", C, "Transactions booked.", heard.transactions);
    let view = house.floor.view();
    out.single("pitlane_alerts_total", C, "Alerts a person should look at.", view.alerts_seen());
    out.family("pitlane_view_orders", G, "Orders the read model holds.");
    out.sample(&[("state", &"open")], view.open_orders_len());
    out.sample(&[("state", &"finished")], view.finished_orders_len());
    out.single("pitlane_view_positions", G, "Positions the read model holds.", view.positions().count());
    out.family("pitlane_view_complete", G, "1 when nothing of the shard is missing in the read model.");
    for shard in 0..house.floor.shards() {
        let complete = view.is_complete(pitlane_engine::id::ShardId(shard)) as u8;
        out.sample(&[("shard", &shard)], complete);
    }
}

type VenueColumn = (&'static str, &'static str, fn(&VenueCounts) -> u64);

/// Counters of every venue that we connect to.
const VENUE: [VenueColumn; 7] = [
    ("pitlane_venue_orders_total", "New orders sent to the venue.", |c| c.orders_out),
    ("pitlane_venue_executions_total", "Execution Reports of the venue about orders of ours.", |c| {
        c.executions
    }),
    ("pitlane_venue_refused_total", "Instructions refused because the venue could not be told.", |c| {
        c.refused
    }),
    ("pitlane_venue_unknown_values_total", "Answers passed over for a value nobody knows.", |c| {
        c.unknown_values
    }),
    ("pitlane_venue_unknown_orders_total", "Answers passed over for an order nobody knows.", |c| {
        c.unknown_orders
    }),
    ("pitlane_venue_prices_total", "Quotes and trades taken from the venue's market data.", |c| c.prices),
    ("pitlane_venue_incomplete_total", "Answers passed over for a field that is missing.", |c| c.incomplete),
];

/// Adds the metrics of the venues, as of the last second.
fn venues(house: &AppState, out: &mut Exposition) {
    let mut rows = Vec::new();
    house
        .switchboard
        .each(|_, row| rows.extend(row.venue.map(|counts| (row.name.clone(), row.state, counts))));
    if rows.is_empty() {
        return;
    }
    out.family("pitlane_venue_in_touch", G, "1 while orders can be sent to the venue.");
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

fn http(house: &AppState, out: &mut Exposition) {
    let meter = &house.meter;
    out.family("pitlane_http_requests_total", C, "Requests answered, by the class of their status.");
    for (class, count) in meter.answers() {
        out.sample(&[("class", &class)], count);
    }
    let guarded = meter.guarded.get();
    out.single("pitlane_http_guarded_total", C, "Requests refused before a handler saw them.", guarded);
    let refused = meter.logins_refused.get();
    out.single(
        "pitlane_http_logins_refused_total",
        C,
        "Requests with wrong credentials, or too many.",
        refused,
    );
    out.single("pitlane_http_connections", G, "Connections open now.", house.admission.len());
    out.single("pitlane_http_connections_total", C, "Connections taken in.", meter.accepted.get());
    let away = meter.turned_away.get();
    out.single("pitlane_http_turned_away_total", C, "Connections for which there was no room.", away);
    let failed = meter.handshakes_failed.get();
    out.single("pitlane_http_handshakes_failed_total", C, "TLS handshakes that failed.", failed);
    let evicted = meter.evicted.get();
    out.single("pitlane_http_evicted_total", C, "Connections closed to make room for others.", evicted);
    let slow = meter.timed_out.get();
    out.single("pitlane_http_timed_out_total", C, "Connections closed for being slow or idle.", slow);
    let forgotten = house.floor.ids_forgotten();
    let help = "Order ids of the trading day forgotten for want of room: they could be used again.";
    out.single("pitlane_http_order_ids_forgotten_total", C, help, forgotten);
    let waiting = house.floor.waiting_len();
    out.single("pitlane_http_waiting", G, "Requests that wait for the answer of a shard.", waiting);
    out.family(
        "pitlane_notes_dropped_total",
        C,
        "JournalMetadata to other threads or from the log that found no room.",
    );
    for (place, count) in [("hall", house.hall.dropped()), ("log", house.switchboard.dropped_log())] {
        out.sample(&[("place", &place)], count);
    }
    house
        .switchboard
        .each_post(|name, dropped| out.sample(&[("place", &format!("gateway-{name}"))], dropped));
}

/// Adds the metrics of strategies in processes of their own.
fn outposts(house: &AppState, out: &mut Exposition) {
    let Some(outposts) = &house.outposts else { return };
    let up = outposts.up.get() as u8;
    out.single("pitlane_broker_connected", G, "1 while the broker of strategies elsewhere is there.", up);
    out.family("pitlane_outpost_present", G, "1 while the process of a strategy is heard of.");
    outposts.each(|name, present, _| out.sample(&[("strategy", &name)], present as u8));
    out.family("pitlane_outpost_behind", G, "Order events that its process has not said to have taken in.");
    outposts.each_behind(|name, behind| out.sample(&[("strategy", &name)], behind));
    let counts = &outposts.counts;
    let totals = [
        ("pitlane_outpost_letters_total", "Messages of strategies elsewhere.", counts.letters.get()),
        ("pitlane_outpost_misread_total", "Those of them that could not be read.", counts.misread.get()),
        (
            "pitlane_outpost_astray_total",
            "Those that asked for their answer outside of the inbox of their strategy, and were refused.",
            counts.astray.get(),
        ),
        ("pitlane_outpost_posts_total", "Messages with order events to them.", counts.posts.get()),
        ("pitlane_outpost_prices_total", "Messages with prices to them.", counts.prices.get()),
        ("pitlane_outpost_conflated_total", "Prices replaced by newer ones before.", outposts.conflated()),
        ("pitlane_outpost_deaths_total", "Processes that were silent for a lease.", counts.deaths.get()),
        ("pitlane_outpost_dropped_total", "Replies and notes without room.", outposts.dropped()),
    ];
    for (name, help, value) in totals {
        out.single(name, C, help, value);
    }
}

type MemberColumn = (&'static str, &'static str, fn(&Counts) -> u64);

/// Counters of every other server.
const MEMBER: [MemberColumn; 5] = [
    ("pitlane_cluster_routed_total", "Commands sent to the member that owns the security.", |c| c.routed),
    ("pitlane_cluster_refused_total", "Commands refused since the member was away.", |c| c.refused),
    ("pitlane_cluster_events_total", "Events heard of the member.", |c| c.events),
    ("pitlane_cluster_gaps_total", "Times that something of it was missing and asked for.", |c| c.gaps),
    ("pitlane_cluster_snapshots_total", "Snapshots taken of its shards.", |c| c.snapshots),
];

/// Adds the metrics of the other servers.
fn cluster(house: &AppState, out: &mut Exposition) {
    let Some(cluster) = &house.cluster else { return };
    let members = cluster.members(house.now());
    out.family("pitlane_cluster_member_here", G, "1 while the member is here and lacks nothing.");
    for member in &members {
        out.sample(&[("member", &member.name)], (member.phase == Phase::Here) as u8);
    }
    out.family("pitlane_cluster_in_doubt", G, "Commands sent to the member and not answered.");
    members.iter().for_each(|member| out.sample(&[("member", &member.name)], member.in_doubt));
    for (name, help, count) in MEMBER {
        out.family(name, C, help);
        members.iter().for_each(|member| out.sample(&[("member", &member.name)], count(&member.counts)));
    }
    let (taken, conflated) = cluster.totals();
    out.single("pitlane_cluster_taken_total", C, "Commands of other members handed to our shards.", taken);
    out.single("pitlane_cluster_conflated_total", C, "Prices replaced by newer ones before.", conflated);
    let misread = cluster.misread.get();
    out.single("pitlane_cluster_misread_total", C, "Messages that could not be read.", misread);
}

fn stages(house: &AppState, out: &mut Exposition) {
    let stages = house.stages();
    out.family("pitlane_stage_seconds", G, "Percentiles of a stage over its last second with work.");
    for stage in &stages {
        for (quantile, ns) in
            [("0.5", stage.p50), ("0.9", stage.p90), ("0.99", stage.p99), ("0.999", stage.p999)]
        {
            let labels: [(&str, &dyn std::fmt::Display); 3] =
                [("thread", &stage.thread), ("stage", &stage.stage), ("quantile", &quantile)];
            out.sample(&labels, Seconds(ns));
        }
    }
}

fn process(out: &mut Exposition) {
    let process = Process::read();
    if let Some(ns) = process.cpu_ns {
        out.single("pitlane_process_cpu_seconds_total", C, "Processor time used.", Seconds(ns));
    }
    let gauges = [
        ("pitlane_process_resident_bytes", "Memory held.", process.resident_bytes),
        ("pitlane_process_threads", "Threads.", process.threads),
        ("pitlane_process_fds", "File descriptors open.", process.fds),
        ("pitlane_process_fds_max", "File descriptors allowed.", process.fds_max),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            out.single(name, G, help, value);
        }
    }
}
