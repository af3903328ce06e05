//! Location of a series of processes: a data folder, on a separate file system where that is
//! possible.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_runtime::clock::Clock;
use pitlane_testkit::disk_image::{Mounted, copy_of_one_moment, sh};
use pitlane_testkit::paths;
use pitlane_testkit::service::{ServiceProcess, TestFolder, command};

use crate::plan::{PlannedRun, RunEnd};

/// No limits that a test reaches by chance; everything is stored, so that it can be requested;
/// snapshots are frequent.
const SETTINGS: [&str; 11] = [
    "risk.strategies.max_orders_per_s=0",
    "risk.strategies.max_open_orders=0",
    "shard.finished_max=100000",
    "shard.transactions_max=100000",
    "journal.snapshot_every_bytes=1048576",
    "fix.store_bytes=4194304",
    // The clocks differ.
    "fix.sending_time_s_max=0",
    "feed.rate=500",
    "demo.rate=50",
    "topology.shards=2",
    "net.per_peer_max=5000",
];
/// Size of a disk: journals, stores, and room to fill up.
const IMAGE_SIZE: &str = "192M";
/// The kernel's id of the current boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const DAY_S: u64 = 86_400;
/// Seconds from the creation of a place to the end of the session of [`HOURS_EXCHANGE`]: in the
/// middle of its processes.
const CLOSE_AFTER_S: u64 = 12;
/// Seconds from the close to the next session.
const CLOSED_S: u64 = 2;
/// The exchange at which all clients trade: the first of the shipped reference data.
pub(crate) const HOURS_EXCHANGE: u64 = 1;

pub(crate) struct TestSite {
    /// Dropped before the folder it is mounted in, which is removed after it.
    disk: Option<Mounted>,
    root: TestFolder,
    /// Losses of power of this place.
    boots: u32,
    rollover: String,
    /// End of the session, in nanoseconds since 1970, if the exchange has hours here.
    close: Option<Timestamp>,
}

impl TestSite {
    /// Creates a place; `on_image`: on a separate file system. None: that is not possible.
    pub(crate) fn new(name: &str, on_image: bool) -> Option<TestSite> {
        let root = TestFolder::new("chaos", name);
        let disk = match on_image {
            true => Some(Mounted::new(&root.join("disk-0.img"), IMAGE_SIZE, root.join("disk-0"))?),
            false => None,
        };
        Some(TestSite { disk, root, boots: 0, rollover: opposite(), close: None })
    }

    /// Creates a place where the exchange has hours: its session ends soon, and the next one begins
    /// shortly after.
    pub(crate) fn with_hours(name: &str, on_image: bool) -> Option<TestSite> {
        let mut site = TestSite::new(name, on_image)?;
        let close_s = Clock::new().now().0 / NS_PER_S + CLOSE_AFTER_S;
        site.close = Some(Timestamp(close_s * NS_PER_S));
        let (open, close) = (time_of_day(close_s + CLOSED_S), time_of_day(close_s));
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/refdata");
        assert!(sh(&format!("cp -r {shipped} {}", site.refdata().display())), "reference data are copied");
        let file = site.refdata().join("exchanges.csv");
        let rows = fs::read_to_string(&file).expect("there are exchanges");
        let rows = rows.lines().map(|row| match row.starts_with(&format!("{HOURS_EXCHANGE},")) {
            true => format!("{HOURS_EXCHANGE},NASDAQ,XNAS,UTC,{open},{close},false,SIM\n"),
            false => format!("{row}\n"),
        });
        fs::write(&file, rows.collect::<String>()).expect("a file for the test");
        Some(site)
    }

    /// Returns the end of the session, if the exchange has hours here.
    pub(crate) fn close_time(&self) -> Option<Timestamp> {
        self.close
    }

    fn refdata(&self) -> PathBuf {
        self.root.join("refdata")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.disk.as_ref().map_or_else(|| self.root.join("data"), |disk| disk.0.join("data"))
    }

    /// Returns the path of the file that takes the free space of the disk.
    pub(crate) fn ballast(&self) -> PathBuf {
        self.disk.as_ref().map_or_else(|| self.root.join("ballast"), |disk| disk.0.join("ballast"))
    }

    pub(crate) fn start(&self, planned_run: &PlannedRun) -> ServiceProcess {
        let mut settings = planned_run.disturbance.settings().to_vec();
        settings.push(if planned_run.dedicated {
            "topology.layout=dedicated"
        } else {
            "topology.layout=shared"
        });
        settings.push("demo.on=true");
        if planned_run.end == RunEnd::PowerCut {
            settings.push("journal.level=disk");
        }
        let fault = if let RunEnd::KillAtWrite(write) = planned_run.end {
            Some(format!("kill:{write}"))
        } else {
            planned_run.disturbance.fault()
        };
        self.serve(&settings, fault)
    }

    /// Starts a service without any activity.
    pub(crate) fn still(&self) -> ServiceProcess {
        self.serve(&["feed.on=false", "demo.on=false"], None)
    }

    fn serve(&self, settings: &[&str], fault: Option<String>) -> ServiceProcess {
        let rollover = &self.rollover;
        let config = format!(
            "[[fix.session]]\nSenderCompID = \"PITLANE\"\nTargetCompID = \"KEEP*\"\nResetOnLogon = \"N\"\n\
             StartTime = \"{rollover}\"\nEndTime = \"{rollover}\"\n\
             [[fix.session]]\nSenderCompID = \"PITLANE\"\nTargetCompID = \"EVIL*\"\n"
        );
        let file = self.root.join("service.toml");
        fs::write(&file, config).expect("a file for the test");
        let log = format!("log.file={}", self.root.join("log").display());
        let day = format!("service.trading_day_rollover={rollover}");
        let reference = format!("refdata.dir={}", self.refdata().display());
        let hours = match self.close {
            Some(_) => vec![reference.as_str(), "calendar.hours=exchange"],
            None => Vec::new(),
        };
        let settings = [&SETTINGS[..], &[&log, &day], &hours, settings].concat();
        let mut command = self.on_this_boot(command(&self.data(), &settings));
        command.arg("--config").arg(&file).arg("--quiet");
        if let Some(fault) = fault {
            command.env("PITLANE_FAULT", fault);
        }
        ServiceProcess::on(&self.root, command)
    }

    /// After a loss of power the machine has booted again, and the boot id must show that.
    fn on_this_boot(&self, plain: Command) -> Command {
        if self.boots == 0 {
            return plain;
        }
        let file = self.root.join("boot_id");
        fs::write(&file, format!("{:08}-0000-4000-8000-000000000000\n", self.boots))
            .expect("a file for the test");
        let script = format!("mount --bind {} {BOOT_ID} && exec \"$0\" \"$@\"", file.display());
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]).arg(plain.get_program()).args(plain.get_args());
        command
    }

    /// Cuts the power: only what has reached the disk remains. The service is stopped while the
    /// disk is copied.
    pub(crate) fn lose_power(&mut self, service: &ServiceProcess) {
        let before = self.boots;
        self.boots += 1;
        let image = |boot: u32| self.root.join(format!("disk-{boot}.img"));
        let (from, to) = (image(before), image(self.boots));
        service.pause();
        assert!(copy_of_one_moment(&from, &to), "the disk is copied while nothing is written");
        service.signal("KILL");
    }

    /// Restores the power. The last service must have ended.
    pub(crate) fn power_on(&mut self) {
        let image = |boot: u32| self.root.join(format!("disk-{boot}.img"));
        self.disk = None;
        let _ = fs::remove_file(image(self.boots - 1));
        let at = self.root.join(format!("disk-{}", self.boots));
        self.disk = Some(Mounted::of(&image(self.boots), at).expect("the copy is a file system"));
    }

    /// Keeps the files for inspection.
    pub(crate) fn keep(&self) {
        std::mem::forget(self.root.clone());
    }

    /// Checks the journal with the binary's own command; returns its message otherwise.
    pub(crate) fn verify(&self) -> Result<(), String> {
        let mut command = Command::new(paths::binary());
        let output = command.args(["journal", "verify", "--data"]).arg(self.data()).output();
        let output = output.expect("the binary starts");
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()),
        }
    }
}

/// Returns a time of day as far from now as possible: no trading day ends during the test.
fn opposite() -> String {
    let now = Clock::new().now().0 / NS_PER_S;
    time_of_day((now + DAY_S / 2) / 60 * 60)
}

/// Returns the time of day of an instant, in seconds since 1970.
fn time_of_day(instant_s: u64) -> String {
    let second = instant_s % DAY_S;
    format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}
