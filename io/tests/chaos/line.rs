//! Processes one after the other on the same data, with the same clients. Each begins with a check
//! of the state that the last one left.

use std::io;
use std::os::unix::process::ExitStatusExt;

use pitlane_engine::rng::Rng;

use crate::audit::Audit;
use crate::findings::{Findings, Kind};
use crate::people::{Doors, People};
use crate::place::Place;
use crate::plan::{End, Life};
use crate::service::{Ended, Service};
use crate::told::Depth;
use crate::trouble::Scene;

const SIGKILL: i32 = 9;
const SIGABRT: i32 = 6;
/// Attempts of a client to catch up: its last connection may still be open.
const TRIES_MAX: u32 = 1_000;

/// Messages of a service that cannot store what it must before it starts.
const FAULTS: [&str; 2] = ["asked for by PITLANE_FAULT", "Input/output error"];

pub struct Line {
    pub place: Place,
    /// None while the clients are at work.
    people: Option<People>,
    seed: u64,
    lives: u64,
    pub findings: Findings,
}

impl Line {
    pub fn new(place: Place, seed: u64) -> Line {
        Line { place, people: Some(People::new(seed)), seed, lives: 0, findings: Findings::default() }
    }

    pub fn live(&mut self, life: &Life) {
        self.lives += 1;
        let name = format!("seed {}, life {}, {life:?}", self.seed, self.lives);
        eprintln!("{name}");
        let service = self.place.start(life);
        if !service.is_ready() && life.trouble.may_prevent_a_start() {
            let ended = service.end();
            let is_told = FAULTS.iter().any(|fault| ended.complaints.contains(fault));
            if ended.status.code() != Some(1) || !is_told {
                self.findings.add(Kind::Broken, format!("{name}: it did not start: {}", ended.complaints));
            }
            return;
        }
        if let Err(error) = self.look(&service, &name) {
            // The process may have killed itself before the check; the next one is checked.
            if !matches!(life.end, End::KillAtWrite(_)) {
                self.findings.add(Kind::Broken, format!("{name}: {error}"));
            }
            service.signal("KILL");
            return self.check_end(service.end(), life, &name);
        }
        let doors = Doors::of(&service);
        let crowd = self.people.take().expect("they are at home").go(doors);
        let half = life.acts / 2;
        if crowd.wait(life.acts - half) {
            let mut dice = Rng::new(life.seed);
            let scene = Scene { service: &service, doors, crowd: &crowd, place: &self.place, acts: half };
            let _aftermath = life.trouble.strike(&scene, &mut dice);
            crowd.wait(half);
        }
        crowd.is_over();
        match life.end {
            End::Kill | End::KillAtWrite(_) => service.signal("KILL"),
            End::Stop => service.signal("TERM"),
            End::PowerCut => self.place.lose_power(&service),
        }
        let ended = service.end();
        let mut people = crowd.home(self.seed, &mut self.findings);
        people.fix.forgives_repeats |= life.end == End::PowerCut;
        people.fix.reckon(&mut self.findings);
        self.people = Some(people);
        self.check_end(ended, life, &name);
        if life.end == End::PowerCut {
            self.place.power_on();
        }
        if let Err(words) = self.place.verify() {
            self.findings.add(Kind::Broken, format!("{name}: the journal is not sound: {words}"));
        }
    }

    /// Starts the service a last time without any activity: all clients catch up, and then
    /// everything must agree.
    pub fn close(&mut self) {
        let name = format!("seed {}, after {} lives", self.seed, self.lives);
        let service = self.place.still();
        if !service.is_ready() {
            return self.findings.add(Kind::Broken, format!("{name}: {}", service.end().complaints));
        }
        let doors = Doors::of(&service);
        let people = self.people.as_mut().expect("they are at home");
        let tries = 0..TRIES_MAX;
        if !tries.clone().any(|_| people.fix.catch_up(&doors, &mut self.findings).is_ok()) {
            self.findings.add(Kind::Broken, format!("{name}: the FIX client cannot log on"));
        }
        if !tries.clone().any(|_| people.rest.catch_up(&doors).is_ok()) {
            self.findings.add(Kind::Broken, format!("{name}: the REST client is not answered"));
        }
        for id in people.fix.unheard() {
            self.findings.add(Kind::Lost, format!("{name}: order {id} of FIX was never reported"));
        }
        match Audit::look(&doors, &people.told(), Depth::All, &name, self.place.close_time()) {
            Ok(findings) => self.findings.take(findings),
            Err(error) => self.findings.add(Kind::Broken, format!("{name}: {error}")),
        }
        service.signal("TERM");
        let ended = service.end();
        if !ended.is_orderly() {
            self.findings.add(Kind::Broken, format!("{name}: {}", ended.complaints));
        }
        if !self.findings.is_clean() {
            self.place.keep();
        }
    }

    /// Starts the service once more, only for a check.
    pub fn look_back(&mut self) {
        let service = self.place.still();
        self.look(&service, "looking back").expect("it goes on while it is looked at");
        service.signal("KILL");
        service.end();
    }

    /// Checks the state after the start; returns an error if the service did not start or is gone.
    fn look(&mut self, service: &Service, name: &str) -> io::Result<()> {
        if !service.is_ready() {
            return Err(io::Error::other("it did not start"));
        }
        let people = self.people.as_mut().expect("they are at home");
        let (doors, close) = (Doors::of(service), self.place.close_time());
        self.findings.take(Audit::look(&doors, &people.told(), Depth::Fresh, name, close)?);
        people.are_known();
        Ok(())
    }

    fn check_end(&mut self, ended: Ended, life: &Life, name: &str) {
        let words = &ended.complaints;
        if words.contains("pitlane failed") {
            return self.findings.add(Kind::Panic, format!("{name}: {words}"));
        }
        let as_meant = match (ended.status.signal(), life.end) {
            (Some(SIGKILL), _) => life.end != End::Stop || life.trouble.may_end_it(),
            (Some(SIGABRT), _) => life.trouble.may_end_it() && words.contains("memory allocation"),
            (None, End::Stop) => ended.is_orderly(),
            _ => false,
        };
        if !as_meant {
            self.findings.add(Kind::Broken, format!("{name}: it ended with {}: {words}", ended.status));
        }
    }
}
