//! Certificates on every TLS listener: ours, reloaded while the service runs, and those that
//! clients must present.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use pitlane_testkit::certificates::{TestAuthority, TestIdentity};
use pitlane_testkit::fix_client::FixClient;
use pitlane_testkit::secured_service::SecuredService;
use pitlane_testkit::service::folder;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::wires::LISTENERS;

/// Every TLS listener, and the first message there.
fn greetings() -> [(&'static str, Vec<u8>); 3] {
    let logon = FixClient::new("CLIENT1").frame("A", 1, "", "98=0|108=30|141=Y|");
    [
        ("https", b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("stomp+tls", b"CONNECT\naccept-version:1.2\nhost:x\n\n\0".to_vec()),
        ("fix+tls", logon),
    ]
}

/// Sends a message and waits for the first byte of a response; returns the certificate of the
/// service. None: the client was refused.
fn talk(
    secured: &SecuredService,
    (listener, arguments): &(&str, Vec<u8>),
    trusts: &TestAuthority,
    identity: Option<TestIdentity>,
) -> Option<CertificateDer<'static>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusts.trusted());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let config = match identity {
        Some((chain, key)) => config.with_client_auth_cert(chain, key).unwrap(),
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(secured.at(listener)).unwrap());
    // With TLS 1.3 a client learns of a refusal only when it reads.
    stream.write_all(arguments).ok()?;
    stream.flush().ok()?;
    (stream.read(&mut [0]).ok()? > 0)
        .then(|| stream.conn.peer_certificates().unwrap()[0].clone().into_owned())
}

#[test]
fn certificates_and_client_authorities_are_reloaded_for_every_listener() {
    let files = folder("certificates-files");
    let (house_of, ours, others) =
        (TestAuthority::generate(), TestAuthority::generate(), TestAuthority::generate());
    let write = |name: &str, text: &str| fs::write(files.join(name), text).unwrap();
    let renew = || {
        let (chain, key) = house_of.sign("localhost");
        write("cert.pem", &chain);
        write("key.pem", &key);
    };
    renew();
    write("clients.pem", &ours.pem);
    let set = |key: &str, file: &str| format!("{key}={}", files.join(file).display());
    let settings =
        [set("tls.cert", "cert.pem"), set("tls.key", "key.pem"), set("tls.client_ca", "clients.pem")];
    let settings: Vec<&str> = settings.iter().map(String::as_str).chain(LISTENERS).collect();
    let secured = SecuredService::start("certificates", &settings);
    let greetings = greetings();
    let first = greetings.each_ref().map(|greeting| {
        assert!(talk(&secured, greeting, &house_of, None).is_none(), "{}: without one", greeting.0);
        let unknown = talk(&secured, greeting, &house_of, Some(others.identity()));
        assert!(unknown.is_none(), "{}: with another's", greeting.0);
        let client = talk(&secured, greeting, &house_of, Some(ours.identity()));
        client.unwrap_or_else(|| panic!("{}: our client was not let in", greeting.0))
    });
    assert!(first.iter().all(|shown| *shown == first[0]), "all listeners show the same");

    // Another certificate of ours, and another authority for clients: for all later connections, on
    // every listener.
    renew();
    write("clients.pem", &others.pem);
    secured.service.signal("HUP");
    for greeting in &greetings {
        // A handshake may begin before the reload and end after it.
        let is_new = |shown: &CertificateDer<'_>| *shown != first[0];
        while !talk(&secured, greeting, &house_of, Some(others.identity()))
            .is_some_and(|shown| is_new(&shown))
        {}
        let before = talk(&secured, greeting, &house_of, Some(ours.identity()));
        assert!(before.is_none(), "{}: those of before", greeting.0);
    }
    secured.end();
}
