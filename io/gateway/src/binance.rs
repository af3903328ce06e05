//! Settings of `[[adapter]]` for Binance Spot: the address, the key that signs requests, and the
//! state machine made from them.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64ct::{Base64, Encoding};
use pitlane_config::time_zone::Zone;
use pitlane_config::{AdapterConfig, AdapterKind, Config, VenueUrl};
use pitlane_engine::id::AdapterId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{TimeOfDay, Timestamp};
use pitlane_net::settings::{BufferLimits, ConnectTarget};
use pitlane_protocols::fix::schedule::SessionSchedule;
use pitlane_protocols::binance::{BinanceSession, BinanceSettings, Signer, StreamAddress};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;

use crate::fix::settings::schedule_in;
use crate::fix::venue::{VenueSessionError, addresses_of, tls_to};

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
    signer: RequestSigner,
}

/// When trading days begin.
#[derive(Clone, Debug)]
pub struct TradingDayClock {
    zone: Zone,
    rollover: TimeOfDay,
}

impl TradingDayClock {
    fn of(config: &Config) -> TradingDayClock {
        TradingDayClock { zone: config.service.timezone.clone(), rollover: config.service.trading_day_rollover }
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

    fn of(config: &Config, at: usize, adapter: &AdapterConfig) -> Result<BinanceVenueSettings, VenueSessionError> {
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
        let signer = match (&settings.secret, &settings.secret_file) {
            (Some(secret), _) => RequestSigner::of(secret.reveal().as_bytes()),
            (None, Some(path)) => fs::read(path)
                .map_err(|problem| problem.to_string())
                .and_then(|bytes| RequestSigner::of(&bytes))
                .map_err(|problem| format!("{}: {problem}", path.display())),
            (None, None) => Err("there is none".to_string()),
        };
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

/// The key of an account.
#[derive(Clone)]
enum RequestSigner {
    Hmac(Arc<hmac::Key>),
    Ed25519(Arc<Ed25519KeyPair>),
}

impl RequestSigner {
    /// Reads an Ed25519 key in PEM, or anything else as an HMAC secret.
    fn of(secret: &[u8]) -> Result<RequestSigner, String> {
        let secret = secret.trim_ascii();
        if secret.is_empty() {
            return Err("it is empty".to_string());
        }
        if !secret.starts_with(b"-----BEGIN") {
            return Ok(RequestSigner::Hmac(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, secret))));
        }
        let key = PrivatePkcs8KeyDer::from_pem_slice(secret)
            .map_err(|_| "it has no PRIVATE KEY in PEM (PKCS #8)".to_string())?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.secret_pkcs8_der())
            .map_err(|_| "its key is not for Ed25519".to_string())?;
        Ok(RequestSigner::Ed25519(Arc::new(pair)))
    }
}

impl fmt::Debug for RequestSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RequestSigner::Hmac(_) => "Hmac(***)",
            RequestSigner::Ed25519(_) => "Ed25519(***)",
        })
    }
}

impl Signer for RequestSigner {
    fn sign(&self, payload: &[u8], out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        match self {
            RequestSigner::Hmac(key) => {
                for byte in hmac::sign(key, payload).as_ref() {
                    out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
                }
            }
            RequestSigner::Ed25519(pair) => {
                out.extend_from_slice(Base64::encode_string(pair.sign(payload).as_ref()).as_bytes());
            }
        }
    }

    fn can_log_on(&self) -> bool {
        matches!(self, RequestSigner::Ed25519(_))
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, KeyPair, UnparsedPublicKey};

    use super::*;

    fn signature(signer: &RequestSigner, payload: &str) -> String {
        let mut out = Vec::new();
        signer.sign(payload.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    /// The examples of `web-socket-api.md`, section "SIGNED request example (HMAC)".
    #[test]
    fn hmac_signatures_are_those_of_the_documentation() {
        let signer =
            RequestSigner::of(b"NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j\n").unwrap();
        let payload = "apiKey=vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A&price=52000.00\
                       &quantity=0.01000000&recvWindow=100&side=SELL&symbol=BTCUSDT&timeInForce=GTC\
                       &timestamp=1645423376532&type=LIMIT";
        let expected = "aa1b5712c094bc4e57c05a1a5c1fd8d88dcd628338ea863fec7b88e59fe2db24";
        assert_eq!((signature(&signer, payload).as_str(), signer.can_log_on()), (expected, false));
        let payload = "apiKey=vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A&price=0.10000000\
                       &quantity=1.00000000&recvWindow=5000&side=BUY&symbol=１２３４５６&timeInForce=GTC\
                       &timestamp=1645423376532&type=LIMIT";
        let expected = "b33892ae8e687c939f4468c6268ddd4c40ac1af18ad19a064864c47bae0752cd";
        assert_eq!(signature(&signer, payload), expected);
    }

    /// The private key of RFC 8410, section 10.3, in the first form that has no public key.
    #[test]
    fn ed25519_keys_in_pem_sign_what_their_public_key_verifies() {
        let pem = "-----BEGIN PRIVATE KEY-----\n\
                   MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
                   -----END PRIVATE KEY-----\n";
        let signer = RequestSigner::of(pem.as_bytes()).unwrap();
        assert!(signer.can_log_on());
        let RequestSigner::Ed25519(pair) = &signer else { panic!("{signer:?}") };
        let signed = Base64::decode_vec(&signature(&signer, "timestamp=1")).unwrap();
        let public = UnparsedPublicKey::new(&ED25519, pair.public_key().as_ref());
        assert!(public.verify(b"timestamp=1", &signed).is_ok());
        assert!(public.verify(b"timestamp=2", &signed).is_err());
    }

    #[test]
    fn keys_are_not_shown_and_mistakes_are_named() {
        assert_eq!(format!("{:?}", RequestSigner::of(b"hunter2").unwrap()), "Hmac(***)");
        assert!(RequestSigner::of(b" \n").unwrap_err().contains("empty"));
        assert!(RequestSigner::of(b"-----BEGIN PUBLIC KEY-----\n").unwrap_err().contains("PRIVATE KEY"));
    }
}
