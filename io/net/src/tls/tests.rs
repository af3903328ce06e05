//! Real handshakes over a loopback connection, with a rustls client that trusts only the given
//! certificates.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use pitlane_engine::time::{NS_PER_DAY, NS_PER_S};
use pitlane_testkit::certificates::{TestAuthority, TestIdentity};
use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, NamedGroup, ServerConnection, Stream, SupportedProtocolVersion,
};

use super::*;

const NOW: Timestamp = Timestamp(1_800_000_000 * NS_PER_S);

/// A folder for one test, removed when it is dropped.
struct TlsFolder(PathBuf);

impl TlsFolder {
    fn new() -> TlsFolder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("pitlane-tls-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        TlsFolder(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for TlsFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn self_signed(folder: &TlsFolder) -> TlsSettings {
    let certificate = Certificate::SelfSigned { folder: folder.0.join("data") };
    TlsSettings { certificate, client_ca: None }
}

/// Returns the certificate of a self-signed server, which is its own authority.
fn authority(folder: &TlsFolder) -> Vec<CertificateDer<'static>> {
    certificates(&folder.0.join("data/self-signed.pem")).unwrap()
}

struct TlsClient {
    trusts: Vec<CertificateDer<'static>>,
    identity: Option<TestIdentity>,
    versions: &'static [&'static SupportedProtocolVersion],
    provider: Arc<CryptoProvider>,
}

impl TlsClient {
    fn trusting(trusts: Vec<CertificateDer<'static>>) -> TlsClient {
        TlsClient { trusts, identity: None, versions: rustls::ALL_VERSIONS, provider: provider() }
    }

    fn config(self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        self.trusts.into_iter().for_each(|root| roots.add(root).unwrap());
        let config = ClientConfig::builder_with_provider(self.provider)
            .with_protocol_versions(self.versions)
            .unwrap()
            .with_root_certificates(roots);
        match self.identity {
            Some((chain, key)) => config.with_client_auth_cert(chain, key).unwrap(),
            None => config.with_no_client_auth(),
        }
    }
}

/// Sends four bytes each way; returns the certificate that the server presented.
fn talk(tls: &Tls, client: TlsClient, name: &str) -> Result<CertificateDer<'static>, String> {
    let connection = connect(tls, Arc::new(client.config()), name)?;
    Ok(connection.peer_certificates().unwrap()[0].clone().into_owned())
}

fn connect(tls: &Tls, client: Arc<ClientConfig>, name: &str) -> Result<ClientConnection, String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = tls.config();
    let server = thread::spawn(move || -> io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        let mut connection = ServerConnection::new(config).expect("a server");
        let mut stream = Stream::new(&mut connection, &mut socket);
        let mut word = [0; 4];
        stream.read_exact(&mut word)?;
        stream.write_all(&word)
    });
    let mut socket = TcpStream::connect(address).unwrap();
    let name = ServerName::try_from(name.to_string()).unwrap();
    let mut connection = ClientConnection::new(client, name).unwrap();
    let mut stream = Stream::new(&mut connection, &mut socket);
    let mut echo = [0; 4];
    let talked = stream.write_all(b"ping").and_then(|()| stream.read_exact(&mut echo));
    drop(socket);
    let served = server.join().unwrap();
    talked.map_err(|error| error.to_string())?;
    served.map_err(|error| error.to_string())?;
    assert_eq!(&echo, b"ping");
    Ok(connection)
}

#[test]
fn a_first_start_creates_a_certificate_for_this_machine_and_protects_its_key() {
    let folder = TlsFolder::new();
    let tls = Tls::open(self_signed(&folder), real_now()).unwrap();
    for name in ["localhost", "127.0.0.1", "::1"] {
        talk(&tls, TlsClient::trusting(authority(&folder)), name).unwrap();
    }
    assert!(talk(&tls, TlsClient::trusting(authority(&folder)), "example.com").is_err());
    let mode =
        |name: &str| fs::metadata(folder.0.join("data").join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("self-signed.key"), 0o600);
    let left: Vec<_> = fs::read_dir(folder.0.join("data")).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing but certificate and key");
}

/// Returns the current time: rustls checks the certificates of tests against the real clock.
fn real_now() -> Timestamp {
    pitlane_runtime::clock::Clock::new().now()
}

#[test]
fn both_tls_versions_are_supported() {
    let folder = TlsFolder::new();
    let tls = Tls::open(self_signed(&folder), real_now()).unwrap();
    assert_eq!(rustls::ALL_VERSIONS.len(), 2);
    for versions in rustls::ALL_VERSIONS.chunks(1) {
        let client = TlsClient { versions, ..TlsClient::trusting(authority(&folder)) };
        talk(&tls, client, "localhost").unwrap();
    }
}

#[test]
fn the_key_exchange_is_post_quantum_unless_the_client_lacks_it() {
    let folder = TlsFolder::new();
    let tls = Tls::open(self_signed(&folder), real_now()).unwrap();
    let group_with = |client: TlsClient| {
        let connection = connect(&tls, Arc::new(client.config()), "localhost").unwrap();
        connection.negotiated_key_exchange_group().map(|group| group.name())
    };
    assert_eq!(group_with(TlsClient::trusting(authority(&folder))), Some(NamedGroup::X25519MLKEM768));
    for group in [aws_lc_rs::kx_group::X25519, aws_lc_rs::kx_group::SECP256R1] {
        let older = CryptoProvider { kx_groups: vec![group], ..aws_lc_rs::default_provider() };
        let client = TlsClient { provider: Arc::new(older), ..TlsClient::trusting(authority(&folder)) };
        assert_eq!(group_with(client), Some(group.name()));
    }
}

/// A client that reads in one thread and writes in another loses its first message if a ticket
/// arrives.
#[test]
fn sessions_are_not_resumed_and_no_ticket_follows_a_handshake() {
    let folder = TlsFolder::new();
    let tls = Tls::open(self_signed(&folder), real_now()).unwrap();
    for versions in rustls::ALL_VERSIONS.chunks(1) {
        let client = Arc::new(TlsClient { versions, ..TlsClient::trusting(authority(&folder)) }.config());
        for _ in 0..2 {
            let connection = connect(&tls, client.clone(), "localhost").unwrap();
            assert_ne!(connection.handshake_kind(), Some(rustls::HandshakeKind::Resumed));
            assert_eq!(connection.tls13_tickets_received(), 0);
        }
    }
}

#[test]
fn a_certificate_is_kept_until_it_is_about_to_expire() {
    let folder = TlsFolder::new();
    let open = |now| Tls::open(self_signed(&folder), now).unwrap().not_after();
    let first = open(NOW);
    assert_eq!(first.since(NOW) / NS_PER_DAY, 363, "some hours of the first day are over");
    assert_eq!(open(NOW.plus(330 * NS_PER_DAY)), first);
    let second = open(NOW.plus(340 * NS_PER_DAY));
    assert_eq!(second.0, first.0 + 340 * NS_PER_DAY);
    assert_eq!(open(NOW.plus(340 * NS_PER_DAY)), second);
}

#[test]
fn an_interrupted_start_is_repaired_by_the_next() {
    let folder = TlsFolder::new();
    Tls::open(self_signed(&folder), NOW).unwrap();
    for spoil in ["self-signed.key", "self-signed.pem"] {
        fs::remove_file(folder.0.join("data").join(spoil)).unwrap();
        Tls::open(self_signed(&folder), NOW).unwrap();
    }
    fs::write(folder.0.join("data/self-signed.pem"), "no certificate").unwrap();
    Tls::open(self_signed(&folder), NOW).unwrap();
}

#[test]
fn a_reload_shows_the_new_certificate_and_a_bad_one_changes_nothing() {
    let (folder, authority) = (TlsFolder::new(), TestAuthority::generate());
    let (chain, key) = authority.sign("localhost");
    let files =
        Certificate::Files { chain: folder.write("chain.pem", &chain), key: folder.write("key.pem", &key) };
    let tls = Tls::open(TlsSettings { certificate: files, client_ca: None }, real_now()).unwrap();
    let see = || talk(&tls, TlsClient::trusting(authority.trusted()), "localhost").unwrap();
    let first = see();
    assert_eq!(see(), first);

    let (chain, key) = authority.sign("localhost");
    folder.write("chain.pem", &chain);
    let error = tls.reload(real_now()).unwrap_err();
    assert!(matches!(error, TlsError::Rustls(_)), "the key is another's: {error}");
    assert_eq!(see(), first);

    folder.write("key.pem", &key);
    tls.reload(real_now()).unwrap();
    assert_ne!(see(), first);
}

#[test]
fn only_clients_of_the_authority_in_force_are_accepted() {
    let folder = TlsFolder::new();
    let (ours, others) = (TestAuthority::generate(), TestAuthority::generate());
    let ca = folder.write("ca.pem", &ours.pem);
    let settings = TlsSettings { client_ca: Some(ca), ..self_signed(&folder) };
    let tls = Tls::open(settings, real_now()).unwrap();
    let come = |identity| {
        let client = TlsClient { identity, ..TlsClient::trusting(super::tests::authority(&folder)) };
        talk(&tls, client, "localhost").is_ok()
    };
    assert!(come(Some(ours.identity())));
    assert!(!come(Some(others.identity())));
    assert!(!come(None));
    folder.write("ca.pem", &others.pem);
    tls.reload(real_now()).unwrap();
    assert!(!come(Some(ours.identity())));
    assert!(come(Some(others.identity())));
}

#[test]
fn errors_for_the_operator_name_the_file() {
    let (folder, authority) = (TlsFolder::new(), TestAuthority::generate());
    let (chain, key) = authority.sign("localhost");
    let (chain, key) = (folder.write("chain.pem", &chain), folder.write("key.pem", &key));
    let (empty, rubbish) = (folder.write("empty.pem", ""), folder.write("bad.pem", BAD));
    let missing = folder.0.join("missing.pem");
    let load_error = |chain: &PathBuf, key: &PathBuf, client_ca: Option<&PathBuf>| {
        let certificate = Certificate::Files { chain: chain.clone(), key: key.clone() };
        let settings = TlsSettings { certificate, client_ca: client_ca.cloned() };
        Tls::open(settings, NOW).map(|_| ()).unwrap_err().to_string()
    };
    assert!(load_error(&missing, &key, None).contains("missing.pem"));
    assert!(load_error(&chain, &missing, None).contains("missing.pem"));
    assert!(load_error(&empty, &key, None).contains("empty.pem: no certificate"));
    assert!(load_error(&rubbish, &key, None).contains("bad.pem: not a certificate"));
    assert!(load_error(&chain, &empty, None).contains("empty.pem: no private key"));
    assert!(load_error(&chain, &key, Some(&empty)).contains("empty.pem"));
}

const BAD: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
