//! TLS with both drivers, with a rustls client and with OpenSSL's.
#![allow(clippy::unwrap_used, reason = "tests may")]

mod net_world;

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use net_world::{GatewayBehavior, NetFixture, PATIENCE, at_loopback, connect, on_each_driver};
use pitlane_net::event::{CloseReason, SocketEvent};
use pitlane_net::settings::{BufferLimits, DriverKind, ListenerSettings, NetSettings};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned, SupportedProtocolVersion,
};

type TlsClient = StreamOwned<ClientConnection, TcpStream>;

struct ClientIdentity {
    certificate: CertificateDer<'static>,
    config: Arc<ServerConfig>,
}

impl ClientIdentity {
    fn new() -> ClientIdentity {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS12, &TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        ClientIdentity { certificate, config: Arc::new(config) }
    }

    fn client(&self, address: SocketAddr, version: &'static SupportedProtocolVersion) -> TlsClient {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let socket = connect(address);
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
    }
}

fn fixture(driver: DriverKind, identity: &ClientIdentity) -> NetFixture {
    let limits = BufferLimits { output_bytes_max: 1 << 24, ..BufferLimits::default() };
    let listener = ListenerSettings { tls: Some(Arc::clone(&identity.config)), limits, ..at_loopback() };
    NetFixture::with(NetSettings { driver, ..NetSettings::default() }, listener)
}

/// Serves until the client's thread has ended.
fn serve<T>(fixture: &mut NetFixture, client: JoinHandle<T>) -> T {
    fixture.until("the client is through", |_| client.is_finished());
    client.join().unwrap()
}

#[test]
fn lines_and_megabytes_are_echoed() {
    on_each_driver(|driver| {
        for version in [&TLS12, &TLS13] {
            let identity = ClientIdentity::new();
            let mut fixture = fixture(driver, &identity);
            fixture.gateway.manners = GatewayBehavior::Bytes;
            let mut client = identity.client(fixture.address, version);
            let talk = thread::spawn(move || {
                for size in [1, 100, 16_384, 16_385, 100_000, 1_000_000] {
                    let bytes: Vec<u8> = (0..size).map(|at: u32| ((at * 7) & 0xff) as u8).collect();
                    client.write_all(&bytes).unwrap();
                    client.flush().unwrap();
                    let mut answer = vec![0; bytes.len()];
                    client.read_exact(&mut answer).unwrap();
                    assert!(answer == bytes);
                }
                // A close_notify is answered by one.
                client.conn.send_close_notify();
                client.flush().unwrap();
                assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
            });
            serve(&mut fixture, talk);
            fixture.until("it has left", |fixture| fixture.sockets().is_empty());
            let id = fixture.gateway.accepted()[0];
            assert_eq!(fixture.gateway.closed(), [(id, CloseReason::ByPeer)]);
        }
    });
}

#[test]
fn a_handshake_in_single_bytes_is_a_handshake() {
    on_each_driver(|driver| {
        let identity = ClientIdentity::new();
        let mut fixture = fixture(driver, &identity);
        let mut client = identity.client(fixture.address, &TLS13);
        client.sock.set_nonblocking(true).unwrap();
        client.conn.writer().write_all(b"hello\n").unwrap();
        let mut answer = Vec::new();
        fixture.until("the line has come back", |_| {
            let mut wire = Vec::new();
            while client.conn.wants_write() {
                client.conn.write_tls(&mut wire).unwrap();
            }
            wire.iter().for_each(|byte| assert_eq!(client.sock.write(&[*byte]).unwrap(), 1));
            match client.conn.read_tls(&mut client.sock) {
                Ok(_) => _ = client.conn.process_new_packets().unwrap(),
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            _ = client.conn.reader().read_to_end(&mut answer);
            answer == b"hello\n"
        });
        assert!(matches!(fixture.gateway.events[0], SocketEvent::Accepted { .. }));
    });
}

#[test]
fn finish_sends_close_notify_after_buffered_output() {
    on_each_driver(|driver| {
        let identity = ClientIdentity::new();
        let mut fixture = fixture(driver, &identity);
        let mut client = identity.client(fixture.address, &TLS13);
        let talk = thread::spawn(move || {
            let mut all = Vec::new();
            // Fails if the end comes without close_notify.
            client.read_to_end(&mut all).unwrap();
            all.len()
        });
        fixture.until("it is accepted", |fixture| !fixture.gateway.accepted().is_empty());
        let id = fixture.gateway.accepted()[0];
        fixture.sockets().send(id, &[b'x'; 10 << 20]).unwrap();
        fixture.sockets().finish(id);
        assert_eq!(serve(&mut fixture, talk), 10 << 20);
    });
}

#[test]
fn an_end_without_close_notify_is_distinguished() {
    on_each_driver(|driver| {
        let identity = ClientIdentity::new();
        let mut fixture = fixture(driver, &identity);
        let mut client = identity.client(fixture.address, &TLS13);
        let talk = thread::spawn(move || {
            client.write_all(b"cut off\n").unwrap();
            let mut answer = [0; 8];
            client.read_exact(&mut answer).unwrap();
        });
        serve(&mut fixture, talk);
        fixture.until("it is over", |fixture| !fixture.gateway.closed().is_empty());
        assert_eq!(fixture.gateway.closed()[0].1, CloseReason::Truncated);
        assert_eq!(fixture.sockets().counts().closed_truncated, 1);
    });
}

#[test]
fn plain_text_at_a_tls_port_is_refused_and_the_gateway_gets_no_event() {
    on_each_driver(|driver| {
        let identity = ClientIdentity::new();
        let mut fixture = fixture(driver, &identity);
        let mut client = connect(fixture.address);
        client.write_all(b"8=FIX.4.4|9=100|35=A|").unwrap();
        // An alert, and the end.
        _ = fixture.read_to_end(&mut client);
        assert_eq!(fixture.sockets().counts().closed_not_tls, 1);
        assert!(fixture.gateway.events.is_empty());
        assert!(fixture.sockets().is_empty());
    });
}

#[test]
fn tls_at_a_plain_port_is_refused() {
    on_each_driver(|driver| {
        let identity = ClientIdentity::new();
        let mut fixture = NetFixture::new(driver);
        let mut client = identity.client(fixture.address, &TLS13);
        let talk = thread::spawn(move || client.write_all(b"hello").is_err());
        assert!(serve(&mut fixture, talk));
        let id = fixture.gateway.accepted()[0];
        assert_eq!(fixture.gateway.closed(), [(id, CloseReason::TlsToPlain)]);
        assert_eq!(fixture.sockets().counts().closed_tls_to_plain, 1);
    });
}

#[test]
fn a_client_that_refuses_the_certificate_is_counted() {
    on_each_driver(|driver| {
        let (ours, another) = (ClientIdentity::new(), ClientIdentity::new());
        let mut fixture = fixture(driver, &ours);
        let mut client = another.client(fixture.address, &TLS13);
        let talk = thread::spawn(move || client.write_all(b"hello").is_err());
        assert!(serve(&mut fixture, talk));
        fixture.until("it is counted", |fixture| fixture.sockets().counts().closed_tls_failed == 1);
        assert!(fixture.gateway.events.is_empty());
    });
}

#[test]
fn an_unfinished_handshake_is_closed() {
    on_each_driver(|driver| {
        let identity = ClientIdentity::new();
        let mut fixture = fixture(driver, &identity);
        let mut client = connect(fixture.address);
        client.write_all(&[0x16, 0x03, 0x01]).unwrap();
        fixture.until("it has come", |fixture| fixture.sockets().counts().received_bytes == 3);
        fixture.now = fixture.now.plus(10_000_000_000);
        assert_eq!(fixture.read_to_end(&mut client), Some(Vec::new()));
        assert_eq!(fixture.sockets().counts().closed_handshake_slow, 1);
        assert!(fixture.gateway.events.is_empty());
    });
}

fn ping(client: &mut TlsClient) {
    client.write_all(b"ping\n").unwrap();
    let mut answer = [0; 5];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"ping\n");
}

#[test]
fn a_connection_keeps_its_tls_when_another_thread_adopts_it() {
    on_each_driver(|first| {
        on_each_driver(|second| {
            let identity = ClientIdentity::new();
            let (mut first, mut second) = (fixture(first, &identity), fixture(second, &identity));
            let mut client = identity.client(first.address, &TLS13);
            let talk = thread::spawn(move || {
                ping(&mut client);
                client.write_all(b"half a line").unwrap();
                client
            });
            let mut client = serve(&mut first, talk);
            let id = first.gateway.accepted()[0];
            first.until("it has come", |fixture| fixture.sockets().input(id) == b"half a line");
            first.sockets().send(id, b"unsent, ").unwrap();
            let detached = first.sockets().release(id).unwrap();
            second.sockets().adopt(detached);
            let talk = thread::spawn(move || {
                client.write_all(b" and the rest\n").unwrap();
                let mut answer = [0; 33];
                client.read_exact(&mut answer).unwrap();
                assert_eq!(&answer, b"unsent, half a line and the rest\n");
            });
            serve(&mut second, talk);
        });
    });
}

#[test]
fn encrypted_output_that_did_not_leave_moves_along() {
    const BYTES: usize = 8 << 20;
    on_each_driver(|first| {
        on_each_driver(|second| {
            let identity = ClientIdentity::new();
            let (mut first, mut second) = (fixture(first, &identity), fixture(second, &identity));
            let mut client = identity.client(first.address, &TLS13);
            let talk = thread::spawn(move || {
                ping(&mut client);
                client
            });
            let mut client = serve(&mut first, talk);
            let id = first.gateway.accepted()[0];
            first.sockets().send(id, &vec![b'x'; BYTES]).unwrap();
            // The client reads nothing: the buffers of the system and of the driver fill up.
            let mut idle = 0;
            first.until("no more leaves", |fixture| {
                let before = fixture.sockets().counts().sent_bytes;
                let work = fixture.step();
                idle =
                    if work == 0 && before == fixture.sockets().counts().sent_bytes { idle + 1 } else { 0 };
                idle > 20
            });
            let detached = first.sockets().release(id).unwrap();
            second.sockets().adopt(detached);
            let talk = thread::spawn(move || {
                let mut bytes = vec![0; BYTES];
                client.read_exact(&mut bytes).unwrap();
                assert!(bytes.iter().all(|&byte| byte == b'x'));
                ping(&mut client);
            });
            serve(&mut second, talk);
        });
    });
}

#[test]
fn openssl_can_connect() {
    if Command::new("openssl").arg("version").output().is_err() {
        println!("skipped: there is no openssl here");
        return;
    }
    on_each_driver(|driver| {
        for version in ["-tls1_2", "-tls1_3"] {
            let identity = ClientIdentity::new();
            let mut fixture = fixture(driver, &identity);
            let mut openssl = Command::new("openssl")
                .args(["s_client", "-quiet", "-servername", "localhost", version, "-connect"])
                .arg(fixture.address.to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut stdin = openssl.stdin.take().unwrap();
            let mut stdout = BufReader::new(openssl.stdout.take().unwrap());
            let talk = thread::spawn(move || {
                stdin.write_all(b"hello from openssl\n").unwrap();
                let mut line = String::new();
                stdout.read_line(&mut line).unwrap();
                line
            });
            assert_eq!(serve(&mut fixture, talk), "hello from openssl\n");
            let id = fixture.gateway.accepted()[0];
            fixture.sockets().finish(id);
            let end = thread::spawn(move || openssl.wait().unwrap());
            assert!(serve(&mut fixture, end).success());
        }
    });
}
