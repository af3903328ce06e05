//! Processes one after the other on the same data, with the same clients. Each begins with a check
//! of the state that the last one left.

use std::io;
use std::os::unix::process::ExitStatusExt;

use pitlane_engine::rng::Rng;
use pitlane_testkit::service::{ProcessEnd, ServiceProcess};

use crate::audit::Audit;
use crate::disturbance::DisturbanceContext;
use crate::findings::{ChaosFindings, FindingKind};
use crate::plan::{PlannedRun, RunEnd};
use crate::received::CheckScope;
use crate::site::TestSite;
use crate::traders::{ServiceAddresses, Traders};

const SIGKILL: i32 = 9;
const SIGABRT: i32 = 6;
/// Attempts of a client to catch up: its last connection may still be open.
const TRIES_MAX: u32 = 1_000;

/// Messages of a service that cannot store what it must before it starts.
const FAULTS: [&str; 2] = ["asked for by PITLANE_FAULT", "Input/output error"];

pub(crate) struct RunSeries {
    pub site: TestSite,
    /// None while the clients are at work.
    traders: Option<Traders>,
    seed: u64,
    planned_runs: u64,
    pub findings: ChaosFindings,
}

impl RunSeries {
    pub(crate) fn new(site: TestSite, seed: u64) -> RunSeries {
        RunSeries {
            site,
            traders: Some(Traders::new(seed)),
            seed,
            planned_runs: 0,
            findings: ChaosFindings::default(),
        }
    }

    pub(crate) fn live(&mut self, planned_run: &PlannedRun) {
        self.planned_runs += 1;
        let name = format!("seed {}, run {}, {planned_run:?}", self.seed, self.planned_runs);
        eprintln!("{name}");
        let service = self.site.start(planned_run);
        if !service.is_ready() && planned_run.disturbance.may_prevent_a_start() {
            let ended = service.end();
            let is_logged = FAULTS.iter().any(|fault| ended.log_text.contains(fault));
            if ended.status.code() != Some(1) || !is_logged {
                self.findings
                    .add(FindingKind::Broken, format!("{name}: it did not start: {}", ended.log_text));
            }
            return;
        }
        if let Err(error) = self.look(&service, &name) {
            // The process may have killed itself before the check; the next one is checked.
            if !matches!(planned_run.end, RunEnd::KillAtWrite(_)) {
                self.findings.add(FindingKind::Broken, format!("{name}: {error}"));
            }
            service.signal("KILL");
            return self.check_end(service.end(), planned_run, &name);
        }
        let addresses = ServiceAddresses::of(&service);
        let running = self.traders.take().expect("they are at home").go(addresses);
        let half = planned_run.acts / 2;
        if running.wait(planned_run.acts - half) {
            let mut dice = Rng::new(planned_run.seed);
            let context = DisturbanceContext {
                service: &service,
                addresses,
                running: &running,
                site: &self.site,
                acts: half,
            };
            let _aftermath = planned_run.disturbance.strike(&context, &mut dice);
            running.wait(half);
        }
        running.is_over();
        match planned_run.end {
            RunEnd::Kill | RunEnd::KillAtWrite(_) => service.signal("KILL"),
            RunEnd::Stop => service.signal("TERM"),
            RunEnd::PowerCut => self.site.lose_power(&service),
        }
        let ended = service.end();
        let mut traders = running.home(self.seed, &mut self.findings);
        traders.fix.forgives_repeats |= planned_run.end == RunEnd::PowerCut;
        traders.fix.account(&mut self.findings);
        self.traders = Some(traders);
        self.check_end(ended, planned_run, &name);
        if planned_run.end == RunEnd::PowerCut {
            self.site.power_on();
        }
        if let Err(problem) = self.site.verify() {
            self.findings.add(FindingKind::Broken, format!("{name}: the journal is not sound: {problem}"));
        }
    }

    /// Starts the service a last time without any activity: all clients catch up, and then
    /// everything must agree.
    pub(crate) fn close(&mut self) {
        let name = format!("seed {}, after {} runs", self.seed, self.planned_runs);
        let service = self.site.still();
        if !service.is_ready() {
            return self.findings.add(FindingKind::Broken, format!("{name}: {}", service.end().log_text));
        }
        let addresses = ServiceAddresses::of(&service);
        let traders = self.traders.as_mut().expect("they are at home");
        let tries = 0..TRIES_MAX;
        if !tries.clone().any(|_| traders.fix.catch_up(&addresses, &mut self.findings).is_ok()) {
            self.findings.add(FindingKind::Broken, format!("{name}: the FIX client cannot log on"));
        }
        if !tries.clone().any(|_| traders.rest.catch_up(&addresses).is_ok()) {
            self.findings.add(FindingKind::Broken, format!("{name}: the REST client is not answered"));
        }
        for id in traders.fix.unanswered() {
            self.findings.add(FindingKind::Lost, format!("{name}: order {id} of FIX was never reported"));
        }
        match Audit::look(&addresses, &traders.received(), CheckScope::All, &name, self.site.close_time()) {
            Ok(findings) => self.findings.take(findings),
            Err(error) => self.findings.add(FindingKind::Broken, format!("{name}: {error}")),
        }
        service.signal("TERM");
        let ended = service.end();
        if !ended.is_orderly() {
            self.findings.add(FindingKind::Broken, format!("{name}: {}", ended.log_text));
        }
        if !self.findings.is_clean() {
            self.site.keep();
        }
    }

    /// Starts the service once more, only for a check.
    pub(crate) fn look_back(&mut self) {
        let service = self.site.still();
        self.look(&service, "looking back").expect("it goes on while it is looked at");
        service.signal("KILL");
        service.end();
    }

    /// Checks the state after the start; returns an error if the service did not start or is gone.
    fn look(&mut self, service: &ServiceProcess, name: &str) -> io::Result<()> {
        if !service.is_ready() {
            return Err(io::Error::other("it did not start"));
        }
        let traders = self.traders.as_mut().expect("they are at home");
        let (addresses, close) = (ServiceAddresses::of(service), self.site.close_time());
        self.findings.take(Audit::look(&addresses, &traders.received(), CheckScope::Fresh, name, close)?);
        traders.are_known();
        Ok(())
    }

    fn check_end(&mut self, ended: ProcessEnd, planned_run: &PlannedRun, name: &str) {
        let problem = &ended.log_text;
        if problem.contains("pitlane failed") {
            return self.findings.add(FindingKind::Panic, format!("{name}: {problem}"));
        }
        let as_meant = match (ended.status.signal(), planned_run.end) {
            (Some(SIGKILL), _) => planned_run.end != RunEnd::Stop || planned_run.disturbance.may_end_it(),
            (Some(SIGABRT), _) => {
                planned_run.disturbance.may_end_it() && problem.contains("memory allocation")
            }
            (None, RunEnd::Stop) => ended.is_orderly(),
            _ => false,
        };
        if !as_meant {
            self.findings
                .add(FindingKind::Broken, format!("{name}: it ended with {}: {problem}", ended.status));
        }
    }
}
