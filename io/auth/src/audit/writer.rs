//! Writes audit records, syncs once per batch, and confirms each record. A duty of the thread
//! `auth`.

use std::path::{Path, PathBuf};

use pitlane_engine::time::Timestamp;
use pitlane_runtime::mailbox::{MailboxSender, mailbox};
use pitlane_runtime::wakeup::Wakeup;

use super::AuditError;
use super::anchor::Anchor;
use super::chain::{AuditEntry, ChainEnd};
use super::client::{self, ANCHORS_MAX, AuditClient, AuditQueue, AuditRequest, Failed, REQUESTS_MAX};
use super::files::AuditFile;

#[derive(Debug)]
pub struct AuditWriter {
    file: AuditFile,
    queues: Vec<AuditQueue>,
    /// Whether a write or a sync has failed. Nothing more is written then, because the content of
    /// the file is unknown.
    has_failed: bool,
    data: PathBuf,
    /// Identifier of this log, for its anchors.
    log: u64,
    /// Mailbox for anchors; `is_anchor_pending` is set while the newest anchor has not been sent.
    anchors: Option<MailboxSender<Anchor>>,
    is_anchor_pending: bool,
}

impl AuditWriter {
    /// Continues the log in this data folder, or creates it.
    pub fn open(data: &Path, now: Timestamp) -> Result<AuditWriter, AuditError> {
        let anchor = Anchor::read(data)?;
        anchor.map_or(Ok(()), |anchor| anchor.check(data))?;
        let file = AuditFile::open(data)?;
        if anchor.is_none() && file.end.seq > 0 {
            tracing::warn!(
                "the audit log has no anchor: lines that were removed from its end cannot be detected"
            );
        }
        let log = anchor.map_or(now.0, |anchor| anchor.log);
        let mut writer = AuditWriter {
            file,
            queues: Vec::new(),
            has_failed: false,
            data: data.to_path_buf(),
            log,
            anchors: None,
            is_anchor_pending: true,
        };
        if writer.file.dropped > 0 {
            let text = format!("a line was cut off and never acted upon: {} bytes", writer.file.dropped);
            let (line, end) = writer.file.end.append(now, &AuditEntry::Remark(text));
            // The folder may be full: this line is written nevertheless, like an outcome.
            writer.file.write(&format!("{line}\n"), end)?;
        }
        writer.anchor().write(data)?;
        let ChainEnd { seq, link } = writer.file.end;
        if seq > 0 {
            tracing::info!(seq, hash = %link, "the audit log continues");
        }
        Ok(writer)
    }

    /// Returns an anchor for the current end of the chain.
    pub fn anchor(&self) -> Anchor {
        let ChainEnd { seq, link } = self.file.end;
        Anchor { log: self.log, line: seq, hash: link }
    }

    /// Compares the log with the newest anchor of the journal. In a standby pair the other server,
    /// which has a log of its own, may have led.
    pub fn compare(&self, anchored: Anchor, is_standby: bool) -> Result<(), AuditError> {
        if anchored.log == self.log {
            return anchored.check(&self.data);
        }
        if !is_standby {
            tracing::warn!(
                line = anchored.line,
                hash = %anchored.hash,
                "the journal has an anchor of another audit log, which is not here: was the folder audit removed?"
            );
        }
        Ok(())
    }

    /// Creates a client whose thread writes the anchors to the journal.
    pub fn client_with_anchors(&mut self, writer: Wakeup, reader: Wakeup) -> AuditClient {
        let (anchors, received) = mailbox(ANCHORS_MAX, reader.clone());
        self.anchors = Some(anchors);
        let mut client = self.client(writer, reader);
        client.anchors = Some(received);
        client
    }

    /// Writes the current end of the chain to the anchor file, and marks it to be sent to the
    /// journal.
    fn write_anchor(&mut self) {
        let anchor = self.anchor();
        if let Err(error) = anchor.write(&self.data) {
            tracing::error!(%error, "the anchor of the audit log cannot be written");
        }
        tracing::info!(line = anchor.line, hash = %anchor.hash, "the audit log is anchored");
        self.is_anchor_pending = true;
    }

    fn send_anchor(&mut self) {
        let anchor = self.anchor();
        let Some(anchors) = self.anchors.as_mut().filter(|_| anchor.line > 0) else { return };
        if self.is_anchor_pending && anchors.send(anchor).is_ok() {
            self.is_anchor_pending = false;
        }
    }

    /// Creates a client for a thread with the wake-up `reader`; `writer` wakes the thread that runs
    /// this writer.
    pub fn client(&mut self, writer: Wakeup, reader: Wakeup) -> AuditClient {
        let (client, queue) = client::pair(writer, reader);
        self.queues.push(queue);
        client
    }

    pub fn poll(&mut self, now: Timestamp) -> usize {
        self.send_anchor();
        if self.queues.iter().all(|queue| queue.requests.is_empty()) {
            return 0;
        }
        let takes_acts = !self.has_failed && self.make_room();
        let mut batch = AuditBatch { end: self.file.end, takes_acts, ..AuditBatch::default() };
        for (at, queue) in self.queues.iter_mut().enumerate() {
            for _ in 0..REQUESTS_MAX {
                let Some(request) = queue.requests.poll() else { break };
                batch.take(now, at, request);
            }
        }
        let is_kept = !self.has_failed && self.keep(&batch);
        for (at, ticket, seq) in batch.noted {
            let queue = &mut self.queues[at];
            let noted = seq.filter(|_| is_kept).ok_or(Failed);
            queue.noted.send((ticket, noted)).expect("a client has no more acts in transit than fit");
        }
        // After the answers, because no thread waits for an anchor.
        if is_kept && !batch.lines.is_empty() {
            self.write_anchor();
            self.send_anchor();
        }
        batch.work
    }

    /// Returns whether the log accepts acts. The outcomes of recorded acts are written in any case.
    fn make_room(&mut self) -> bool {
        let room = self.file.make_room();
        room.map_err(|error| self.fail(&error)).is_ok()
    }

    fn keep(&mut self, batch: &AuditBatch) -> bool {
        if batch.lines.is_empty() {
            return true;
        }
        let written = self.file.write(&batch.lines, batch.end);
        written.map_err(|error| self.fail(&error)).is_ok()
    }

    fn fail(&mut self, error: &AuditError) {
        // A full folder leaves the file intact: the log accepts acts again when older files are
        // archived.
        self.has_failed = !matches!(error, AuditError::Full(_));
        tracing::error!(%error, "the audit log cannot be written: administrative acts are refused from now on");
    }
}

impl Drop for AuditWriter {
    /// Logs the last anchor, so that an operator who stores the service log elsewhere can compare.
    fn drop(&mut self) {
        let anchor = self.anchor();
        if anchor.line > 0 {
            tracing::info!(line = anchor.line, hash = %anchor.hash, "the audit log is closed");
        }
    }
}

/// The records of one write.
#[derive(Default)]
struct AuditBatch {
    end: ChainEnd,
    lines: String,
    /// Whether acts are written; otherwise they are refused, and only outcomes are written.
    takes_acts: bool,
    /// The answers: index of the client, its ticket, the line number; `None` if the act was
    /// refused.
    noted: Vec<(usize, u64, Option<u64>)>,
    work: usize,
}

impl AuditBatch {
    fn take(&mut self, now: Timestamp, from: usize, request: AuditRequest) {
        self.work += 1;
        let entry = match request {
            AuditRequest::Act { ticket, .. } if !self.takes_acts => {
                return self.noted.push((from, ticket, None));
            }
            AuditRequest::Act { ticket, act } => {
                self.noted.push((from, ticket, Some(self.end.seq + 1)));
                AuditEntry::Act(act)
            }
            AuditRequest::Outcome { of, outcome } => AuditEntry::Outcome { of, outcome },
        };
        let (line, end) = self.end.append(now, &entry);
        self.lines.push_str(&line);
        self.lines.push('\n');
        self.end = end;
    }
}
