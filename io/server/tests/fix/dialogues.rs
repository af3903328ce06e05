//! The dialogues of `tests/data/fix` over real sockets, TCP and TLS: those in which no time passes
//! and only the client acts. `tests/fix.rs` plays all of them without a socket, and describes their
//! format.

use std::cell::Cell;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Instant;

use pitlane_runtime::clock::Clock;
use pitlane_testkit::fix_client::{FixClient, FixStream, ReceivedFix, plain, tls};
use pitlane_testkit::fix_fields::{Bound, filled, fits, frame_of, number_after, sealed};
use pitlane_testkit::patience::PATIENCE;
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};

use crate::{address, fix, start_with};

/// Families of sessions that differ in the settings of dialogues; the client's name is that of its
/// family with a number.
const CONFIG: &str = r#"
[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "RESETS*"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "STAYS*"
ResetOnLogon = "N"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "CHECKED*"
UseDataDictionary = "Y"
ValidateIncomingMessage = "Y"
"#;

/// Lines that can be played here. Sequence numbers are visible in the next message.
const WORDS: [&str; 12] =
    ["logon", "connect", ">", ">>", "<", "disconnect", "closed", "open", ">raw", ">old", ">bare", "numbers"];

/// Plays of a dialogue until the service sends nothing in it because time has passed.
const PLAYS_MAX: u32 = 5;

#[test]
fn dialogues_are_the_same_over_tcp() {
    let service = start_with(&folder("fix-dialogues"), CONFIG, &["feed.on=false"]);
    play_all(&service, &|| Box::new(plain(fix(&service))));
    service.signal("KILL");
    service.end();
}

#[test]
fn dialogues_are_the_same_over_tls() {
    let data: TestFolder = folder("fix-dialogues-tls");
    let service = start_with(&data, CONFIG, &["feed.on=false", "fix.tls_listen=127.0.0.1:0"]);
    let door: SocketAddr = address(&service, "fix+tls");
    play_all(&service, &|| tls(door, &data));
    service.signal("KILL");
    service.end();
}

type OpenStream<'a> = dyn Fn() -> Box<dyn FixStream> + 'a;

fn play_all(service: &ServiceProcess, door: &OpenStream<'_>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/fix");
    let read = fs::read_dir(folder).expect("the dialogues are part of the repository");
    let mut paths: Vec<_> = read.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    let mut played = 0;
    for (nth, path) in paths.iter().enumerate() {
        let text = fs::read_to_string(path).expect("a readable file");
        let Some(family) = family_of(&text) else { continue };
        if let Err(problem) = play(&format!("{family}{nth}"), &text, door) {
            panic!("{}:{problem}\n{}", path.display(), service.ready);
        }
        played += 1;
    }
    assert!(played >= 50, "only {played} dialogues can be played here");
}

/// Plays a dialogue under a name. On a busy machine so much time may pass that the service sends a
/// message of its own accord. It is in no dialogue and takes a number, so that the rest cannot be
/// compared: the dialogue is played again, under a name that the service does not know yet.
fn play(name: &str, text: &str, door: &OpenStream<'_>) -> Result<(), String> {
    let mut last = String::new();
    for nth in 0..PLAYS_MAX {
        let name = if nth == 0 { name.to_string() } else { format!("{name}R{nth}") };
        match DialogueRun::new(&name, door).perform_all(text) {
            Ok(()) => return Ok(()),
            Err((at, DialogueFault::Differs(problem))) => return Err(format!("{at}: {problem}")),
            Err((at, DialogueFault::TimePassed(message))) => last = format!("{at}: {message}"),
        }
    }
    Err(format!("{last}\nin each of {PLAYS_MAX} plays the service sent such a message"))
}

/// Why a dialogue ends early.
enum DialogueFault {
    Differs(String),
    /// The service has sent this message because time has passed.
    TimePassed(String),
}

impl From<String> for DialogueFault {
    fn from(problem: String) -> DialogueFault {
        DialogueFault::Differs(problem)
    }
}

/// Returns whether the service sends a message because nothing was sent for some time: Test
/// Request, or a Heartbeat that answers none.
fn is_sent_by_time(message: &ReceivedFix) -> bool {
    match message.get(35) {
        "0" => message.get(112).is_empty(),
        msg_type => msg_type == "1",
    }
}

/// Returns the family of sessions of a dialogue; None if it cannot be played here.
fn family_of(text: &str) -> Option<&'static str> {
    let mut family = "RESETS";
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (part, rest) = line.split_once(' ').unwrap_or((line, ""));
        // Orders are for another market than this one, its day is another, and its time is exact to
        // the second.
        let is_elsewhere =
            ["35=D", "35=F", "35=G", "35=8", "=20261116", "52=@"].iter().any(|field| rest.contains(field));
        match (part, rest) {
            ("set", "reset_on_logon=N") => family = "STAYS",
            ("set", "validate=Y") => family = "CHECKED",
            (part, _) if WORDS.contains(&part) && !is_elsewhere => {}
            _ => return None,
        }
    }
    Some(family)
}

struct DialogueRun<'a> {
    client: FixClient,
    name: String,
    door: &'a OpenStream<'a>,
    number: u64,
    bound: Bound,
    clock: Clock,
    /// Bytes sent over this connection before anything was received over it.
    unanswered: Vec<u8>,
    is_new: bool,
    held: Vec<u8>,
}

impl<'a> DialogueRun<'a> {
    fn new(name: &str, door: &'a OpenStream<'a>) -> DialogueRun<'a> {
        DialogueRun {
            client: FixClient::new(name),
            name: name.to_string(),
            door,
            number: 1,
            bound: Bound::new(),
            clock: Clock::new(),
            unanswered: Vec::new(),
            is_new: false,
            held: Vec::new(),
        }
    }

    /// Performs all lines. An error has the number of its line.
    fn perform_all(&mut self, text: &str) -> Result<(), (usize, DialogueFault)> {
        let lines = text.lines().enumerate();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            self.perform(line).map_err(|fault| match fault {
                DialogueFault::Differs(problem) => {
                    (at + 1, DialogueFault::Differs(format!("{line}\n{problem}")))
                }
                DialogueFault::TimePassed(message) => (at + 1, DialogueFault::TimePassed(message)),
            })?;
        }
        Ok(())
    }

    fn perform(&mut self, line: &str) -> Result<(), DialogueFault> {
        let (part, rest) = line.split_once(' ').unwrap_or((line, ""));
        match part {
            "<" => return self.expect(rest),
            ">" | ">>" => self.send(rest, part == ">>"),
            ">raw" => self.write(&rest.replace("CLIENT1", &self.name).replace('|', "\x01").into_bytes()),
            ">old" | ">bare" => {
                let begin_string = if part == ">old" { "FIX.4.2" } else { "FIX.4.4" };
                let text = self.text(rest);
                self.write(&sealed(begin_string, &format!("{text}|")));
            }
            "connect" => self.connect(),
            "logon" => {
                self.connect();
                if self.name.starts_with("RESETS") || self.name.starts_with("CHECKED") {
                    self.number = 1;
                }
                let extra = if rest.is_empty() { "108=30" } else { rest };
                self.send(&format!("35=A|98=0|{extra}"), false);
                return self.expect("35=A");
            }
            "disconnect" => self.client.disconnect(),
            "closed" if !self.client.is_closed() => return Err("it is not closed".to_string().into()),
            _ => {}
        }
        Ok(())
    }

    fn connect(&mut self) {
        self.client.take((self.door)());
        self.unanswered.clear();
        self.is_new = true;
    }

    fn text(&mut self, text: &str) -> String {
        filled(text, self.clock.now(), &self.bound).replace("CLIENT1", &self.name)
    }

    fn send(&mut self, text: &str, hold: bool) {
        let text = self.text(text);
        let bytes = frame_of(&text, &self.name, self.number, self.clock.now());
        self.number = number_after(&text, self.number);
        self.held.extend_from_slice(&bytes);
        if !hold {
            self.write(&[]);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        self.client.write(&held);
        if self.is_new {
            self.unanswered.extend_from_slice(&held);
        }
    }

    /// Expects the next message. A client that reconnects before the service has detected the
    /// disconnect is refused, and tries again.
    fn expect(&mut self, expected: &str) -> Result<(), DialogueFault> {
        let late = Instant::now() + PATIENCE;
        while Instant::now() < late {
            match self.client.read() {
                Ok(message) if is_sent_by_time(&message) => {
                    return Err(DialogueFault::TimePassed(message.text()));
                }
                Ok(message) => {
                    self.is_new = false;
                    let expected = expected.replace("CLIENT1", &self.name);
                    return Ok(fits(&expected, &message.text(), &mut self.bound)?);
                }
                Err(error) if !self.is_new => return Err(format!("nothing is sent: {error}").into()),
                Err(_) => {
                    self.client.take((self.door)());
                    self.client.write(&self.unanswered);
                }
            }
        }
        Err("it cannot come again".to_string().into())
    }
}

/// A connection that writes its second message only when the service has sent something after its
/// answer to the first.
struct DelayedStream {
    stream: TcpStream,
    writes: u32,
}

impl Read for DelayedStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.read(bytes)
    }
}

impl Write for DelayedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        if self.writes == 2 {
            self.stream.peek(&mut [0])?;
        }
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[test]
fn a_dialogue_in_which_time_passes_is_played_again_and_one_that_differs_is_not() {
    const ANSWERED: &str = "logon 108=1\n> 35=1|112=x\n< 35=0|112=x";
    let service = start_with(&folder("fix-dialogues-late"), CONFIG, &["feed.on=false"]);
    let opened = Cell::new(0);
    let late_until = Cell::new(0);
    let door = || -> Box<dyn FixStream> {
        let stream = plain(fix(&service));
        opened.set(opened.get() + 1);
        if opened.get() > late_until.get() {
            Box::new(stream)
        } else {
            Box::new(DelayedStream { stream, writes: 0 })
        }
    };
    // A Heartbeat comes before the answer.
    late_until.set(1);
    assert_eq!(play("RESETS1", ANSWERED, &door), Ok(()));
    assert!(opened.get() > 1, "the first play was late");
    let differs = play("RESETS2", &ANSWERED.replace("0|112=x", "0|112=y"), &door).unwrap_err();
    assert!(differs.starts_with("3: ") && differs.contains("112=y"), "{differs}");
    opened.set(0);
    late_until.set(u32::MAX);
    let late = play("RESETS3", ANSWERED, &door).unwrap_err();
    assert!(late.contains("in each of 5 plays") && opened.get() == PLAYS_MAX, "{late}");
    service.signal("KILL");
    service.end();
}
