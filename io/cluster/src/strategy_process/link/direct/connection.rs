//! The connection to the server: opened, kept, and opened again forever.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pitlane_config::{StrategiesConfig, StrategyAddress};
use pitlane_protocols::remote::link::{FRAME_BYTES_MAX, LINK_VERSION, ServerFrame, StrategyFrame};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::super::super::StrategyProcessSettings;
use super::super::RETRY_PAUSE;
use crate::frames::{FrameReadError, FrameReader};

/// Time until a connection is open and logged in.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Bytes that are collected for one write.
const WRITE_BYTES: usize = 64 << 10;
/// Longest time without a frame that a server may ask for, and the shortest.
const IDLE_MAX: Duration = Duration::from_secs(3_600);
const IDLE_MIN: Duration = Duration::from_millis(100);

/// What the connection reports.
#[derive(Debug)]
pub(super) enum ConnectionInput {
    Up,
    Down,
    Frame(ServerFrame),
    /// The server refuses this process for good; the text is its reason.
    Refused(String),
}

/// How to reach the server.
pub(super) struct ConnectionSettings {
    strategy: String,
    token: String,
    addresses: Vec<StrategyAddress>,
    tls: Option<Arc<ClientConfig>>,
}

impl ConnectionSettings {
    pub(super) fn of(settings: &StrategyProcessSettings) -> Result<ConnectionSettings, String> {
        let link = &settings.config.strategies_link;
        let needs_tls = link.connect.iter().any(|address| matches!(address, StrategyAddress::Tls { .. }));
        let token = link.token.as_ref().map_or(String::new(), |token| token.reveal().to_string());
        Ok(ConnectionSettings {
            strategy: settings.name.clone(),
            token,
            addresses: link.connect.clone(),
            tls: needs_tls.then(|| client_tls(link)).transpose()?,
        })
    }
}

/// The reason why a connection ended or was not opened.
enum ConnectionEnd {
    /// Try again; the text says what happened.
    Lost(String),
    Refused(String),
    /// The process ends.
    Ended,
}

impl From<io::Error> for ConnectionEnd {
    fn from(error: io::Error) -> ConnectionEnd {
        ConnectionEnd::Lost(error.to_string())
    }
}

/// Connects and reconnects until the process ends or the server refuses it.
pub(super) async fn run(
    settings: ConnectionSettings,
    mut frames: mpsc::Receiver<Vec<u8>>,
    inputs: mpsc::Sender<ConnectionInput>,
) {
    // The last problem that was logged: a connect is tried ten times a second.
    let mut logged = String::new();
    for address in settings.addresses.iter().cycle() {
        let end = match address {
            StrategyAddress::Unix(path) => match UnixStream::connect(path).await {
                Ok(socket) => converse(&settings, socket, &mut frames, &inputs).await,
                Err(error) => error.into(),
            },
            StrategyAddress::Tcp { host, port } => match open_tcp(host, *port).await {
                Ok(socket) => converse(&settings, socket, &mut frames, &inputs).await,
                Err(error) => error.into(),
            },
            StrategyAddress::Tls { host, port } => match open_tls(&settings, host, *port).await {
                Ok(socket) => converse(&settings, socket, &mut frames, &inputs).await,
                Err(error) => error.into(),
            },
        };
        match end {
            ConnectionEnd::Ended => return,
            ConnectionEnd::Refused(text) => {
                let _ = inputs.send(ConnectionInput::Refused(text)).await;
                return;
            }
            ConnectionEnd::Lost(text) => {
                let problem = format!("{address}: {text}");
                if problem != logged {
                    tracing::warn!(%problem, "there is no connection to the server: trying again");
                    logged = problem;
                }
            }
        }
        sleep(RETRY_PAUSE).await;
    }
}

async fn open_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer");
    let socket = timeout(CONNECT_MAX, TcpStream::connect((host, port))).await.map_err(|_| late())??;
    socket.set_nodelay(true)?;
    Ok(socket)
}

async fn open_tls(
    settings: &ConnectionSettings,
    host: &str,
    port: u16,
) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer to the TLS handshake");
    let no_config = || io::Error::other("there are no settings for TLS");
    let config = settings.tls.clone().ok_or_else(no_config)?;
    let name = ServerName::try_from(host.to_string()).map_err(io::Error::other)?;
    let socket = open_tcp(host, port).await?;
    timeout(CONNECT_MAX, TlsConnector::from(config).connect(name, socket)).await.map_err(|_| late())?
}

/// Logs in, and passes frames in both directions until the connection ends.
async fn converse<S: AsyncRead + AsyncWrite>(
    settings: &ConnectionSettings,
    socket: S,
    frames: &mut mpsc::Receiver<Vec<u8>>,
    inputs: &mpsc::Sender<ConnectionInput>,
) -> ConnectionEnd {
    let (from, mut to) = tokio::io::split(socket);
    let mut from = FrameReader::new(from, FRAME_BYTES_MAX);
    let idle = match timeout(CONNECT_MAX, log_in(settings, &mut from, &mut to)).await {
        Ok(Ok(idle)) => idle,
        Ok(Err(end)) => return end,
        Err(_elapsed) => return ConnectionEnd::Lost("no answer to the login".to_string()),
    };
    // What was queued for the previous connection is sent again by the runner.
    while frames.try_recv().is_ok() {}
    if inputs.send(ConnectionInput::Up).await.is_err() {
        return ConnectionEnd::Ended;
    }
    let end = tokio::select! {
        end = receive(&mut from, inputs, idle) => end,
        end = transmit(&mut to, frames, idle) => end,
    };
    match inputs.send(ConnectionInput::Down).await {
        Ok(()) => end,
        Err(_) => ConnectionEnd::Ended,
    }
}

async fn log_in<R, W>(
    settings: &ConnectionSettings,
    from: &mut FrameReader<R>,
    to: &mut W,
) -> Result<Duration, ConnectionEnd>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (strategy, token) = (settings.strategy.clone(), settings.token.clone());
    to.write_all(&StrategyFrame::Login { version: LINK_VERSION, strategy, token }.encode()).await?;
    to.flush().await?;
    match from.next(ServerFrame::decode).await {
        Ok(ServerFrame::LoggedIn { idle_ms, .. }) => {
            Ok(Duration::from_millis(idle_ms as u64).clamp(IDLE_MIN, IDLE_MAX))
        }
        Ok(ServerFrame::Refused { code, text, retry }) => Err(refusal(&code, &text, retry)),
        Ok(_) => Err(ConnectionEnd::Lost("the server did not answer the login".to_string())),
        Err(error) => Err(ConnectionEnd::Lost(error_text(&error))),
    }
}

fn refusal(code: &str, text: &str, retry: bool) -> ConnectionEnd {
    let text = format!("{text} ({code})");
    if retry { ConnectionEnd::Lost(text) } else { ConnectionEnd::Refused(text) }
}

async fn receive<R: AsyncRead + Unpin>(
    from: &mut FrameReader<R>,
    inputs: &mpsc::Sender<ConnectionInput>,
    idle: Duration,
) -> ConnectionEnd {
    loop {
        let frame = match timeout(idle, from.next(ServerFrame::decode)).await {
            Ok(Ok(ServerFrame::Refused { code, text, retry })) => return refusal(&code, &text, retry),
            Ok(Ok(frame)) => frame,
            Ok(Err(error)) => return ConnectionEnd::Lost(error_text(&error)),
            Err(_elapsed) => return ConnectionEnd::Lost("the server is silent".to_string()),
        };
        if inputs.send(ConnectionInput::Frame(frame)).await.is_err() {
            return ConnectionEnd::Ended;
        }
    }
}

async fn transmit<W: AsyncWrite + Unpin>(
    to: &mut W,
    frames: &mut mpsc::Receiver<Vec<u8>>,
    idle: Duration,
) -> ConnectionEnd {
    while let Some(mut bytes) = frames.recv().await {
        // Frames that wait already are sent together.
        while bytes.len() < WRITE_BYTES
            && let Ok(frame) = frames.try_recv()
        {
            bytes.extend_from_slice(&frame);
        }
        let writing = async {
            to.write_all(&bytes).await?;
            to.flush().await
        };
        match timeout(idle, writing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error.into(),
            Err(_elapsed) => return ConnectionEnd::Lost("the server reads nothing".to_string()),
        }
    }
    ConnectionEnd::Ended
}

fn error_text(error: &FrameReadError) -> String {
    match error {
        FrameReadError::Closed => "the server has closed the connection".to_string(),
        FrameReadError::Socket(error) => error.to_string(),
        FrameReadError::Frame(error) => format!("the server is no strategy link: {error}"),
    }
}

/// Builds the TLS settings that authenticate the server, and this process where it has a
/// certificate.
fn client_tls(link: &StrategiesConfig) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let ca = link.ca.as_deref().ok_or("strategies.ca: pitlanes:// needs it")?;
    for certificate in certificates(ca)? {
        roots.add(certificate).map_err(|error| problem(ca, &error))?;
    }
    if roots.is_empty() {
        return Err(problem(ca, &"there is no certificate in it"));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let config = match (&link.cert, &link.key) {
        (Some(cert), Some(key)) => {
            let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| problem(key, &error))?;
            builder
                .with_client_auth_cert(certificates(cert)?, secret)
                .map_err(|error| problem(cert, &error))?
        }
        // The settings refuse one without the other.
        (Some(_), None) | (None, Some(_)) | (None, None) => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(path).map_err(|error| problem(path, &error))?;
    all.collect::<Result<_, _>>().map_err(|error| problem(path, &error))
}

fn problem(path: &Path, error: &dyn fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
