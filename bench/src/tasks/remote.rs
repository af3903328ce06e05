//! The load generator alone, for a service that runs elsewhere: on another host, or behind another
//! network stack of this one.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use pitlane_bench::fix_wire::{
    FixServerKind, LoadLogin, LoadTarget, SteadyLoad, echo, remote_full_load, steady_load,
};
use pitlane_bench::measure::percentiles;
use pitlane_bench::order_to_tick::{self, TradeLoad, TradeSignal};
use pitlane_bench::report::recording::Recording;
use pitlane_bench::tick_reader::BodyReader;
use pitlane_engine::index::index_usize;

use super::RunEnvironment;
use super::endurance::OPEN_MAX;
use super::results::write_results;
use crate::{TaskError, TaskVerdicts};

#[derive(Args, Clone)]
pub(crate) struct RemoteArgs {
    /// Address of the service's FIX acceptor, or of `pitlane-bench echo` with `--echo`.
    address: SocketAddr,
    /// The address is that of a bare echo: the floor. Only the steady rates are measured.
    #[arg(long, conflicts_with_all = ["stomp", "login"])]
    echo: bool,
    /// Address of its STOMP listener: also measure from an order to the tick of its trade. The
    /// service must be new, so that there are no other trades.
    #[arg(long)]
    stomp: Option<SocketAddr>,
    /// Name of the user or token, where a login is required.
    #[arg(long, requires = "secret_file")]
    login: Option<String>,
    /// File with the password or token in its first line.
    #[arg(long, requires = "login")]
    secret_file: Option<PathBuf>,
    /// Orders a second, one rate after the other.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 25_000])]
    rates: Vec<u64>,
    /// Seconds at each rate.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Sessions at full load; 0: no full load.
    #[arg(long, default_value_t = 4)]
    sessions: usize,
    /// Orders of each session at full load.
    #[arg(long, default_value_t = 50_000)]
    orders: usize,
    /// Trades per second from order to tick.
    #[arg(long, default_value_t = 1_000)]
    trade_rate: u64,
    /// Folder for the results: `.hgrm`, CSV, JSON, SVG and a page.
    #[arg(long)]
    out: PathBuf,
}

/// Echoes until the process is ended.
pub(crate) fn serve_echo(address: SocketAddr) -> Result<TaskVerdicts, TaskError> {
    let listener = TcpListener::bind(address)?;
    println!("ready {}", listener.local_addr()?);
    echo(&listener, &AtomicBool::new(false));
    Ok(TaskVerdicts::default())
}

/// Measures round trips only, so that the clocks of two hosts need not agree.
pub(crate) fn remote(environment: &RunEnvironment, task: &RemoteArgs) -> Result<TaskVerdicts, TaskError> {
    let target = target(task)?;
    let mut recordings = Vec::new();
    let mut clients = 0;
    if let Some(stomp) = task.stomp {
        for (body, word) in [(BodyReader::Sbe, "sbe"), (BodyReader::SimdJson, "json")] {
            let trades = index_usize(task.trade_rate * task.seconds);
            let load = TradeLoad { rate: task.trade_rate, trades };
            let mut ticks = order_to_tick::measure(&target, stomp, clients, load, TradeSignal::Tick(body))?;
            ticks.name += &format!("-{word}");
            show(&ticks);
            recordings.push(ticks);
            clients += 1;
        }
    }
    for &rate in &task.rates {
        let orders = index_usize(rate * task.seconds);
        let load = SteadyLoad { rate, orders, open_max: Some(OPEN_MAX) };
        let latencies = steady_load(&target, clients, load, |_| {})?;
        clients += 1;
        for recording in [latencies.read, latencies.received] {
            // A kernel without timestamps has none for the second.
            if !recording.all.is_empty() {
                show(&recording);
                recordings.push(recording);
            }
        }
    }
    if task.sessions > 0 && !task.echo {
        let per_s = remote_full_load(&target, clients, task.sessions, task.orders)?;
        println!(
            "flat out: {per_s:.0} orders/s, order to first report, {} sessions of {} orders",
            task.sessions, task.orders
        );
    }
    let recordings: Vec<&Recording> = recordings.iter().collect();
    write_results(&task.out, environment, "a service elsewhere, round trips", &recordings, &[])?;
    Ok(TaskVerdicts::default())
}

fn show(recording: &Recording) {
    println!("{}  reached {:.0}", percentiles(&recording.name, &recording.all), recording.per_s_reached);
}

fn target(task: &RemoteArgs) -> Result<LoadTarget, TaskError> {
    let login = task.login.as_ref().zip(task.secret_file.as_ref()).map(|(name, file)| {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let secret = text.lines().next().unwrap_or_default().trim().to_string();
        Ok::<_, TaskError>(LoadLogin { name: name.clone(), secret })
    });
    let kind = if task.echo { FixServerKind::Echo } else { FixServerKind::Pitlane };
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let target = LoadTarget::new(task.address, kind);
    Ok(LoadTarget { login: login.transpose()?, id_prefix: format!("{seconds:x}-"), stamped: true, ..target })
}
