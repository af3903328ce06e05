//! `pitlane refdata import`: the instruments of a venue as reference data.

mod https;

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read, Write};

use pitlane_config::VenueUrl;
use pitlane_config::refdata::{ImportSummary, ImportedVenue, RefDataFaults, VenueInstrument, import};
use pitlane_engine::refdata::SecurityKind;
use pitlane_gateway::binance::authorities;
use pitlane_protocols::binance::exchange_info::{SymbolProblem, VenueSymbol, parse_exchange_info};
use serde_json::Value;

use self::https::{BODY_BYTES_MAX, HttpAnswer, HttpError};
use crate::args::{BinanceImportArgs, VenueEnvironment};

/// Public addresses of the exchange information.
const TESTNET: &str = "https://testnet.binance.vision/api/v3/exchangeInfo";
const PRODUCTION: &str = "https://api.binance.com/api/v3/exchangeInfo";
/// The permissions of accounts are a large part of the answer, and are not used.
const QUERY: &str = "?showPermissionSets=false";

/// Symbols that a message lists by name.
const NAMED_MAX: usize = 10;
/// Longest text of a venue that a message repeats.
const TEXT_CHARS_MAX: usize = 200;

/// Why nothing was imported.
#[derive(Debug)]
pub(crate) enum ImportError {
    /// Where the information comes from, and why it could not be read.
    Source(String, String),
    Refdata(RefDataFaults),
    Output(io::Error),
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Source(source, problem) => write!(f, "{source}: {problem}"),
            ImportError::Refdata(faults) => faults.fmt(f),
            ImportError::Output(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for ImportError {
    fn from(error: io::Error) -> ImportError {
        ImportError::Output(error)
    }
}

/// Imports the instruments of Binance Spot, and prints what is new.
pub(crate) fn import_binance(args: &BinanceImportArgs, out: &mut impl Write) -> Result<(), ImportError> {
    let (source, json) = exchange_info(args)?;
    let problem = |problem: String| ImportError::Source(source.clone(), problem);
    let symbols = parse_exchange_info(&json)
        .map_err(|error| problem(format!("it is not exchange information: {error}")))?;
    let wanted = wanted_symbols(args, &symbols).map_err(problem)?;
    let mut left_out: Vec<(SymbolProblem, &str)> = Vec::new();
    let mut instruments = Vec::new();
    for symbol in wanted {
        match symbol.terms {
            Ok(terms) => instruments.push(VenueInstrument {
                symbol: symbol.symbol.clone(),
                description: format!("{} / {}", symbol.base_asset, symbol.quote_asset),
                kind: SecurityKind::Crypto,
                base: terms.base,
                currency: terms.quote,
                tick_size: terms.tick_size,
                lot_size: terms.lot_size,
                limits: terms.limits,
            }),
            Err(why) => left_out.push((why, &symbol.symbol)),
        }
    }
    let venue = ImportedVenue { exchange: &args.exchange, mic: &args.mic, adapter: &args.adapter };
    let summary = import(&args.folder, &venue, &instruments).map_err(ImportError::Refdata)?;
    for warning in warnings(&mut left_out, &summary) {
        writeln!(io::stderr(), "warning: {warning}")?;
    }
    let ImportSummary { families, securities, kept, .. } = summary;
    writeln!(
        out,
        "{}: {securities} securities and {families} families added, {kept} kept",
        args.folder.display()
    )?;
    Ok(())
}

/// Returns the name of the source, and the exchange information.
fn exchange_info(args: &BinanceImportArgs) -> Result<(String, Vec<u8>), ImportError> {
    if let Some(path) = &args.file {
        let source = path.display().to_string();
        let mut json = Vec::new();
        let limit = BODY_BYTES_MAX as u64 + 1;
        let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut json));
        return match read {
            Ok(count) if count > BODY_BYTES_MAX => {
                Err(ImportError::Source(source, HttpError::TooLarge.to_string()))
            }
            Ok(_) => Ok((source, json)),
            Err(error) => Err(ImportError::Source(source, error.to_string())),
        };
    }
    let public = match args.environment {
        VenueEnvironment::Testnet => TESTNET,
        VenueEnvironment::Production => PRODUCTION,
    };
    let source = args.url.clone().unwrap_or_else(|| public.to_string());
    let problem = |problem: String| ImportError::Source(source.clone(), problem);
    let url = VenueUrl::parse_https(&source).map_err(problem)?;
    let answer = https::get(&url, QUERY, authorities(args.tls_ca.as_deref()))
        .map_err(|error| problem(error.to_string()))?;
    if answer.status != 200 {
        return Err(problem(refusal(&answer)));
    }
    Ok((source, answer.body))
}

/// Returns why the venue has not answered the request.
fn refusal(answer: &HttpAnswer) -> String {
    let HttpAnswer { status, retry_after_s, body } = answer;
    let mut text = match status {
        429 => "429: the venue has too many requests from this address".to_string(),
        418 => "418: the venue has banned this address".to_string(),
        451 => "451: the venue does not serve this location".to_string(),
        status => format!("the venue answers with status {status}"),
    };
    if let Some(seconds) = retry_after_s {
        // Writing to a text cannot fail.
        let _ = write!(text, "; try again in {seconds} s");
    }
    let message = serde_json::from_slice::<Value>(body).ok();
    if let Some(message) = message.as_ref().and_then(|body| body["msg"].as_str()) {
        let shown: String = message.chars().take(TEXT_CHARS_MAX).collect();
        let _ = write!(text, ": {}", shown.escape_debug());
    }
    text
}

/// Returns the symbols that the options name; all without options.
fn wanted_symbols<'a>(
    args: &BinanceImportArgs,
    symbols: &'a [VenueSymbol],
) -> Result<Vec<&'a VenueSymbol>, String> {
    let is_missing = |name: &&String| !symbols.iter().any(|symbol| symbol.symbol == **name);
    if let Some(missing) = args.symbols.iter().find(is_missing) {
        return Err(format!("the venue has no symbol {missing:?}"));
    }
    let is_missing = |asset: &&String| !symbols.iter().any(|symbol| symbol.quote_asset == **asset);
    if let Some(missing) = args.quotes.iter().find(is_missing) {
        return Err(format!("the venue has no symbol that is priced in {missing:?}"));
    }
    let is_all = args.symbols.is_empty() && args.quotes.is_empty();
    let is_wanted = |symbol: &&VenueSymbol| {
        is_all || args.symbols.contains(&symbol.symbol) || args.quotes.contains(&symbol.quote_asset)
    };
    Ok(symbols.iter().filter(is_wanted).collect())
}

/// Returns what an operator should know about the symbols, a line each.
fn warnings(left_out: &mut [(SymbolProblem, &str)], summary: &ImportSummary) -> Vec<String> {
    left_out.sort_unstable();
    let mut lines: Vec<String> = left_out
        .chunk_by(|one, other| one.0 == other.0)
        .map(|group| {
            let names: Vec<&str> = group.iter().map(|(_, name)| *name).collect();
            format!("{} symbols are left out: {}: {}", group.len(), group[0].0.words(), listed(&names))
        })
        .collect();
    if !summary.changed_terms.is_empty() {
        let names: Vec<&str> = summary.changed_terms.iter().map(String::as_str).collect();
        lines.push(format!(
            "the venue has another tick, lot or currency now, and the files keep the old one: {}",
            listed(&names)
        ));
    }
    if !summary.changed_limits.is_empty() {
        let names: Vec<&str> = summary.changed_limits.iter().map(String::as_str).collect();
        lines.push(format!(
            "the venue has other limits per order than families.csv, where they can be changed: {}",
            listed(&names)
        ));
    }
    lines
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<String> =
        names.iter().take(NAMED_MAX).map(|name| name.escape_debug().to_string()).collect();
    let more = if names.len() > NAMED_MAX { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
