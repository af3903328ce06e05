//! A real broker as a child process, and strategies in their own processes.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::paths;
use crate::service::{self, ServiceProcess};
use crate::strategy_link::TestLink;
use crate::temp_folder::TestFolder;

/// Its path in Debian, unless it is in PATH.
const BINARIES: [&str; 2] = ["nats-server", "/usr/sbin/nats-server"];

pub struct NatsBroker {
    child: Child,
    store: PathBuf,
    config: PathBuf,
    address: String,
    pub port: u16,
}

impl NatsBroker {
    pub fn start(place: &TestFolder) -> NatsBroker {
        NatsBroker::with(place, "")
    }

    /// Starts a broker on an address of this machine that others reach.
    pub fn start_at(place: &TestFolder, address: &str) -> NatsBroker {
        NatsBroker::begin(place, "", address)
    }

    /// Starts a broker with further settings, in its own format.
    pub fn with(place: &TestFolder, settings: &str) -> NatsBroker {
        NatsBroker::begin(place, settings, "127.0.0.1")
    }

    fn begin(place: &TestFolder, settings: &str, address: &str) -> NatsBroker {
        let (store, config) = (place.join("broker"), place.join("broker.conf"));
        std::fs::write(&config, settings).unwrap();
        let (child, port) = spawn(&store, &config, address, -1);
        NatsBroker { child, store, config, address: address.to_string(), port }
    }

    pub fn url(&self) -> String {
        format!("nats://{}:{}", self.address, self.port)
    }

    /// Returns the settings of a server whose strategies connect through this broker.
    pub fn server_settings(&self) -> Vec<String> {
        vec!["strategies.transport=nats".to_string(), format!("nats.url={}", self.url())]
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it in order: all its data are on disk.
    pub fn stop(&mut self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        self.child.wait().unwrap();
    }

    /// Restarts it on the same port, with its data on disk.
    pub fn restart(&mut self) {
        (self.child, _) = spawn(&self.store, &self.config, &self.address, self.port as i32);
    }
}

impl Drop for NatsBroker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a broker that listens, and returns its port.
fn spawn(store: &Path, config: &Path, address: &str, port: i32) -> (Child, u16) {
    let command = |binary: &str| {
        let mut command = Command::new(binary);
        command.args(["-js", "-a", address, "-p", &port.to_string(), "-sd"]).arg(store).arg("-c").arg(config);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()
    };
    let mut child = BINARIES.into_iter().find_map(command).expect("nats-server: apt install nats-server");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut port = None;
    for line in lines.by_ref() {
        if let Some((_, rest)) = line.split_once("Listening for client connections on ") {
            port = rest.rsplit_once(':').and_then(|(_, port)| port.trim().parse().ok());
        }
        if line.contains("Server is ready") {
            break;
        }
    }
    // Its output must be read, or it blocks when the pipe is full.
    thread::spawn(move || lines.for_each(drop));
    (child, port.expect("it prints its address"))
}

/// Starts the server, in the mode `distributed`.
pub fn serve(place: &TestFolder, broker: &NatsBroker, strategies: &str, settings: &[&str]) -> ServiceProcess {
    serve_with(place, &broker.server_settings(), strategies, settings)
}

/// Starts the server with strategies that connect over any link.
pub fn serve_over(
    place: &TestFolder,
    link: &TestLink,
    strategies: &str,
    settings: &[&str],
) -> ServiceProcess {
    let service = serve_with(place, &link.server_settings(), strategies, settings);
    link.set_server(&service);
    service
}

fn serve_with(place: &TestFolder, link: &[String], strategies: &str, settings: &[&str]) -> ServiceProcess {
    let config = place.join("settings.toml");
    std::fs::write(&config, strategies).unwrap();
    let own = ["journal.level=os", "remote_strategies.lease_ms=1000"];
    let link = link.iter().map(String::as_str);
    let all: Vec<&str> = own.into_iter().chain(link).chain(settings.iter().copied()).collect();
    let mut command = service::command(place, &all);
    command.args(["--config", "distributed", "--config"]).arg(&config).arg("--quiet");
    let service = ServiceProcess::on(place, command);
    assert!(service.is_ready(), "{}\n{}", service.ready.clone(), service.end().log_text);
    service
}

/// The process of a strategy. It is not waited for.
pub struct StrategyProcess {
    child: Child,
}

impl StrategyProcess {
    pub fn start(place: &TestFolder, broker: &NatsBroker, name: &str) -> StrategyProcess {
        StrategyProcess::with(place, broker, name, &[])
    }

    pub fn with(place: &TestFolder, broker: &NatsBroker, name: &str, settings: &[&str]) -> StrategyProcess {
        StrategyProcess::connect(place, &broker.url(), name, settings)
    }

    /// Starts a process that connects over any link.
    pub fn over(place: &TestFolder, link: &TestLink, name: &str) -> StrategyProcess {
        StrategyProcess::connect(place, &link.url(), name, &[])
    }

    /// Starts a process that connects to this address.
    pub fn connect(place: &TestFolder, url: &str, name: &str, settings: &[&str]) -> StrategyProcess {
        let mut command = Command::new(paths::binary());
        command.args(["strategy", "--name", name, "--connect", url]);
        command.args(["--set", &format!("remote_strategies.record_dir={}", place.join("told").display())]);
        settings.iter().for_each(|setting| _ = command.args(["--set", setting]));
        StrategyProcess::spawn(place, command, name)
    }

    /// Starts a strategy in Python: a program of the tests, which gets these arguments, the address
    /// and the folder of its record. It uses the client of this repository.
    pub fn python(place: &TestFolder, url: &str, program: &Path, arguments: &[&str]) -> StrategyProcess {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", paths::repository().join("clients/python/src"));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg(program).args(arguments).arg(url).arg(place.join("told"));
        StrategyProcess::spawn(place, command, arguments[0])
    }

    fn spawn(place: &TestFolder, mut command: Command, name: &str) -> StrategyProcess {
        let log = std::fs::File::options().create(true).append(true).open(place.join(format!("{name}.log")));
        command.stdout(Stdio::null()).stderr(log.unwrap());
        StrategyProcess { child: command.spawn().unwrap() }
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it a signal by name, such as STOP.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Asks it to end, and waits until it has.
    pub fn end(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().unwrap().code()
    }

    /// Waits until it ends by itself.
    pub fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for StrategyProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
