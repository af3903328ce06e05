//! The running service: start, requests, both layouts, every way to end, and the state after a
//! restart.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod kills;
mod operator;
mod power;
mod threads;

use std::io::Write;
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use pitlane_testkit::service::{ServiceProcess, dump, folder};

const SIGABRT: i32 = 6;
/// A fast market and trader.
const LIVELY: [&str; 4] =
    ["demo.on=true", "demo.rate=500", "feed.rate=2000", "risk.strategies.max_orders_per_s=0"];
/// No market activity.
const STILL: [&str; 1] = ["feed.on=false"];

#[test]
fn every_listener_of_the_ready_line_responds() {
    let service = ServiceProcess::start(&folder("ready"), &LIVELY, None);
    assert!(service.is_ready(), "{}", service.ready);
    assert!(service.ready.contains(" durability=os "), "{}", service.ready);
    let (status, body) = service.ask("GET /health/ready");
    assert_eq!(status, 200, "{body}");
    assert!(body.contains(&service.address().to_string()), "{body}");
    assert_eq!(service.ask("GET /health/live").0, 200);
    assert!(service.metric("pitlane_shard_commands_total{shard=\"0\"}") > 0);
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}\n{}", ended.output, ended.log_text);
}

#[test]
fn the_stages_of_an_order_are_shown() {
    let mut service = ServiceProcess::start(&folder("stages"), &LIVELY, None);
    // Every thread publishes its latencies once a second, and the trader continues meanwhile.
    let stages = loop {
        let (status, body) = service.ask("GET /rest/ext/latency");
        assert_eq!(status, 200, "{body}");
        if ["journal", "apply", "answer"].iter().all(|stage| body.contains(&format!("\"{stage}\""))) {
            break body;
        }
        service.line();
    };
    assert!(stages.contains("\"shard-0\"") && stages.contains("\"gateway-0\""), "{stages}");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_certificate_is_reloaded_on_request() {
    let data = folder("certificate");
    let service = ServiceProcess::start(&data, &[&STILL[..], &["https.listen=127.0.0.1:0"]].concat(), None);
    let files = ["self-signed.pem", "self-signed.key"].map(|name| data.join(name));
    for file in &files {
        std::fs::remove_file(file).expect("it was made at the start");
    }
    service.signal("HUP");
    let end = Instant::now() + Duration::from_secs(30);
    // A missing certificate is made again.
    while !files.iter().all(|file| file.exists()) {
        assert!(Instant::now() < end, "no certificate was created");
        assert_eq!(service.ask("GET /health/live").0, 200);
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn every_layout_and_every_idle_mode_works() {
    for layout in ["shared", "dedicated"] {
        for idle in ["spin", "adaptive", "park"] {
            let name = format!("{layout}-{idle}");
            let (layout, idle) = (format!("topology.layout={layout}"), format!("topology.idle={idle}"));
            // Where the host forbids io_uring, epoll runs and a log line gives the reason.
            let driver = if idle.ends_with("park") { "net.driver=uring" } else { "net.driver=epoll" };
            let settings = [&LIVELY[..], &[&layout, &idle, driver]].concat();
            let mut service = ServiceProcess::start(&folder(&name), &settings, None);
            assert!(service.is_ready(), "{name}: {}", service.ready);
            for _ in 0..100 {
                assert!(service.line().contains(" filled "), "{name}");
            }
            service.signal("INT");
            let ended = service.end();
            assert!(ended.is_orderly(), "{name}: {}", ended.log_text);
        }
    }
}

#[test]
fn every_level_of_durability_works() {
    for level in ["disk", "os", "none"] {
        let setting = format!("journal.level={level}");
        let mut service = ServiceProcess::start(&folder(level), &[&LIVELY[..], &[&setting]].concat(), None);
        assert!(service.ready.contains(&format!(" durability={level} ")), "{}", service.ready);
        for _ in 0..100 {
            assert!(service.line().contains(" filled "), "{level}");
        }
        service.signal("TERM");
        assert!(service.end().is_orderly(), "{level}");
    }
}

#[test]
fn a_client_can_stop_the_service() {
    let service = ServiceProcess::start(&folder("exit"), &STILL, None);
    let (status, _) = service.ask("POST /rest/runtime/exit-vm");
    assert!((200..300).contains(&status), "{status}");
    assert!(service.end().is_orderly());
}

/// A client that never finishes its request may delay the stop, but not a second signal.
#[test]
fn a_second_signal_ends_the_process_at_once() {
    let service = ServiceProcess::start(&folder("twice"), &STILL, None);
    let mut slow = TcpStream::connect(service.address()).unwrap();
    slow.write_all(b"POST /rest/ext/kill-switch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le").unwrap();
    // The service has read the half request before it responds to this one.
    service.ask("GET /health/live");
    service.signal("TERM");
    service.signal("TERM");
    let ended = service.end();
    // The first signal may have been enough, if the second came late.
    assert!(ended.status.code() == Some(143) || ended.is_orderly(), "{:?}", ended.status);
}

#[test]
fn an_orderly_stop_takes_less_than_five_seconds() {
    let mut service = ServiceProcess::start(&folder("prompt"), &LIVELY, None);
    service.line();
    let begun = Instant::now();
    service.signal("TERM");
    assert!(service.end().is_orderly());
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_thread_that_fails_ends_the_process_with_a_clear_last_line() {
    for (layout, thread) in [("shared", "shared"), ("dedicated", "shard-1"), ("dedicated", "gateway-0")] {
        let layout = format!("topology.layout={layout}");
        let settings = [&LIVELY[..], &[&layout]].concat();
        let service = ServiceProcess::start(
            &folder(&format!("panic-{thread}")),
            &settings,
            Some(&format!("panic:{thread}:50")),
        );
        let ended = service.end();
        assert_eq!(ended.status.signal(), Some(SIGABRT), "{thread}: {}", ended.log_text);
        let last = ended.log_text.lines().last().unwrap_or_default();
        assert!(last.starts_with(&format!("pitlane failed: thread {thread} at ")), "{last}");
        assert!(last.contains("the state is in the journal"), "{last}");
        assert!(!ended.output.contains("stopped "), "{}", ended.output);
    }
}

#[test]
fn two_services_do_not_share_a_folder_or_a_port() {
    let data = folder("one");
    let service = ServiceProcess::start(&data, &STILL, None);
    let second = ServiceProcess::start(&data, &STILL, None).end();
    assert_eq!(second.status.code(), Some(1));
    assert!(second.log_text.contains("journal/lock"), "{}", second.log_text);
    let port = format!("http.listen={}", service.address());
    let third = ServiceProcess::start(&folder("other"), &[STILL[0], &port], None).end();
    assert_eq!(third.status.code(), Some(1));
    let owner = format!("http.listen: {} is in use: process {} (pitlane)", service.address(), service.id());
    assert!(third.log_text.contains(&owner), "{}", third.log_text);
    assert!(third.log_text.contains("--set http.listen=HOST:PORT"), "{}", third.log_text);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_journal_of_another_number_of_shards_is_refused() {
    let data = folder("shards");
    let service = ServiceProcess::start(&data, &STILL, None);
    service.signal("TERM");
    assert!(service.end().is_orderly());
    let ended = ServiceProcess::start(&data, &[STILL[0], "topology.shards=3"], None).end();
    assert_eq!((ended.status.code(), ended.output.as_str()), (Some(1), ""));
    assert!(ended.log_text.contains("shards"), "{}", ended.log_text);
}

/// Returns the processor time of a service that runs so many seconds without work, in hundredths of
/// a second.
fn idle_cpu(seconds: u32) -> u64 {
    let time = format!("{seconds}");
    let data = folder(&format!("idle-{seconds}"));
    let service = ServiceProcess::start_for(&data, &STILL, &time);
    assert!(service.is_ready(), "{}", service.ready);
    let ended = service.end();
    assert!(ended.is_orderly());
    ended.cpu
}

/// Part of `make faults`: it needs a quiet machine and some seconds.
#[test]
fn an_idle_service_takes_less_than_two_percent_of_a_core() {
    if !kills::is_full() {
        return;
    }
    // The start has its own cost, which both runs have.
    let cost = idle_cpu(11).saturating_sub(idle_cpu(1));
    assert!(cost < 20, "{cost} hundredths of a second in ten seconds");
}

/// Shards keep their state: a second start on the same day begins no other day and repeats no
/// subscription and no limit.
#[test]
fn a_restart_sends_the_shards_only_what_they_lack() {
    let data = folder("again");
    let mut counts = Vec::new();
    for _ in 0..2 {
        let service = ServiceProcess::start(&data, &STILL, None);
        assert!(service.is_ready(), "{}", service.ready);
        service.signal("TERM");
        assert!(service.end().is_orderly());
        let dump = dump(&data);
        let count = |part: &str| dump.lines().filter(|line| line.contains(part)).count();
        counts.push(["Subscribe", "Phase", "Limits", "TradingDay"].map(count));
    }
    assert!(counts[0].iter().all(|count| *count > 0), "{counts:?}");
    // Unless midnight came between the two.
    assert_eq!(counts[0], counts[1]);
}
