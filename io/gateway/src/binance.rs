//! Settings of `[[adapter]]` for Binance Spot: the address, the key that signs requests, and the
//! state machine made from them.

use std::path::Path;
use std::sync::Arc;

use pitlane_config::time_zone::Zone;
use pitlane_config::{AdapterConfig, AdapterKind, Config, VenueUrl};
use pitlane_engine::id::AdapterId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{TimeOfDay, Timestamp};
use pitlane_net::settings::{BufferLimits, ConnectTarget};
use pitlane_protocols::binance::{BinanceSession, BinanceSettings, StreamAddress};
use pitlane_protocols::fix::schedule::SessionSchedule;

use crate::fix::settings::schedule_in;
use crate::fix::venue::{VenueSessionError, addresses_of, tls_to};
use crate::signing_key::SigningKey;

/// Addresses of an environment: the WebSocket API, and the market streams.
const TESTNET: [&str; 2] =
    ["wss://ws-api.testnet.binance.vision/ws-api/v3", "wss://stream.testnet.binance.vision/stream"];
const PRODUCTION: [&str; 2] =
    ["wss://ws-api.binance.com:443/ws-api/v3", "wss://stream.binance.com:443/stream"];

/// Where systems keep the certificates of public authorities.
const PUBLIC_AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Input of a connection: the longest message and some more.
const LIMITS: BufferLimits = BufferLimits { input_bytes_max: 256 * 1024, output_bytes_max: 1024 * 1024 };

/// The settings of one venue, checked and complete.
#[derive(Clone, Debug)]
pub struct BinanceVenueSettings {
    pub id: AdapterId,
    pub name: String,
    /// By connection, one entry per address of its host; they are tried in turn.
    pub targets: Vec<Vec<ConnectTarget>>,
    pub trading_day: TradingDayClock,
    session: BinanceSettings,
    signer: SigningKey,
}

/// When trading days begin.
#[derive(Clone, Debug)]
pub struct TradingDayClock {
    zone: Zone,
    rollover: TimeOfDay,
}

impl TradingDayClock {
    fn of(config: &Config) -> TradingDayClock {
        TradingDayClock {
            zone: config.service.timezone.clone(),
            rollover: config.service.trading_day_rollover,
        }
    }

    /// Returns the trading days around this time.
    pub fn schedule(&self, now: Timestamp) -> SessionSchedule {
        schedule_in(&self.zone, self.rollover, self.rollover, now)
    }
}

impl BinanceVenueSettings {
    /// Returns all configured venues of this type. Host names are resolved here, once, and keys are
    /// read.
    pub fn all(config: &Config) -> Result<Vec<BinanceVenueSettings>, VenueSessionError> {
        let adapters = config.adapters.iter().enumerate();
        adapters
            .filter(|(_, adapter)| adapter.kind == AdapterKind::BinanceSpot)
            .map(|(at, adapter)| BinanceVenueSettings::of(config, at, adapter))
            .collect()
    }

    fn of(
        config: &Config,
        at: usize,
        adapter: &AdapterConfig,
    ) -> Result<BinanceVenueSettings, VenueSessionError> {
        let error =
            |key: &str, problem: String| VenueSessionError { key: format!("adapter.{at}.{key}"), problem };
        let settings = &adapter.usual.binance;
        let [api_url, stream_url] = if settings.is_production { PRODUCTION } else { TESTNET };
        let url = VenueUrl::parse(settings.url.as_deref().unwrap_or(api_url))
            .map_err(|problem| error("url", problem))?;
        let authorities = authorities(adapter.usual.tls_ca.as_deref());
        let targets_of =
            |url: &VenueUrl, key| targets_of(url, authorities).map_err(|problem| error(key, problem));
        let mut targets = vec![targets_of(&url, "url")?];
        let mut market_data = None;
        if adapter.usual.market_data {
            let url = VenueUrl::parse(settings.stream_url.as_deref().unwrap_or(stream_url))
                .map_err(|problem| error("stream_url", problem))?;
            targets.push(targets_of(&url, "stream_url")?);
            market_data = Some(StreamAddress { host: url.authority(), path: url.path });
        }
        let key = &adapter.usual.key;
        let signer =
            SigningKey::configured(key.secret.as_ref(), key.secret_file.as_deref(), key.secret_encoding);
        let id =
            AdapterId(u8::try_from(at + 1).map_err(|_| error("name", "there are too many".to_string()))?);
        Ok(BinanceVenueSettings {
            id,
            name: adapter.name.clone(),
            targets,
            trading_day: TradingDayClock::of(config),
            session: BinanceSettings {
                adapter: id,
                host: url.authority(),
                path: url.path,
                api_key: settings.api_key.as_ref().map(|key| key.reveal().to_string()).unwrap_or_default(),
                receive_window_ms: u64::from(settings.receive_window_ms),
                reconnect_s: u64::from(adapter.usual.reconnect_interval_s),
                folder_id: 0,
                market_data,
                market_depth: adapter.usual.market_depth,
            },
            signer: signer.map_err(|problem| error("secret", problem))?,
        })
    }

    /// Creates the adapter.
    pub fn adapter(&self, folder_id: u64, reference: Arc<RefData>) -> BinanceSession {
        let settings = BinanceSettings { folder_id, ..self.session.clone() };
        BinanceSession::new(settings, Box::new(self.signer.clone()), reference)
    }
}

/// Returns the addresses of a host, which is resolved here.
fn targets_of(url: &VenueUrl, authorities: &Path) -> Result<Vec<ConnectTarget>, String> {
    let tls = if url.is_tls { Some(tls_to(&url.host, authorities)?) } else { None };
    let addresses = addresses_of(&url.host, url.port)?;
    let target = |address| ConnectTarget { address, tls: tls.clone(), limits: LIMITS };
    Ok(addresses.into_iter().map(target).collect())
}

/// Returns the file with the authorities whose certificates a public venue has.
pub fn authorities(configured: Option<&Path>) -> &Path {
    let found = PUBLIC_AUTHORITIES.iter().map(Path::new).find(|path| path.is_file());
    configured.or(found).unwrap_or(Path::new(PUBLIC_AUTHORITIES[0]))
}
