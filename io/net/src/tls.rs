//! TLS for every listener: one rustls configuration, shared by the http thread and the gateways.
//!
//! The certificate is the configured one, or a self-signed one that is created in the data folder
//! on the first start. It can be replaced at run time: connections made after [`Tls::reload`] use
//! the new one, earlier ones continue unchanged.
//!
//! ```text
//! Tls ── config() ──► ServerConfig ── queries at each handshake ──► Shelf ◄── reload()
//! ```

mod self_signed;
mod validity;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use pitlane_engine::time::Timestamp;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error as RustlsError, RootCertStore, ServerConfig,
    SignatureScheme,
};

pub use self::validity::not_after;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    pub certificate: Certificate,
    /// Authority that signs the certificates of clients; if set, a client without one is refused.
    pub client_ca: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// Two PEM files: the chain, leaf first, and its key.
    Files { chain: PathBuf, key: PathBuf },
    /// A certificate created and kept in this folder.
    SelfSigned { folder: PathBuf },
}

#[derive(Debug)]
pub struct Tls {
    settings: TlsSettings,
    cache: Arc<CertificateCache>,
    config: Arc<ServerConfig>,
}

/// The certificates in force: read at each handshake, written by a reload. The lock is held only
/// while a pointer is copied.
#[derive(Debug)]
struct CertificateCache {
    provider: Arc<CryptoProvider>,
    now: RwLock<InForce>,
}

#[derive(Clone, Debug)]
struct InForce {
    key: Arc<CertifiedKey>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    not_after: Timestamp,
}

/// Returns the only cryptography provider of the process. It is never installed globally. It
/// prefers a key exchange that resists quantum computers (X25519MLKEM768) and accepts older ones
/// from clients that lack it.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

impl Tls {
    /// Reads the certificate. Creates a self-signed one if that is configured and there is none, or
    /// it is about to expire.
    pub fn open(settings: TlsSettings, now: Timestamp) -> Result<Tls, TlsError> {
        let provider = provider();
        let in_force = load(&settings, &provider, now)?;
        let mutual = in_force.clients.is_some();
        let cache = Arc::new(CertificateCache { provider: provider.clone(), now: RwLock::new(in_force) });
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Rustls)?;
        let config = match mutual {
            true => config.with_client_cert_verifier(Arc::new(ClientVerifier { cache: cache.clone() })),
            false => config.with_no_client_auth(),
        };
        let mut config = config.with_cert_resolver(cache.clone());
        config.alpn_protocols = vec![];
        // Sessions are not resumed. A resumed session is not verified again, so a client whose
        // issuer was removed might still connect. In addition, the ticket for it arrives right
        // after the handshake, while clients that read and write in two threads send their first
        // message: OpenSSL does not support writing while a ticket is read, and the message of such
        // a client (stomp.py's STOMP frame) was lost every few dozen times.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Tls { settings, cache, config: Arc::new(config) })
    }

    /// Returns the configuration, the same for every listener and for the lifetime of the process.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// Reads the files again. If there is any error, the certificates in force stay.
    pub fn reload(&self, now: Timestamp) -> Result<(), TlsError> {
        let in_force = load(&self.settings, &self.cache.provider, now)?;
        *self.cache.now.write().unwrap_or_else(PoisonError::into_inner) = in_force;
        Ok(())
    }

    /// Returns when the certificate in force expires.
    pub fn not_after(&self) -> Timestamp {
        self.cache.in_force().not_after
    }
}

impl CertificateCache {
    fn in_force(&self) -> InForce {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn clients(&self) -> Arc<dyn ClientCertVerifier> {
        self.in_force().clients.expect("this is called only where clients are verified")
    }
}

impl ResolvesServerCert for CertificateCache {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.in_force().key)
    }
}

/// Verifies clients against the authority in force.
#[derive(Debug)]
struct ClientVerifier {
    cache: Arc<CertificateCache>,
}

impl ClientCertVerifier for ClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Hints are optional, and would have to outlive a reload.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, RustlsError> {
        self.cache.clients().verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        self.cache.clients().verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, RustlsError> {
        self.cache.clients().verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.cache.clients().supported_verify_schemes()
    }
}

fn load(settings: &TlsSettings, provider: &Arc<CryptoProvider>, now: Timestamp) -> Result<InForce, TlsError> {
    let (chain, key) = match &settings.certificate {
        Certificate::Files { chain, key } => (chain.clone(), key.clone()),
        Certificate::SelfSigned { folder } => self_signed::in_folder(folder, now)?,
    };
    let certificates = certificates(&chain)?;
    let leaf = certificates.first().ok_or_else(|| TlsError::Empty(chain.clone()))?;
    let not_after = not_after(leaf).ok_or_else(|| TlsError::Unreadable(chain.clone()))?;
    let secret = PrivateKeyDer::from_pem_slice(&read(&key)?).map_err(|_| TlsError::NoKey(key.clone()))?;
    // Fails if the key does not belong to the certificate.
    let certified = CertifiedKey::from_der(certificates, secret, provider).map_err(TlsError::Rustls)?;
    let clients = settings.client_ca.as_deref().map(|path| verifier(path, provider)).transpose()?;
    Ok(InForce { key: Arc::new(certified), clients, not_after })
}

fn verifier(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(TlsError::Rustls)?;
    }
    if roots.is_empty() {
        return Err(TlsError::Empty(path.to_path_buf()));
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    builder.build().map_err(|error| TlsError::ClientCa(path.to_path_buf(), error.to_string()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(path)?;
    let all = CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>();
    all.map_err(|_| TlsError::Unreadable(path.to_path_buf()))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|error| TlsError::Io(path.to_path_buf(), error))
}

/// An error for the operator to fix; each names its file.
#[derive(Debug)]
pub enum TlsError {
    Io(PathBuf, io::Error),
    /// The file is not PEM, or not a certificate.
    Unreadable(PathBuf),
    Empty(PathBuf),
    NoKey(PathBuf),
    ClientCa(PathBuf, String),
    Making(String),
    Rustls(RustlsError),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            TlsError::Unreadable(path) => write!(f, "{}: not a certificate in PEM", path.display()),
            TlsError::Empty(path) => write!(f, "{}: no certificate in it", path.display()),
            TlsError::NoKey(path) => write!(f, "{}: no private key in it", path.display()),
            TlsError::ClientCa(path, words) => write!(f, "{}: {words}", path.display()),
            TlsError::Making(words) => write!(f, "a self-signed certificate could not be made: {words}"),
            TlsError::Rustls(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for TlsError {}

#[cfg(test)]
mod tests;
