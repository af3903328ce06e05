//! Writes message logs (`FileLogPath`) and syncs stores on a thread of its own. Gateways send
//! copies over a bounded lane. Messages that do not fit are counted and reported in the log; a
//! gateway never waits. Secrets are masked before anything is written.
//!
//! ```text
//! gateway ─ bytes of messages, one after the other ─► FixLogWriter ─► FileLogPath/PITLANE-CLIENT1.log
//!         ─ stores to be synced ────────────────────►              ─► fdatasync, while there is something new
//! ```

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pitlane_engine::index::index_u32;
use pitlane_engine::time::Timestamp;
use pitlane_journal::disk::File;
use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::fix::fields::{Fields, read};
use pitlane_protocols::fix::frame::{self, FixFrameError};
use pitlane_protocols::fix::timestamp::TimestampText;
use pitlane_runtime::thread_class::ThreadClass;
use rtrb::{Consumer, Producer, RingBuffer};

/// Capacity in bytes of the lane for messages: a burst of some ten thousand.
const LANE_BYTES: usize = 4 << 20;
/// Maximum number of requests in transit to open a log or to sync a store.
const REQUESTS_MAX: usize = 4_096;
/// Poll interval: logs are read by people, and at level `disk` a store is synced this often.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Poll interval while there is no log and no store.
const POLL_INTERVAL_IDLE: Duration = Duration::from_secs(1);
/// Maximum length of a logged message: every session rejects longer ones.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Bytes before each message on the lane: session, direction, length, time.
const HEAD_BYTES: usize = 16;

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageDirection {
    In,
    Out,
}

enum LogRequest {
    Log { session: u16, path: PathBuf },
    Sync { file: Arc<File> },
}

/// The gateway's end.
pub struct FixLogHandle {
    bytes: Producer<u8>,
    requests: Producer<LogRequest>,
    dropped: Arc<AtomicU64>,
}

impl std::fmt::Debug for FixLogHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FixLogHandle").finish_non_exhaustive()
    }
}

impl FixLogHandle {
    /// Starts logging the messages of this session to this file. Returns whether the request fitted
    /// into the lane.
    pub fn open_log(&mut self, session: u16, path: PathBuf) -> bool {
        self.requests.push(LogRequest::Log { session, path }).is_ok()
    }

    /// Starts syncing this store. Returns whether the request fitted into the lane.
    pub fn sync(&mut self, file: Arc<File>) -> bool {
        self.requests.push(LogRequest::Sync { file }).is_ok()
    }

    /// Sends a copy of a message.
    pub fn log(&mut self, session: u16, direction: MessageDirection, now: Timestamp, message: &[u8]) {
        let bytes = HEAD_BYTES + message.len();
        let Ok(chunk) = self.bytes.write_chunk_uninit(bytes) else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let mut head = [0; HEAD_BYTES];
        head[0..2].copy_from_slice(&session.to_le_bytes());
        head[2] = direction as u8;
        head[4..8].copy_from_slice(&index_u32(message.len()).to_le_bytes());
        head[8..16].copy_from_slice(&now.0.to_le_bytes());
        chunk.fill_from_iter(head.into_iter().chain(message.iter().copied()));
    }
}

/// The writer's end of one gateway.
struct GatewayLog {
    bytes: Consumer<u8>,
    requests: Consumer<LogRequest>,
    dropped: Arc<AtomicU64>,
    reported_dropped: u64,
    logs: BTreeMap<u16, BufWriter<fs::File>>,
    stores: Vec<Arc<File>>,
    /// By session and direction: bytes of a message whose rest has not arrived.
    partial: BTreeMap<(u16, u8), Vec<u8>>,
}

/// A writer that has not been started.
#[derive(Default)]
pub struct FixLogWriter {
    gateways: Vec<GatewayLog>,
}

/// The running writer. Dropping it writes the remaining messages and ends the thread.
#[derive(Debug)]
pub struct FixLogThread {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for FixLogThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the writer has already been logged.
            let _ = thread.join();
        }
    }
}

impl FixLogWriter {
    /// Creates a handle for one more gateway.
    pub fn handle(&mut self) -> FixLogHandle {
        let (bytes, theirs) = RingBuffer::new(LANE_BYTES);
        let (requests, taken_requests) = RingBuffer::new(REQUESTS_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        self.gateways.push(GatewayLog {
            bytes: theirs,
            requests: taken_requests,
            dropped: dropped.clone(),
            reported_dropped: 0,
            logs: BTreeMap::new(),
            stores: Vec::new(),
            partial: BTreeMap::new(),
        });
        FixLogHandle { bytes, requests, dropped }
    }

    pub fn start(mut self) -> io::Result<FixLogThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let mut work = move || loop {
            let last = stopped.load(Ordering::Acquire);
            self.gateways.iter_mut().for_each(GatewayLog::poll);
            if last {
                return;
            }
            let idle =
                self.gateways.iter().all(|gateway| gateway.logs.is_empty() && gateway.stores.is_empty());
            thread::park_timeout(if idle { POLL_INTERVAL_IDLE } else { POLL_INTERVAL });
        };
        let thread = thread::Builder::new().name("fix-log".to_string()).spawn(move || {
            ThreadClass::Housekeeping.apply();
            work();
        })?;
        Ok(FixLogThread { stop, thread: Some(thread) })
    }
}

impl GatewayLog {
    fn poll(&mut self) {
        while let Ok(request) = self.requests.pop() {
            match request {
                LogRequest::Log { session, path } => self.open(session, path),
                LogRequest::Sync { file } => self.stores.push(file),
            }
        }
        while self.take_one() {}
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > self.reported_dropped {
            tracing::warn!(
                messages = dropped - self.reported_dropped,
                "FIX messages are missing in message logs: too many at once"
            );
            self.reported_dropped = dropped;
        }
        for log in self.logs.values_mut() {
            if let Err(error) = log.flush() {
                tracing::warn!(%error, "a FIX message log cannot be written");
            }
        }
        self.stores.retain(|store| {
            let synced = store.sync();
            if let Err(error) = &synced {
                tracing::error!(%error, "a FIX store cannot be synced: after a power failure reports may be sent twice");
            }
            synced.is_ok()
        });
    }

    fn open(&mut self, session: u16, path: PathBuf) {
        let opened = path.parent().map_or(Ok(()), fs::create_dir_all);
        let opened =
            opened.and_then(|()| OpenOptions::new().create(true).append(true).mode(0o600).open(&path));
        match opened {
            Ok(file) => _ = self.logs.insert(session, BufWriter::new(file)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a FIX message log cannot be opened")
            }
        }
    }

    /// Writes the next message if it has arrived completely.
    fn take_one(&mut self) -> bool {
        let Ok(head) = self.bytes.read_chunk(HEAD_BYTES) else { return false };
        let mut fields = [0; HEAD_BYTES];
        fields.iter_mut().zip(head).for_each(|(field, byte)| *field = byte);
        let session = u16::from_le_bytes([fields[0], fields[1]]);
        let length = u32::from_le_bytes([fields[4], fields[5], fields[6], fields[7]]) as usize;
        let now = Timestamp(u64::from_le_bytes(fields[8..16].try_into().expect("eight bytes")));
        // Head and message were sent at once.
        let Ok(body) = self.bytes.read_chunk(length) else { return false };
        let partial = self.partial.entry((session, fields[2])).or_default();
        partial.extend(body);
        let Some(log) = self.logs.get_mut(&session) else {
            partial.clear();
            return true;
        };
        let sign = if fields[2] == MessageDirection::In as u8 { b" < " } else { b" > " };
        let mut begin = TimestampText::default().text(now).to_vec();
        begin.extend_from_slice(sign);
        if let Err(error) = write_messages(partial, &begin, log) {
            tracing::warn!(%error, "a FIX message log cannot be written");
        }
        true
    }
}

/// Writes complete messages and leaves the rest: a secret that is split in two could not be
/// recognised.
fn write_messages(partial: &mut Vec<u8>, begin: &[u8], log: &mut impl Write) -> io::Result<()> {
    let mut done = 0;
    while done < partial.len() {
        let mut line = begin.to_vec();
        done += match frame::decode(&partial[done..], MESSAGE_BYTES_MAX) {
            Ok(Decoded::Incomplete) => break,
            Ok(Decoded::Message { message, consumed }) => {
                masked(message, &mut line);
                consumed
            }
            Err(FixFrameError::Garbled { skip }) => {
                line.extend_from_slice(format!("({skip} bytes that are no message)").as_bytes());
                skip
            }
            Err(FixFrameError::TooLong) => partial.len() - done,
        };
        line.push(b'\n');
        log.write_all(&line)?;
    }
    partial.drain(..done);
    Ok(())
}

/// Formats a message for people: hides the values of Password (554), NewPassword (925) and RawData
/// (96), and replaces bytes that are not printable ASCII by a question mark, so that a message
/// stays on one line.
fn masked(message: frame::FixFrame<'_>, line: &mut Vec<u8>) {
    let mut fields = Fields::default();
    let begin = message.begin_string;
    let message = read(message, &mut fields);
    let mut show = |tag: u32, value: &[u8]| {
        line.extend_from_slice(format!("{tag}=").as_bytes());
        match tag {
            96 | 554 | 925 => line.extend_from_slice(b"***"),
            _ => line.extend(value.iter().map(|&byte| if (32..127).contains(&byte) { byte } else { b'?' })),
        }
        line.push(b'|');
    };
    show(8, begin);
    show(35, message.msg_type);
    message.iter().for_each(|(tag, value)| show(tag, value));
    if let Some(fault) = message.fault {
        line.extend_from_slice(format!("({})", fault.reason.text()).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_written_in_order_without_secrets() {
        let folder = std::env::temp_dir().join(format!("pitlane-fix-log-{}", std::process::id()));
        let path = folder.join("logs/A-B.log");
        let mut writer = FixLogWriter::default();
        let mut handle = writer.handle();
        let running = writer.start().unwrap();
        assert!(handle.open_log(3, path.clone()));
        let framed = |body: &str| {
            let body = body.replace('|', "\x01");
            let mut bytes = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
            let sum = frame::check_sum(&bytes);
            bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
            bytes
        };
        let logon = framed("35=A|553=me|554=secret|95=7|96=raw|raw|");
        // Split in the middle of the password.
        let cut = logon.windows(3).position(|bytes| bytes == b"cre").unwrap();
        handle.log(3, MessageDirection::In, Timestamp(1_763_200_000_123_000_000), &logon[..cut]);
        handle.log(
            3,
            MessageDirection::In,
            Timestamp(1_763_200_000_123_000_000),
            &[&logon[cut..], b"554=secret"].concat(),
        );
        handle.log(9, MessageDirection::In, Timestamp(1), b"of nobody");
        handle.log(3, MessageDirection::Out, Timestamp(1_763_200_000_124_000_000), &framed("35=0|58=a\nb|"));
        drop(running);
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].contains(" < 8=FIX.4.4|35=A|553=me|554=***|95=7|96=***|"), "{text}");
        assert!(lines[1].contains(" < (10 bytes that are no message)"), "{text}");
        assert!(lines[2].contains(" > 8=FIX.4.4|35=0|58=a?b|"), "{text}");
        assert!(!text.contains("secret"));
    }

    #[test]
    fn a_full_lane_does_not_block_the_sender() {
        let mut writer = FixLogWriter::default();
        let mut handle = writer.handle();
        for _ in 0..100 {
            handle.log(1, MessageDirection::Out, Timestamp(1), &[b'x'; 65_536]);
        }
        assert!(handle.dropped.load(Ordering::Relaxed) > 30);
    }
}
