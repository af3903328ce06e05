//! What an operator reads when a start goes wrong, and what the service manager receives.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pitlane_testkit::disk_image::sh;
use pitlane_testkit::paths;
use pitlane_testkit::service::{ServiceProcess, TestFolder, command, folder};

use crate::STILL;

/// Longest wait for a message to the service manager.
const PATIENCE: Duration = Duration::from_secs(60);

/// Copies the shipped reference data, with one text replaced in one file.
fn refdata(place: &TestFolder, name: &str, file: &str, from: &str, to: &str) -> String {
    let target = place.join(name);
    fs::create_dir_all(&target).unwrap();
    for entry in fs::read_dir(paths::repository().join("config/refdata")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, target.join(path.file_name().unwrap())).unwrap();
    }
    let path = target.join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has {from}");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
    format!("refdata.dir={}", target.display())
}

fn stop(service: ServiceProcess) -> String {
    assert!(service.is_ready(), "{}", service.end().log_text);
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}", ended.log_text);
    ended.log_text
}

#[test]
fn reference_data_other_than_those_of_the_journal_are_reported() {
    let (data, place) = (folder("refdata-data"), folder("refdata-files"));
    let differs = "the reference data differ from those of this journal";
    assert!(!stop(ServiceProcess::start(&data, &STILL, None)).contains(differs), "a new journal");
    let other = refdata(&place, "other", "securities.csv", "\n52,SOLUSD", "\n900,ADAUSD");
    let log_text = stop(ServiceProcess::start(&data, &[STILL[0], &other], None));
    assert!(log_text.contains(differs), "{log_text}");
    assert!(log_text.contains("securities: 1 new, 1 gone, 0 changed"), "{log_text}");
    let log_text = stop(ServiceProcess::start(&data, &[STILL[0], &other], None));
    assert!(!log_text.contains(differs), "it is reported once: {log_text}");
    // The same id with another meaning is refused, with advice that fits.
    let wrong = refdata(&place, "wrong", "accounts.csv", "\n1,", "\n1,X");
    let ended = ServiceProcess::start(&data, &[STILL[0], &wrong], None).end();
    assert_eq!((ended.status.code(), ended.output.as_str()), (Some(1), ""));
    for part in ["do not fit those of the journal", "an id never changes its meaning", "set refdata.dir"] {
        assert!(ended.log_text.contains(part), "{part}: {}", ended.log_text);
    }
}

/// A file system in memory, unmounted at the end.
struct SmallDisk<'a>(&'a Path);

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        sh(&format!("umount {}", self.0.display()));
    }
}

#[test]
fn a_start_on_a_full_disk_gives_the_right_advice() {
    let place = folder("full-disk");
    let at = place.join("disk");
    fs::create_dir_all(&at).unwrap();
    if !sh(&format!("mount -t tmpfs -o size=3m tmpfs {} 2>/dev/null", at.display())) {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    let disk = SmallDisk(&at);
    let service = ServiceProcess::spawn(command(&at.join("data"), &STILL));
    let ended = service.end();
    assert_eq!((ended.status.code(), ended.output.as_str()), (Some(1), ""), "{}", ended.log_text);
    assert!(ended.log_text.contains("No space left on device"), "{}", ended.log_text);
    assert!(ended.log_text.contains("make room (`df -h` shows where)"), "{}", ended.log_text);
    assert!(!ended.log_text.contains("journal verify"), "{}", ended.log_text);
    drop(disk);
}

#[test]
fn an_unknown_preset_is_answered_with_the_list() {
    let output = Command::new(paths::binary()).args(["check", "--config", "simulatoin"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("(did you mean simulation?); the presets are dev, bench, pinned,"), "{text}");
}

fn received(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 4_096];
    match socket.recv(&mut bytes) {
        Ok(length) => String::from_utf8_lossy(&bytes[..length]).into_owned(),
        Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the service manager received nothing"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_service_manager_receives_readiness_signs_of_life_and_the_stop() {
    for layout in ["shared", "dedicated"] {
        let data = folder(&format!("notify-{layout}"));
        let path = data.join("notify");
        fs::create_dir_all(&*data).unwrap();
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = command(&data, &[STILL[0], &format!("topology.layout={layout}")]);
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "6000000");
        let service = ServiceProcess::on(&data, command);
        assert!(service.is_ready(), "{}", service.ready);
        let mut messages = Vec::new();
        let signs = |messages: &[String]| messages.iter().filter(|text| *text == "WATCHDOG=1\n").count();
        // The second sign after the readiness is sent only if every thread has answered.
        let is_ready =
            |messages: &[String]| messages.iter().any(|text| text.starts_with("READY=1\nSTATUS=ready http="));
        while !is_ready(&messages) {
            messages.push(received(&socket));
        }
        messages.clear();
        while signs(&messages) < 2 {
            messages.push(received(&socket));
        }
        service.signal("TERM");
        while !messages.iter().any(|text| text.starts_with("STOPPING=1\n")) {
            messages.push(received(&socket));
        }
        assert!(service.end().is_orderly());
    }
}
