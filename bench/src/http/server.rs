//! A server in a process of its own, on the second core: its kind, how it is started, and how long
//! it has been on its core.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use pitlane::serve::{self, ServeSettings};
use pitlane_config::refdata;
use pitlane_config::{Machine, Setting, Sources};
use pitlane_strategy::Registry;

use super::{bare, exchange};
use crate::conditions::Pinning;
use crate::free_addresses::free_addresses;
use crate::program;

/// Longest wait until a server answers.
const START_MAX: Duration = Duration::from_secs(20);
/// Most orders of our service.
const ORDERS_MAX: usize = 500_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpServerKind {
    Pitlane,
    Hyper,
    Nginx,
    #[cfg(feature = "peers")]
    May,
}

impl HttpServerKind {
    #[cfg(not(feature = "peers"))]
    const ALL: &[HttpServerKind] = &[HttpServerKind::Pitlane, HttpServerKind::Hyper, HttpServerKind::Nginx];
    #[cfg(feature = "peers")]
    const ALL: &[HttpServerKind] =
        &[HttpServerKind::Pitlane, HttpServerKind::Hyper, HttpServerKind::Nginx, HttpServerKind::May];

    /// Returns the servers that answer from memory and are installed; hyper first.
    pub fn bare() -> impl Iterator<Item = HttpServerKind> {
        let is_here =
            |kind: &HttpServerKind| *kind != HttpServerKind::Nginx || program::find("nginx").is_some();
        HttpServerKind::ALL[1..].iter().copied().filter(is_here)
    }

    pub fn name(self) -> &'static str {
        match self {
            HttpServerKind::Pitlane => "ours",
            HttpServerKind::Hyper => "hyper",
            HttpServerKind::Nginx => "nginx",
            #[cfg(feature = "peers")]
            HttpServerKind::May => "may_minihttp",
        }
    }

    fn of(word: &str) -> Option<HttpServerKind> {
        HttpServerKind::ALL.iter().copied().find(|kind| kind.name() == word)
    }
}

pub struct HttpServer {
    child: Child,
    pub address: SocketAddr,
    folder: PathBuf,
}

impl HttpServer {
    /// Starts a server and waits until it answers. A bare server answers every request with `body`.
    pub fn start(kind: HttpServerKind, pinning: &Pinning, body: &[u8]) -> io::Result<HttpServer> {
        let [address] = free_addresses()?;
        let folder = std::env::temp_dir().join(format!("pitlane-bench-http-{}", address.port()));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("body"), body)?;
        let core = pinning.second.unwrap_or(0).to_string();
        let child = Command::new("taskset")
            .args(["-c", &core])
            .arg(std::env::current_exe()?)
            .args(["serve-http", kind.name(), &address.port().to_string()])
            .arg(&folder)
            .stdout(Stdio::null())
            .spawn()?;
        let server = HttpServer { child, address, folder };
        let end = Instant::now() + START_MAX;
        while !server.is_ready() {
            if Instant::now() > end {
                return Err(io::Error::other(format!("{} did not start", kind.name())));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    pub fn connect(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect(self.address)?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    fn is_ready(&self) -> bool {
        let answer = self.connect().and_then(|mut socket| exchange(&mut socket, "/health/ready"));
        answer.is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200"))
    }

    /// Returns the nanoseconds on a core of all its threads together.
    pub fn on_core_ns(&self) -> io::Result<f64> {
        Ok(self.threads()?.iter().map(|(_, ns)| ns).sum())
    }

    /// Returns the nanoseconds on a core of each thread, with the thread's name.
    pub fn threads(&self) -> io::Result<Vec<(String, f64)>> {
        let account = |task: io::Result<fs::DirEntry>| {
            let task = task?.path();
            let text = fs::read_to_string(task.join("schedstat"))?;
            let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
            let ns = ns.ok_or_else(|| io::Error::other("the kernel keeps no account of threads"))?;
            Ok((fs::read_to_string(task.join("comm"))?.trim().to_string(), ns))
        };
        fs::read_dir(format!("/proc/{}/task", self.child.id()))?.map(account).collect()
    }

    /// Requests a graceful stop, and waits for it.
    pub fn end(mut self) -> io::Result<()> {
        let mut socket = self.connect()?;
        socket.write_all(
            b"POST /rest/runtime/exit-vm HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        )?;
        // A client that disconnects before the response may not have been read.
        socket.read_to_end(&mut Vec::new())?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(io::Error::other("the service failed")) }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        program::stop(&mut self.child);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs in the child process.
pub fn serve_http(word: &str, port: u16, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let body = || fs::read(folder.join("body"));
    match HttpServerKind::of(word).ok_or("there is no such server")? {
        HttpServerKind::Pitlane => serve(address, folder),
        HttpServerKind::Hyper => Ok(bare::hyper(address, body()?.into())?),
        HttpServerKind::Nginx => Ok(bare::nginx(address, folder)?),
        #[cfg(feature = "peers")]
        HttpServerKind::May => Ok(bare::may(address, String::from_utf8(body()?)?)?),
    }
}

/// Runs the whole service, with no activity but what arrives over REST.
fn serve(address: SocketAddr, data: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let settings = [
        format!("http.listen={address}"),
        format!("service.data_dir={}", data.display()),
        format!("http.orders_max={ORDERS_MAX}"),
        format!("shard.orders_max={ORDERS_MAX}"),
        "https.listen=".into(),
        "stomp.listen=".into(),
        "stomp.tls_listen=".into(),
        "fix.listen=".into(),
        "feed.on=false".into(),
        "journal.level=os".into(),
        "topology.layout=shared".into(),
        "risk.strategies.max_orders_per_s=0".into(),
        "risk.strategies.max_open_orders=0".into(),
        "log.level=warn".into(),
    ];
    let options = settings.iter().map(|text| Setting::parse(text)).collect::<Result<_, _>>()?;
    let sources = Sources { files: vec!["bench".to_string()], options, ..Sources::default() };
    let loaded =
        pitlane_config::load(&sources, &Machine::of(Path::new("/"))).map_err(|faults| faults.to_string())?;
    let reference = Arc::new(refdata::shipped().map_err(|faults| faults.to_string())?);
    let settings = ServeSettings {
        config: loaded.config,
        params: loaded.params,
        registry: Registry::with_examples(),
        quiet: true,
        time: None,
    };
    serve::serve(&settings, &reference, None).map_err(|error| error.to_string().into())
}
