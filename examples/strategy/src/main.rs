//! Runs the strategy over a file of ticks, such as the recorder's, and prints each transaction.
//!
//! `cargo run -- ticks.csv [SECURITY]`

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};

use mean_reversion::market::{Market, STOCK};
use mean_reversion::mean_reversion::make;
use pitlane_engine::command::Quote;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::Timestamp;
use pitlane_strategy::parameters::Parameters;

const HEADER: &str = "time,security,bid,bidSize,ask,askSize,last,lastSize";
const PARAMETERS: [(&str, &str); 3] = [("ticks", "10"), ("distance_bp", "1"), ("qty", "10")];

/// Returns the quote of a row; `None` if it is of another security or has no quote on both sides.
fn quote_of(row: &str, security: &str) -> Result<Option<Quote>, String> {
    let cells: Vec<&str> = row.split(',').collect();
    let [time, of, bid, bid_size, ask, ask_size, _, _] = cells[..] else {
        return Err(format!("it has {} cells and not 8", cells.len()));
    };
    if of != security || bid.is_empty() || ask.is_empty() {
        return Ok(None);
    }
    let price = |text: &str| Price::parse(text.as_bytes()).map_err(|_| format!("{text} is no price"));
    let qty = |text: &str| Qty::parse(text.as_bytes()).map_err(|_| format!("{text} is no quantity"));
    let at = time.parse().map(Timestamp).map_err(|_| format!("{time} is no time in nanoseconds"))?;
    let (bid, bid_size, ask, ask_size) = (price(bid)?, qty(bid_size)?, price(ask)?, qty(ask_size)?);
    Ok(Some(Quote { bid, bid_size, ask, ask_size, at }))
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("a file of ticks is missing: cargo run -- ticks.csv [SECURITY]")?;
    let security = arguments.next().unwrap_or_else(|| "1".to_string());
    let mut rows = BufReader::new(File::open(&path).map_err(|error| format!("{path}: {error}"))?).lines();
    if rows.next().transpose()?.as_deref() != Some(HEADER) {
        return Err(format!("{path}:1: the first line must be {HEADER}").into());
    }
    let texts: BTreeMap<String, String> =
        PARAMETERS.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
    let make_strategy = make(&[STOCK], &Parameters::new(texts)).map_err(|bad| bad.to_string())?;
    // The market starts with the first quote, so that its clock never goes back.
    let (mut market, mut make_strategy) = (None, Some(make_strategy));
    let (mut quotes, mut transactions) = (0_u64, 0_u64);
    for (number, row) in rows.enumerate() {
        let quote =
            quote_of(&row?, &security).map_err(|problem| format!("{path}:{}: {problem}", number + 2))?;
        let Some(quote) = quote else { continue };
        if let Some(make_strategy) = make_strategy.take() {
            market = Some(Market::new(make_strategy, quote.at));
        }
        let Some(market) = &mut market else { continue };
        market.quote(quote)?;
        quotes += 1;
        for line in market.take_lines() {
            println!("{line}");
            transactions += 1;
        }
    }
    println!("{quotes} quotes, {transactions} transactions");
    Ok(())
}

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}
