//! Writes audit records, syncs once per batch, and confirms each record. A duty of the thread
//! `auth`.

use std::path::{Path, PathBuf};

use pitlane_engine::time::Timestamp;
use rtrb::{Producer, RingBuffer};

use super::AuditError;
use super::anchor::Anchor;
use super::chain::{End, Entry};
use super::client::{self, ANCHORS_MAX, AuditClient, AuditQueue, AuditRequest, Failed, SLIPS_MAX};
use super::files::Trail;
use crate::wakeup::Wakeup;

#[derive(Debug)]
pub struct AuditWriter {
    trail: Trail,
    inkwells: Vec<AuditQueue>,
    /// Whether a write or a sync has failed. Nothing more is written then, because the content of
    /// the file is unknown.
    has_failed: bool,
    data: PathBuf,
    /// Identifier of this log, for its anchors.
    log: u64,
    /// The lane for anchors and the wake-up of its reader; `is_untold` is set while the newest
    /// anchor has not been sent.
    anchors: Option<(Producer<Anchor>, Wakeup)>,
    is_untold: bool,
}

impl AuditWriter {
    /// Continues the log in this data folder, or creates it.
    pub fn open(data: &Path, now: Timestamp) -> Result<AuditWriter, AuditError> {
        let anchor = Anchor::read(data)?;
        anchor.map_or(Ok(()), |anchor| anchor.check(data))?;
        let trail = Trail::open(data)?;
        if anchor.is_none() && trail.end.seq > 0 {
            tracing::warn!("the audit log has no anchor: what was removed from its end cannot be told");
        }
        let log = anchor.map_or(now.0, |anchor| anchor.log);
        let mut scribe = AuditWriter {
            trail,
            inkwells: Vec::new(),
            has_failed: false,
            data: data.to_path_buf(),
            log,
            anchors: None,
            is_untold: true,
        };
        if scribe.trail.dropped > 0 {
            let text = format!("a line was cut off and never acted upon: {} bytes", scribe.trail.dropped);
            let (line, end) = scribe.trail.end.append(now, &Entry::Remark(text));
            // The folder may be full: this line is written nevertheless, like an outcome.
            scribe.trail.write(&format!("{line}\n"), end)?;
        }
        scribe.anchor().write(data)?;
        let End { seq, link } = scribe.trail.end;
        if seq > 0 {
            tracing::info!(seq, hash = %link, "the audit log goes on");
        }
        Ok(scribe)
    }

    /// Returns an anchor for the current end of the chain.
    pub fn anchor(&self) -> Anchor {
        let End { seq, link } = self.trail.end;
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
    pub fn pen_with_anchors(&mut self, scribe: Wakeup, bell: Wakeup) -> AuditClient {
        let (producer, consumer) = RingBuffer::new(ANCHORS_MAX);
        self.anchors = Some((producer, bell.clone()));
        let mut pen = self.pen(scribe, bell);
        pen.anchors = Some(consumer);
        pen
    }

    /// Writes the current end of the chain to the anchor file, and marks it to be sent to the
    /// journal.
    fn drop_anchor(&mut self) {
        let anchor = self.anchor();
        if let Err(error) = anchor.write(&self.data) {
            tracing::error!(%error, "the anchor of the audit log cannot be written");
        }
        tracing::info!(line = anchor.line, hash = %anchor.hash, "the audit log is anchored");
        self.is_untold = true;
    }

    fn tell_anchor(&mut self) {
        let anchor = self.anchor();
        let Some((anchors, bell)) = self.anchors.as_mut().filter(|_| anchor.line > 0) else { return };
        if self.is_untold && anchors.push(anchor).is_ok() {
            self.is_untold = false;
            bell.wake();
        }
    }

    /// Creates a client for a thread with the wake-up `bell`; `scribe` wakes the thread that runs
    /// this writer.
    pub fn pen(&mut self, scribe: Wakeup, bell: Wakeup) -> AuditClient {
        let (pen, inkwell) = client::pair(scribe, bell);
        self.inkwells.push(inkwell);
        pen
    }

    pub fn poll(&mut self, now: Timestamp) -> usize {
        self.tell_anchor();
        if self.inkwells.iter().all(|inkwell| inkwell.slips.is_empty()) {
            return 0;
        }
        let takes_acts = !self.has_failed && self.make_room();
        let mut page = AuditBatch { end: self.trail.end, takes_acts, ..AuditBatch::default() };
        for (at, inkwell) in self.inkwells.iter_mut().enumerate() {
            for _ in 0..SLIPS_MAX {
                let Ok(slip) = inkwell.slips.pop() else { break };
                page.take(now, at, slip);
            }
        }
        let is_kept = !self.has_failed && self.keep(&page);
        for (at, ticket, seq) in page.noted {
            let inkwell = &mut self.inkwells[at];
            let noted = seq.filter(|_| is_kept).ok_or(Failed);
            inkwell.noted.push((ticket, noted)).expect("a pen has no more acts on their way than fit");
            inkwell.bell.wake();
        }
        // After the answers, because no thread waits for an anchor.
        if is_kept && !page.lines.is_empty() {
            self.drop_anchor();
            self.tell_anchor();
        }
        page.work
    }

    /// Returns whether the log accepts acts. The outcomes of recorded acts are written in any case.
    fn make_room(&mut self) -> bool {
        let room = self.trail.make_room();
        room.map_err(|error| self.fail(&error)).is_ok()
    }

    fn keep(&mut self, page: &AuditBatch) -> bool {
        if page.lines.is_empty() {
            return true;
        }
        let written = self.trail.write(&page.lines, page.end);
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
            tracing::info!(line = anchor.line, hash = %anchor.hash, "the audit log ends here");
        }
    }
}

/// The records of one write.
#[derive(Default)]
struct AuditBatch {
    end: End,
    lines: String,
    /// Whether acts are written; otherwise they are refused, and only outcomes are written.
    takes_acts: bool,
    /// The answers: index of the client, its ticket, the line number; `None` if the act was
    /// refused.
    noted: Vec<(usize, u64, Option<u64>)>,
    work: usize,
}

impl AuditBatch {
    fn take(&mut self, now: Timestamp, from: usize, slip: AuditRequest) {
        self.work += 1;
        let entry = match slip {
            AuditRequest::Act { ticket, .. } if !self.takes_acts => {
                return self.noted.push((from, ticket, None));
            }
            AuditRequest::Act { ticket, act } => {
                self.noted.push((from, ticket, Some(self.end.seq + 1)));
                Entry::Act(act)
            }
            AuditRequest::Outcome { of, outcome } => Entry::Outcome { of, outcome },
        };
        let (line, end) = self.end.append(now, &entry);
        self.lines.push_str(&line);
        self.lines.push('\n');
        self.end = end;
    }
}
