//! Settings of `[[adapter]]` for a venue session: the addresses to connect to, and the parameters
//! of the session.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use pitlane_config::time_zone::Zone;
use pitlane_config::{AdapterConfig, AdapterKind, Config};
use pitlane_engine::id::{AdapterId, Source};
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_net::settings::{BufferLimits, ConnectTarget};
use pitlane_net::tls::provider;
use pitlane_protocols::fix::schedule::SessionSchedule;
use pitlane_protocols::fix::session::FixSessionSettings;
use pitlane_protocols::fix::venue::profile::LogonSigner;
use pitlane_protocols::fix::venue::{InitiatorSettings, VenueLogin};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::settings::schedule_in;
use crate::signing_key::SigningKey;

/// Maximum number of addresses of one host that are tried; no host needs more.
const ADDRESSES_MAX: usize = 16;

/// The settings of one venue, checked and complete.
#[derive(Clone, Debug)]
pub struct VenueSessionSettings {
    pub id: AdapterId,
    config: AdapterConfig,
    zone: Zone,
    /// One entry per address of the host; they are tried in turn.
    pub targets: Vec<ConnectTarget>,
    pub store_folder: PathBuf,
    pub store_bytes: usize,
    pub log_folder: Option<PathBuf>,
    message_bytes_max: usize,
    output_bytes_max: usize,
    sending_time_ns_max: u64,
    instance: u64,
    logon_key: Option<SigningKey>,
}

/// The reason why a venue cannot be connected to.
#[derive(Debug)]
pub struct VenueSessionError {
    pub key: String,
    pub problem: String,
}

impl fmt::Display for VenueSessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.problem)
    }
}

impl VenueSessionSettings {
    /// Returns all configured FIX venues. Host names are resolved here, once.
    pub fn all(config: &Config) -> Result<Vec<VenueSessionSettings>, VenueSessionError> {
        config
            .adapters
            .iter()
            .enumerate()
            .filter(|(_, adapter)| adapter.kind == AdapterKind::Fix)
            .map(|(at, adapter)| VenueSessionSettings::of(config, at, adapter))
            .collect()
    }

    fn of(
        config: &Config,
        at: usize,
        adapter: &AdapterConfig,
    ) -> Result<VenueSessionSettings, VenueSessionError> {
        let error =
            |key: &str, problem: String| VenueSessionError { key: format!("adapter.{at}.{key}"), problem };
        let host = adapter.socket_connect_host.as_str();
        let addresses = addresses_of(host, adapter.socket_connect_port);
        let addresses = addresses.map_err(|problem| error("SocketConnectHost", problem))?;
        let tls = match (adapter.usual.tls, &adapter.usual.tls_ca) {
            (true, Some(path)) => Some(tls_to(host, path).map_err(|problem| error("tls_ca", problem))?),
            // The config check rejects one without the other.
            (true, None) | (false, _) => None,
        };
        let key = &adapter.usual.key;
        let logon_key = match adapter.usual.profile.is_signed() {
            true => Some(
                SigningKey::configured(key.secret.as_ref(), key.secret_file.as_deref(), key.secret_encoding)
                    .map_err(|problem| error("secret", problem))?,
            ),
            false => None,
        };
        let limits = BufferLimits {
            input_bytes_max: 2 * config.fix.message_bytes_max,
            output_bytes_max: config.fix.out_buffer_bytes,
        };
        let defaults = &adapter.usual;
        Ok(VenueSessionSettings {
            id: AdapterId(u8::try_from(at + 1).map_err(|_| error("name", "there are too many".to_string()))?),
            zone: config.service.timezone.clone(),
            targets: addresses
                .into_iter()
                .map(|address| ConnectTarget { address, tls: tls.clone(), limits })
                .collect(),
            store_folder: defaults
                .file_store_path
                .clone()
                .unwrap_or_else(|| config.service.data_dir.join("venue")),
            store_bytes: config.fix.store_bytes,
            log_folder: defaults.file_log_path.clone(),
            message_bytes_max: config.fix.message_bytes_max,
            output_bytes_max: config.fix.out_buffer_bytes,
            sending_time_ns_max: config.fix.sending_time_s_max as u64 * NS_PER_S,
            instance: config.service.instance,
            logon_key,
            config: adapter.clone(),
        })
    }

    pub fn name(&self) -> &str {
        &self.config.name
    }

    pub fn schedule(&self, now: Timestamp) -> SessionSchedule {
        schedule_in(&self.zone, self.config.usual.start_time, self.config.usual.end_time, now)
    }

    pub fn session(&self, now: Timestamp, source: Source) -> FixSessionSettings {
        FixSessionSettings {
            instance: self.instance,
            schedule: self.schedule(now),
            reset_on_logon: self.config.usual.reset_on_logon,
            refresh_on_logon: false,
            validate: false,
            sending_time_ns_max: self.sending_time_ns_max,
            message_bytes_max: self.message_bytes_max,
            output_bytes_max: self.output_bytes_max,
            ..FixSessionSettings::new(&self.config.sender_comp_id, &self.config.target_comp_id, source)
        }
    }

    pub fn venue(&self, folder_id: u64) -> InitiatorSettings {
        let defaults = &self.config.usual;
        let login = defaults.username.as_ref().map(|username| VenueLogin {
            username: username.clone(),
            password: defaults.password.as_ref().map(|password| password.reveal().to_string()),
        });
        InitiatorSettings {
            heart_bt_int_s: defaults.heart_bt_int_s as u64,
            reconnect_s: defaults.reconnect_interval_s as u64,
            login,
            account: defaults.account.clone(),
            supports_status_request: defaults.status_request,
            market_data_adapter: defaults.market_data.then_some(self.id),
            market_depth: defaults.market_depth,
            folder_id,
            profile: defaults.profile.profile(),
        }
    }

    /// Returns the key that signs Logons, if the venue wants that.
    pub fn logon_signer(&self) -> Option<Box<dyn LogonSigner>> {
        let signer: Box<dyn LogonSigner> = Box::new(self.logon_key.clone()?);
        Some(signer)
    }
}

/// Returns at least one address.
pub fn addresses_of(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let found = (host, port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    tried_of(found).ok_or_else(|| format!("{host}: it has no address"))
}

fn tried_of(found: impl Iterator<Item = SocketAddr>) -> Option<Vec<SocketAddr>> {
    let tried: Vec<SocketAddr> = found.take(ADDRESSES_MAX).collect();
    (!tried.is_empty()).then_some(tried)
}

/// Builds the TLS settings that authenticate the venue.
pub fn tls_to(
    host: &str,
    path: &std::path::Path,
) -> Result<(Arc<ClientConfig>, ServerName<'static>), String> {
    let problem = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| problem(&error))? {
        let certificate = certificate.map_err(|error| problem(&error))?;
        roots.add(certificate).map_err(|error| problem(&error))?;
    }
    if roots.is_empty() {
        return Err(problem(&"there is no certificate in it"));
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_string()).map_err(|_| format!("{host} is no name for TLS"))?;
    Ok((Arc::new(config), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_tried_addresses_is_bounded() {
        let found = |count: usize| (0..).take(count).map(|n| SocketAddr::from(([10, 0, 0, n], 9_880)));
        for (count, tried) in [(1, 1), (ADDRESSES_MAX, ADDRESSES_MAX), (ADDRESSES_MAX + 1, ADDRESSES_MAX)] {
            assert_eq!(
                tried_of(found(count)),
                Some(found(tried).collect()),
                "the first of them, in their order"
            );
        }
        assert_eq!(tried_of(found(0)), None);
    }
}
