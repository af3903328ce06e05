//! Arguments of the commands that write reference data.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Clone, Debug, Subcommand)]
pub enum RefDataCommand {
    /// Add the instruments of a venue to a folder of reference data
    #[command(subcommand)]
    Import(ImportCommand),
}

#[derive(Clone, Debug, Subcommand)]
pub enum ImportCommand {
    /// Import the symbols of Binance Spot
    ///
    /// Reads the exchange information of the venue and adds an exchange, families and securities to
    /// the CSV files of the folder, which is created if needed. Rows that are there keep their ids
    /// and their values. Prints what is new.
    #[command(after_help = "Examples:
  pitlane refdata import binance refdata --symbols BTCUSDT,ETHUSDT
  pitlane refdata import binance refdata --quotes USDT,BTC --environment production
  curl 'https://api.binance.com/api/v3/exchangeInfo' > info.json
  pitlane refdata import binance refdata --file info.json")]
    Binance(BinanceImportArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VenueEnvironment {
    Testnet,
    Production,
}

#[derive(Clone, Debug, Args)]
pub struct BinanceImportArgs {
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Read the exchange information from a file instead of the venue
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "environment", "tls_ca"])]
    pub file: Option<PathBuf>,
    /// Whose symbols: the environment of the adapter
    #[arg(long, value_enum, value_name = "NAME", default_value = "testnet")]
    pub environment: VenueEnvironment,
    /// Address of the exchange information, instead of that of the environment
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Certificate authorities in PEM, instead of those of the system
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Only these symbols
    #[arg(long, value_name = "SYMBOL,…", value_delimiter = ',')]
    pub symbols: Vec<String>,
    /// Only symbols that are priced in these assets
    #[arg(long, value_name = "ASSET,…", value_delimiter = ',')]
    pub quotes: Vec<String>,
    /// Name of the adapter in the settings
    #[arg(long, value_name = "NAME", default_value = "BINANCE")]
    pub adapter: String,
    /// Name of the exchange in the reference data
    #[arg(long, value_name = "NAME", default_value = "Binance Spot")]
    pub exchange: String,
    /// Market identifier (ISO 10383) of the exchange; XXXX means none
    #[arg(long, value_name = "MIC", default_value = "XXXX")]
    pub mic: String,
}
