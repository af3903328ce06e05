//! `pitlane simulate` and replay over files of other providers, and over levels.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use pitlane_testkit::paths;
use pitlane_testkit::service::{TestFolder, folder};

use super::data::{MAKER, file, rows};
use super::simulation::{report, simulate};

/// Runs the maker over a file of `tests/data/formats`; returns exit code, output and standard
/// error.
fn simulate_fixture(place: &TestFolder, name: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let config = place.join("settings.toml");
    fs::write(&config, MAKER).unwrap();
    let path = paths::repository().join("tests/data/formats").join(name);
    let mut command = Command::new(paths::binary());
    command.arg("simulate").arg("--quiet").arg("--config").arg(&config).arg("--data").arg(path);
    let output = command.args(["--set", "shard.orders_max=10000"]).args(more).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn files_of_databento_nasdaq_and_binance_are_simulated() {
    let place = folder("formats");
    let symbols = ["--set", "simulation.symbols=BTCUSDT=BTCUSD"];
    for (name, rows, more) in [
        ("trades-v1.dbn", 3, &[][..]),
        ("mbp-1.dbn.zst", 4, &[]),
        ("mbp-10.dbn", 10, &[]),
        ("mbo.dbn.zst", 16, &[]),
        ("mbo.dbn.zst", 7, &["--set", "simulation.levels=0", "--format", "dbn"]),
        ("ohlcv-1m.dbn", 8, &[]),
        ("03012024.NASDAQ_ITCH50.gz", 22, &[]),
        ("BTCUSDT-trades-2024-03-01.csv", 2, &symbols),
        ("BTCUSDT-aggTrades-2025-03-01.zip", 2, &symbols),
        ("BTCUSDT-1m-2024-03-01.csv", 8, &symbols),
    ] {
        let (code, text, log_text) = simulate_fixture(&place, name, more);
        assert_eq!((code, log_text.as_str()), (Some(0), ""), "{name}: {text}");
        assert!(text.contains(&format!(", {rows} ticks\n")), "{name}: {text}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_its_place() {
    let place = folder("formats-faults");
    for (name, more, problem) in [
        ("foreign.dbn", &[][..], "foreign.dbn: at byte 0: its symbols (YYYY, ZZZZ) are not in the reference"),
        (
            "mbp-10.dbn",
            &["--format", "itch 2024-03-01"],
            "mbp-10.dbn: at byte 0: a message of 17474 bytes is cut",
        ),
        ("mbp-10.dbn", &["--format", "tape"], "simulation.format: it must be one of auto, csv"),
        ("BTCUSDT-1m-2024-03-01.csv", &[], "its symbols (BTCUSDT) are not in the reference data"),
        ("mbo.dbn.zst", &["--set", "simulation.symbols=AAPL"], "a symbol must be such as \"BTCUSDT=BTCUSD\""),
    ] {
        let (code, _, log_text) = simulate_fixture(&place, name, more);
        assert!(code == Some(1) && log_text.contains(problem), "{name}: {log_text}");
    }
}

/// Returns levels for each row of ticks: those of the row, and one behind on each side.
fn levels(ticks: &[(u64, String)], behind: u32) -> String {
    let mut text = String::from("time,security,side,price,size\n");
    let mut before: Vec<(char, i64)> = Vec::new();
    for (at, row) in ticks {
        let cells: Vec<&str> = row.split(',').collect();
        let cents = |cell: &str| cell.replace('.', "").parse::<i64>().unwrap();
        let (bid, ask) = (cents(cells[2]), cents(cells[4]));
        let shown = [
            ('B', bid, cells[3].to_string()),
            ('B', bid - 1, behind.to_string()),
            ('A', ask, cells[5].to_string()),
            ('A', ask + 1, behind.to_string()),
        ];
        let mut line = |side: char, cents: i64, size: &str| {
            writeln!(text, "{at},{},{side},{}.{:02},{size}", cells[1], cents / 100, cents % 100).unwrap();
        };
        for (side, price) in before.drain(..) {
            if !shown.iter().any(|(new_side, new_price, _)| (*new_side, *new_price) == (side, price)) {
                line(side, price, "0");
            }
        }
        for (side, price, size) in &shown {
            line(*side, *price, size);
            before.push((*side, *price));
        }
    }
    text
}

#[test]
fn levels_say_how_much_is_ahead_of_an_order_behind_the_best_price() {
    let place = folder("formats-levels");
    let ticks = rows("AAPL", 4_000, 1);
    let run = |model: &str, behind: Option<u32>| {
        let mut files = vec![("ticks.csv", file(&ticks))];
        files.extend(behind.map(|size| ("levels.csv", levels(&ticks, size))));
        let (code, text, log_text) =
            simulate(&place, &files, MAKER, &["--quiet", "--set", &format!("venue.fill_model={model}")]);
        assert_eq!(code, Some(0), "{text}{log_text}");
        let report = report(&place);
        (report["strategies"][0]["fills"].as_u64().unwrap(), report["hash"].as_str().unwrap().to_string())
    };
    for model in ["queue", "queue_traded", "queue_back"] {
        let (few, many) = (run(model, Some(1)), run(model, Some(100_000)));
        match model {
            // When its price is the best one, all that is shown then is ahead.
            "queue_back" => assert_eq!(few, many),
            _ => assert!(few.0 >= many.0 && few.1 != many.1, "{model}: {few:?} {many:?}"),
        }
        assert_eq!(run(model, Some(1)), few, "{model}: the same data give the same run");
    }
    assert_ne!(run("queue_traded", Some(1)).1, run("queue_traded", None).1);
    let through = |behind| run("through", behind).0;
    assert_eq!(through(None), through(Some(1)), "a model without a queue does not use them");
}
