//! Message brokers of other projects that speak STOMP, where they are installed. Each is started on
//! the server's core with a folder of its own, loaded like ours, and stopped.
//!
//! Like ours, they do not store messages that are sent to a topic. They have no market data, so a
//! publisher sends what our broker would render.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::conditions::Pinning;
use crate::consumers::{ConsumerPool, read_frames};
use crate::free_addresses::free_addresses;
use crate::program;
use crate::publisher::Publisher;
use crate::tick_reader::{BodyReader, Framing};

/// Longest start-up time: a Java or Erlang VM starts slowly.
const START_MAX: Duration = Duration::from_secs(60);
/// Messages that may be published and not yet delivered to all consumers.
const AHEAD: u64 = 1_024;
/// Messages of one write.
const BATCH: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerKind {
    ActiveMq,
    RabbitMq,
}

impl BrokerKind {
    pub const ALL: [BrokerKind; 2] = [BrokerKind::ActiveMq, BrokerKind::RabbitMq];

    pub fn name(self) -> &'static str {
        match self {
            BrokerKind::ActiveMq => "ActiveMQ",
            BrokerKind::RabbitMq => "RabbitMQ",
        }
    }

    /// Returns the header lines of CONNECT beside the version.
    fn login(self) -> &'static str {
        match self {
            BrokerKind::ActiveMq => "host:localhost\n",
            BrokerKind::RabbitMq => "host:/\nlogin:guest\npasscode:guest\n",
        }
    }

    /// Returns the command that starts the broker, or the reason why there is none.
    fn command(self, folder: &Path, ports: BrokerPorts) -> Result<Command, String> {
        match self {
            BrokerKind::ActiveMq => activemq(folder, ports.stomp),
            BrokerKind::RabbitMq => rabbitmq(folder, ports),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct BrokerPorts {
    stomp: u16,
    /// Of Erlang's name server and of its protocol between nodes, which only RabbitMQ has.
    epmd: u16,
    distribution: u16,
}

/// Returns a command that runs ActiveMQ without persistence and without its console.
fn activemq(folder: &Path, port: u16) -> Result<Command, String> {
    let absent = || program::absent("ActiveMQ", "activemq");
    let jar = program::file("/usr/share/activemq/bin/activemq.jar").ok_or_else(absent)?;
    let mut command = Command::new(program::find("java").ok_or_else(absent)?);
    command
        .args(["-Xmx512M", "-Dactivemq.home=/usr/share/activemq"])
        .args(["base", "conf", "data"].map(|part| format!("-Dactivemq.{part}={}", folder.display())))
        .arg("-jar")
        .arg(jar)
        .arg("start")
        .arg(format!("broker:(stomp://127.0.0.1:{port})?persistent=false&useJmx=false"));
    Ok(command)
}

/// Returns a command that runs RabbitMQ with the STOMP plugin and nothing else.
fn rabbitmq(folder: &Path, ports: BrokerPorts) -> Result<Command, String> {
    let absent = || program::absent("RabbitMQ", "rabbitmq-server");
    let server = program::file("/usr/lib/rabbitmq/bin/rabbitmq-server").ok_or_else(absent)?;
    let BrokerPorts { stomp: port, epmd, distribution } = ports;
    let settings = format!(
        "listeners.tcp = none\nstomp.listeners.tcp.1 = 127.0.0.1:{port}\nlog.console.level = error\n"
    );
    let (config, plugins) = (folder.join("rabbitmq.conf"), folder.join("plugins"));
    let written = fs::write(&config, settings).and_then(|()| fs::write(&plugins, "[rabbitmq_stomp]."));
    written.map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut command = Command::new(server);
    command
        .env("HOME", folder)
        .env("ERL_EPMD_PORT", epmd.to_string())
        .env("RABBITMQ_DIST_PORT", distribution.to_string())
        .env("RABBITMQ_NODENAME", format!("bench{port}@localhost"))
        .env("RABBITMQ_CONFIG_FILE", config)
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", plugins)
        .env("RABBITMQ_MNESIA_BASE", folder.join("db"))
        .env("RABBITMQ_LOG_BASE", folder)
        .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "+S 1:1");
    Ok(command)
}

/// A running broker. Dropping it stops the broker.
pub struct BrokerProcess {
    kind: BrokerKind,
    /// Leader of the process group that contains the whole broker.
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
    /// Port of `epmd`, Erlang's name server, which leaves the process group.
    epmd_port: u16,
}

impl BrokerProcess {
    /// Starts the broker and waits until it answers. On failure, returns the reason why it is left
    /// out.
    pub fn start(kind: BrokerKind, pinning: &Pinning) -> Result<BrokerProcess, String> {
        let describe = |error: std::io::Error| format!("{} does not start: {error}", kind.name());
        let addresses = free_addresses().map_err(describe)?;
        let [stomp, epmd, distribution] = addresses.map(|address| address.port());
        let folder = std::env::temp_dir().join(format!("pitlane-bench-broker-{stomp}"));
        fs::create_dir_all(&folder).map_err(describe)?;
        let ports = BrokerPorts { stomp, epmd, distribution };
        let broker_command = kind.command(&folder, ports).inspect_err(|_| _ = fs::remove_dir_all(&folder))?;
        let core = pinning.second.unwrap_or(0).to_string();
        let mut command = Command::new("taskset");
        command.args(["-c", &core]).arg(broker_command.get_program()).args(broker_command.get_args());
        command.envs(broker_command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.process_group(0).spawn().map_err(describe)?;
        let broker = BrokerProcess { kind, child, folder, address: addresses[0], epmd_port: epmd };
        let deadline = Instant::now() + START_MAX;
        while Instant::now() < deadline {
            if broker.subscriber().is_ok() {
                return Ok(broker);
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(format!("{} does not answer", kind.name()))
    }

    /// Measures deliveries of `payload` per second to this many consumers.
    pub fn throughput(
        &self,
        consumers: usize,
        payload: &[u8],
        body: BodyReader,
        time: Duration,
    ) -> std::io::Result<f64> {
        let sockets = (0..consumers).map(|_| self.subscriber()).collect::<Result<Vec<_>, _>>()?;
        let mut pool = ConsumerPool::of_frames(sockets, Framing::Stomp, body);
        let head = format!("SEND\ndestination:/topic/t\ncontent-length:{}\n\n", payload.len());
        let message = [head.as_bytes(), payload, b"\0"].concat();
        Ok(Publisher::new(self.connect()?, &message, BATCH).throughput(&mut pool, AHEAD, time))
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let mut socket = TcpStream::connect(self.address)?;
        socket.set_read_timeout(Some(START_MAX))?;
        write!(socket, "CONNECT\naccept-version:1.2\n{}\n\0", self.kind.login())?;
        read_frames(&mut socket, 1)?;
        Ok(socket)
    }

    fn subscriber(&self) -> std::io::Result<TcpStream> {
        let mut socket = self.connect()?;
        socket.write_all(b"SUBSCRIBE\nid:1\ndestination:/topic/t\nreceipt:r\n\n\0")?;
        read_frames(&mut socket, 1)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }
}

impl Drop for BrokerProcess {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
        if self.kind == BrokerKind::RabbitMq {
            let epmd_port = ["-port", &self.epmd_port.to_string(), "-kill"].map(str::to_string);
            let _ = Command::new("epmd").args(epmd_port).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
