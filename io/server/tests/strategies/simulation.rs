//! `pitlane simulate`.

use std::fs;
use std::process::Command;

use pitlane_testkit::paths;
use pitlane_testkit::service::{TestFolder, folder};
use serde_json::Value;

use super::data::{MAKER, MOMENTUM, START_NS, file, rows};

/// Runs it over files of this content, with these settings; returns exit code, output and standard
/// error.
pub(crate) fn simulate(
    place: &TestFolder,
    files: &[(&str, String)],
    settings: &str,
    more: &[&str],
) -> (Option<i32>, String, String) {
    let mut names = Vec::new();
    for (name, text) in files {
        let path = place.join(name);
        fs::write(&path, text).unwrap();
        names.push(path.display().to_string());
    }
    let config = place.join("settings.toml");
    fs::write(&config, settings).unwrap();
    let report = place.join("report");
    let mut command = Command::new(paths::binary());
    command.arg("simulate").arg("--config").arg(&config).arg("--report").arg(&report);
    command.args(["--data", &names.join(","), "--set", "shard.orders_max=10000"]).args(more);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

pub(crate) fn report(place: &TestFolder) -> Value {
    serde_json::from_slice(&fs::read(place.join("report/report.json")).unwrap()).unwrap()
}

fn both() -> String {
    format!("{MOMENTUM}{MAKER}")
}

#[test]
fn the_same_run_has_the_same_hash_and_the_report_is_whole() {
    let place = folder("simulate-twice");
    let files = [("aapl.csv", file(&rows("AAPL", 4_000, 1))), ("msft.csv", file(&rows("2", 4_000, 2)))];
    let (code, text, log_text) = simulate(&place, &files, &both(), &[]);
    assert_eq!((code, log_text.as_str()), (Some(0), ""), "{text}");
    let first = report(&place);
    let page = fs::read_to_string(place.join("report/report.html")).unwrap();
    for plot in ["equity", "draw-down", "returns"] {
        assert_eq!(page.matches(&format!("<svg class=\"{plot}\"")).count(), 2, "one for each strategy");
    }
    assert!(page.contains("fill=\"none\" stroke=\"") && !page.contains("<script"));
    // The names begin with capitals on the page.
    let page = page.to_lowercase();
    for assumption in
        ["fill model", "slippage", "commission", "order entry delay", "feed delay", "start cash"]
    {
        assert!(text.contains(assumption) && page.contains(assumption), "{assumption}");
    }
    assert_eq!(
        text,
        format!(
            "{}report in {}\n",
            fs::read_to_string(place.join("report/report.txt")).unwrap(),
            place.join("report").display()
        )
    );
    let strategies = first["strategies"].as_array().unwrap();
    assert_eq!(strategies.len(), 2);
    for strategy in strategies {
        assert!(strategy["orders"].as_u64().unwrap() > 10, "{strategy}");
        assert!(strategy["fills"].as_u64().unwrap() > 10, "{strategy}");
        assert_eq!((strategy["rejected"].as_u64(), &strategy["failure"]), (Some(0), &Value::Null));
        assert_eq!(strategy["startEquity"].as_f64(), Some(1_000_000.0));
        assert!(strategy["sharpe"].is_null(), "two minutes are too short: {strategy}");
        let reason = strategy["withheld"]["sharpe"].as_str().unwrap();
        assert!(reason.contains("1 daily return, 20 are needed") && text.contains(reason), "{reason}");
        assert!(strategy["roundTrips"].as_u64().unwrap() < strategy["fills"].as_u64().unwrap());
        assert!(strategy["benchmark"]["name"].as_str().unwrap().contains("AAPL"));
        let sum = |rows: &Value, key: &str| {
            rows.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>()
        };
        for key in ["fills", "roundTrips"] {
            let all = strategy[key].as_u64().unwrap();
            assert_eq!((sum(&strategy["byMonth"], key), sum(&strategy["bySecurity"], key)), (all, all));
        }
    }
    assert_eq!(page.matches("<svg class=\"price\"").count(), 3, "one for each security of a strategy");
    let orders = first["orders"].as_array().unwrap();
    let entered: u64 = strategies.iter().map(|strategy| strategy["orders"].as_u64().unwrap()).sum();
    assert_eq!(orders.len() as u64 + first["ordersNotListed"].as_u64().unwrap(), entered);
    assert!(orders.iter().any(|order| order["status"] == "FILLED" && order["ended"].is_string()));
    assert_eq!(first["ticks"].as_u64(), Some(8_000));
    assert!(!first["trades"].as_array().unwrap().is_empty());
    simulate(&place, &files, &both(), &["--quiet"]);
    let second = report(&place);
    assert_eq!(first["hash"], second["hash"]);
    // What is kept and shown is not part of the run.
    let shown = ["--set", "simulation.records_max=5", "--set", "simulation.benchmark=MSFT"];
    simulate(&place, &files, &both(), &shown);
    let third = report(&place);
    assert_eq!((&first["hash"], third["trades"].as_array().unwrap().len()), (&third["hash"], 5));
    assert_eq!(third["strategies"][0]["benchmark"]["name"], "buy and hold MSFT");
    // Random numbers are part of the run where they are used.
    let dice = ["--set", "venue.partial_fill=true", "--seed", "7"];
    simulate(&place, &files, &both(), &dice);
    assert_ne!(report(&place)["hash"], first["hash"]);
}

#[test]
fn files_are_merged_by_time_and_cut_to_a_range() {
    let place = folder("simulate-merged");
    let (one, two) = (rows("AAPL", 1_500, 3), rows("MSFT", 1_500, 4));
    let mut merged: Vec<_> = one.iter().chain(&two).cloned().collect();
    merged.sort_by_key(|(at, _)| *at);
    simulate(&place, &[("one.csv", file(&one)), ("two.csv", file(&two))], MOMENTUM, &[]);
    let apart = report(&place);
    simulate(&place, &[("all.csv", file(&merged))], MOMENTUM, &[]);
    let together = report(&place);
    assert_eq!(apart["trades"], together["trades"]);
    let from = "2026-11-02T14:30:10Z";
    let (code, text, _) = simulate(
        &place,
        &[("all.csv", file(&merged))],
        MOMENTUM,
        &["--from", from, "--to", "2026-11-02T14:30:20Z"],
    );
    assert_eq!(code, Some(0), "{text}");
    let inside = |at: &u64| (10_000_000_000..20_000_000_000).contains(&(at - START_NS));
    let expected = merged.iter().filter(|(at, _)| inside(at)).count();
    assert_eq!(
        (report(&place)["ticks"].as_u64(), &report(&place)["from"]),
        (Some(expected as u64), &Value::from(from))
    );
    // With history before it, the averages are known at the first tick.
    simulate(
        &place,
        &[("all.csv", file(&merged))],
        MOMENTUM,
        &["--from", from, "--set", "simulation.prefeed_s=10"],
    );
    assert!(report(&place)["ticks"].as_u64().unwrap() > expected as u64);
    let (code, _, log_text) =
        simulate(&place, &[("all.csv", file(&merged))], MOMENTUM, &["--from", "2030-01-01"]);
    assert_eq!(code, Some(1));
    assert!(log_text.contains("there is nothing between from and to"), "{log_text}");
}

#[test]
fn bars_are_traded_on() {
    let place = folder("simulate-bars");
    let mut text = "time,security,open,high,low,close,volume\n".to_string();
    for bar in 0..600_u64 {
        // Up and down, an hour in each direction.
        let level = 20_000 + 100 * if bar / 60 % 2 == 0 { bar % 60 } else { 60 - bar % 60 };
        let price = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
        let at = START_NS + bar * 60_000_000_000;
        text += &format!(
            "{at},AAPL,{},{},{},{},100000\n",
            price(level),
            price(level + 30),
            price(level - 30),
            price(level + 10)
        );
    }
    let settings =
        MOMENTUM.replace("bar_s = 0", "bar_s = 60").replace(", 2]", "]").replace("slow = 30", "slow = 20");
    let (code, output, log_text) = simulate(&place, &[("bars.csv", text)], &settings, &[]);
    assert_eq!(code, Some(0), "{output}{log_text}");
    let report = report(&place);
    assert_eq!(report["ticks"].as_u64(), Some(2_400));
    assert!(report["strategies"][0]["fills"].as_u64().unwrap() >= 8, "{output}");
    assert!(
        report["strategies"][0]["endEquity"].as_f64().unwrap() > 1_000_000.0,
        "it follows a trend: {output}"
    );
}

#[test]
fn faults_are_reported_with_their_position() {
    let place = folder("simulate-wrong");
    let bad = file(&rows("AAPL", 5, 1)) + "1,AAPL,1,1,2,1,,\n";
    let (code, _, log_text) = simulate(&place, &[("bad.csv", bad)], MOMENTUM, &[]);
    assert_eq!(code, Some(1));
    assert!(log_text.contains("bad.csv:7: its time is before that of the row above"), "{log_text}");
    let good = [("good.csv", file(&rows("AAPL", 5, 1)))];
    let (code, _, log_text) = simulate(&place, &good, "", &[]);
    assert_eq!(code, Some(1));
    assert!(log_text.contains("no [[strategy]]"), "{log_text}");
    let cases = [
        ("\"MOMENTUM\"", "\"MOMENTUM*\"", "strategy.0.name: \"MOMENTUM*\" has a dot, star"),
        (
            "moving-average-cross",
            "moving-average",
            "strategy.0.kind: there is no kind moving-average (did you mean moving-average-cross?)",
        ),
        ("AAPL", "NOBODY", "strategy.0.securities: there is no security NOBODY"),
        ("fast = 5", "fast = 50", "strategy.0.parameters.fast: it must be below slow"),
        ("slow", "slwo", "strategy.0.parameters.slwo: there is no such parameter"),
        ("start = true", "start = 1", "strategy.0.start: it must be true or false, not a whole number"),
    ];
    for (from, to, problem) in cases {
        let (code, _, log_text) = simulate(&place, &good, &MOMENTUM.replacen(from, to, 1), &[]);
        assert_eq!(code, Some(1));
        assert!(log_text.contains(problem), "{log_text}");
    }
}

#[test]
fn a_strategy_that_fails_stops_alone() {
    let place = folder("simulate-failing");
    let settings = format!("{}[risk.strategy.MOMENTUM]\ntrading_enabled = false\n", both());
    let (code, text, log_text) =
        simulate(&place, &[("aapl.csv", file(&rows("AAPL", 2_000, 1)))], &settings, &[]);
    assert_eq!(code, Some(0), "{text}{log_text}");
    let report = report(&place);
    let (momentum, maker) = (&report["strategies"][0], &report["strategies"][1]);
    assert_eq!((momentum["orders"].as_u64(), momentum["rejected"].as_u64()), (Some(1), Some(1)));
    let reason = momentum["failure"]["reason"].as_str().unwrap();
    assert!(reason.contains("trading is switched off"), "{reason}");
    assert!(text.contains(reason) && maker["fills"].as_u64().unwrap() > 10, "{text}");
}

/// Returns the profit of the maker, and its fills, under these settings.
fn maker(place: &TestFolder, more: &[&str]) -> (f64, u64, String) {
    let files = [("aapl.csv", file(&rows("AAPL", 4_000, 1)))];
    let (code, text, log_text) = simulate(place, &files, MAKER, more);
    assert_eq!(code, Some(0), "{text}{log_text}");
    let report = report(place);
    let strategy = &report["strategies"][0];
    let fills = strategy["fills"].as_u64().unwrap();
    (
        strategy["endEquity"].as_f64().unwrap() - 1_000_000.0,
        fills,
        report["hash"].as_str().unwrap().to_string(),
    )
}

#[test]
fn the_more_is_ahead_of_an_order_the_less_it_fills() {
    let place = folder("simulate-queues");
    let fills = |model: &str| maker(&place, &["--set", &format!("venue.fill_model={model}")]).1;
    let [touch, queue, traded, back, through] =
        ["touch", "queue", "queue_traded", "queue_back", "through"].map(fills);
    assert!(touch > queue && queue >= traded && traded >= back && back >= through, "{queue} {traded} {back}");
    assert!(queue > through);
}

#[test]
fn latencies_are_drawn_from_a_distribution_or_a_file_and_repeat_with_the_seed() {
    let place = folder("simulate-latency");
    let at_once = maker(&place, &[]);
    let file = place.join("measured.hgrm");
    fs::write(&file, " 1000.0 0.0 1 1.0\n 30000.0 0.9 9 10.0\n 90000.0 1.0 10\n#[Mean = 1]\n").unwrap();
    let from_file = format!("simulation.response_latency=file {}", file.display());
    let late = ["--set", "simulation.entry_latency=lognormal 20ms 200ms", "--set", &from_file];
    let (one, two) = (maker(&place, &late), maker(&place, &late));
    assert_eq!(one, two);
    assert_ne!(one.2, at_once.2);
    assert_ne!(maker(&place, &[&late[..], &["--seed", "5"]].concat()).2, one.2);
    let text = fs::read_to_string(place.join("report/report.txt")).unwrap();
    assert!(text.contains("lognormal 20000us 200000us") && text.contains("drawn, see above"), "{text}");
    let files = [("aapl.csv", super::data::file(&rows("AAPL", 10, 1)))];
    for (setting, problem) in [
        (
            "simulation.entry_latency=file /nowhere.hgrm",
            "simulation.entry_latency: /nowhere.hgrm: No such file",
        ),
        ("simulation.entry_latency=slow", "simulation.entry_latency: it must be such as constant 250us"),
    ] {
        let (code, _, log_text) = simulate(&place, &files, MAKER, &["--set", setting]);
        assert!(code == Some(1) && log_text.contains(problem), "{log_text}");
    }
}

#[test]
fn fees_by_tier_replace_commissions_and_makers_may_earn() {
    let place = folder("simulate-fees");
    let free = format!("{MAKER}[simulation]\nfee_tiers = [\"0 0 0\"]\n");
    let paid = format!("{MAKER}[simulation]\nfee_tiers = [\"0 -1 5\", \"100000 -2 4\"]\n");
    let files = [("aapl.csv", file(&rows("AAPL", 4_000, 1)))];
    let run = |settings: &str| {
        let (code, text, log_text) = simulate(&place, &files, settings, &[]);
        assert_eq!(code, Some(0), "{text}{log_text}");
        let strategy = report(&place)["strategies"][0].clone();
        let fees: f64 = strategy["fees"].as_str().unwrap().parse().unwrap();
        (strategy["endEquity"].as_f64().unwrap(), fees, strategy["fills"].as_u64().unwrap())
    };
    let ((equity_free, fees_free, fills_free), (equity, fees, fills)) = (run(&free), run(&paid));
    assert_eq!((fees_free, fills_free), (0.0, fills), "the orders are the same");
    assert!(fees < 0.0, "a market maker earns rebates: {fees}");
    assert!((equity_free - fees - equity).abs() < 1e-6, "{equity_free} {fees} {equity}");
    for (tiers, problem) in [
        ("[\"5 1 1\"]", "the first tier must begin at 0"),
        ("[\"0 1 1\", \"0 1 1\"]", "each tier must begin above"),
        ("[\"cheap\"]", "a tier must be such as"),
    ] {
        let settings = format!("{MAKER}[simulation]\nfee_tiers = {tiers}\n");
        let (code, _, log_text) = simulate(&place, &files, &settings, &[]);
        assert!(code == Some(1) && log_text.contains(problem), "{log_text}");
    }
}
