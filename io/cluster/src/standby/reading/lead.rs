//! Decides who leads: compares folder and staging folder, replaces the folder, or requests
//! the lead.

use std::io;
use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use tokio::time::Instant;

use super::{FORGOTTEN, LAG_INTERVAL, PASSED, ReadTarget, ReadingEnd, StreamReading};
use crate::standby::follower::{Follower, RETRY_PAUSE};
use crate::standby::message::{ReplicationKind, ReplicationMessage};
use crate::standby::origin::StreamMessage;
use crate::standby::overlap;
use crate::standby::position::PositionFile;
use crate::standby::replica::{self, Replica};
use crate::standby::state::StandbyPhase;
use crate::standby::stream::{ExpectedPosition, StreamEnd};
use crate::standby::verdict::{FolderState, LastLeader, LeadVerdict, Overlap, decide, next_epoch};

/// Pause between two requests for the lead while the broker has no space.
const FULL_PAUSE: Duration = Duration::from_millis(500);

impl StreamReading {
    /// Compares folder and staging folder when new messages arrived, at most once per second.
    pub(super) fn compare_if_due(
        &mut self,
        follower: &mut Follower,
        is_acknowledged_there: bool,
    ) -> io::Result<Option<ReadingEnd>> {
        let is_new = self
            .compared
            .is_none_or(|(position, at)| position != self.position && at.elapsed() >= LAG_INTERVAL);
        if !matches!(self.target, ReadTarget::Stage(_)) || !is_new {
            return Ok(None);
        }
        // A leader that restores the stream has not sent its whole folder yet.
        let is_final = self.leader.is_some_and(|leader| self.restored == Some(leader.epoch));
        self.compare(follower, is_acknowledged_there, is_final)
    }

    fn compare(
        &mut self,
        follower: &mut Follower,
        is_acknowledged_there: bool,
        is_final: bool,
    ) -> io::Result<Option<ReadingEnd>> {
        self.compared = Some((self.position, Instant::now()));
        let member = &follower.member;
        let folder = member.folder();
        let last = match self.leader {
            None => LastLeader::Absent,
            Some(leader) if leader.node == member.node => LastLeader::Us,
            Some(leader) if leader.epoch < member.led_epoch() => LastLeader::Superseded,
            Some(_) => LastLeader::Other,
        };
        let (data, stage) = (&follower.data, member.stage());
        let overlap = Overlap {
            folder_has_stream: overlap::is_held(&stage, data, &overlap::extents(&stage)?)?,
            stream_has_folder: self.manifest.complete
                && (is_acknowledged_there
                    || overlap::is_held(
                        data,
                        &stage,
                        &member.acknowledged_extents(follower.is_replicated)?,
                    )?),
        };
        let verdict = decide(folder, last, overlap, member.choice());
        let may_lead =
            matches!(verdict, LeadVerdict::LeadNow | LeadVerdict::LeadWhenSilent).then_some(verdict);
        let is_known = std::mem::replace(&mut self.may_lead, may_lead).is_some();
        match verdict {
            LeadVerdict::LeadNow | LeadVerdict::LeadWhenSilent if is_known => {}
            LeadVerdict::LeadNow | LeadVerdict::LeadWhenSilent => tracing::error!(
                "the broker has lost records that this server's folder holds: unless the server that led before leads again, this one \
                 restores the stream from its folder"
            ),
            LeadVerdict::Follow if self.manifest.complete => self.replace_folder(follower, folder)?,
            LeadVerdict::Refuse(why) if is_final => return Ok(Some(ReadingEnd::Refused(why))),
            LeadVerdict::Follow | LeadVerdict::Wait | LeadVerdict::Refuse(_) => {}
        }
        Ok(None)
    }

    /// Replaces the folder with the staging folder: the stream contains everything that counts, and
    /// is read into the folder from here on.
    fn replace_folder(&mut self, follower: &mut Follower, folder: FolderState) -> io::Result<()> {
        self.note_position(self.position)?;
        replica::sync(&follower.member.stage())?;
        // The unacknowledged end of a leader's folder is kept for inspection; so is a folder that
        // the operator gives up.
        let keep = folder == FolderState::Led || follower.member.choice().is_some();
        if keep {
            let records = overlap::count_lacking(&follower.data, &follower.member.stage())?;
            let kept = follower.member.before();
            tracing::warn!(
                records, kept = %kept.display(),
                "this server follows: its folder is moved aside, with the records that the stream lacks"
            );
        }
        follower.member.replace_folder(keep)?;
        self.target = ReadTarget::Folder(Replica::new(&follower.data));
        self.file = Some(PositionFile::open(&follower.member.position_path())?);
        follower.state.set_phase(StandbyPhase::Following);
        follower.state.set_complete(self.manifest.complete);
        Ok(())
    }

    /// Requests the lead. The request succeeds if nothing was stored behind what was read.
    pub(super) async fn request_lead(
        &mut self,
        follower: &mut Follower,
        is_acknowledged_there: bool,
    ) -> io::Result<Option<ReadingEnd>> {
        self.not_before = Instant::now() + RETRY_PAUSE;
        let Ok(end) = follower.stream.end().await else { return Ok(None) };
        if !end.is_empty && end.seq > self.position {
            // The new messages are read first.
            return Ok(None);
        }
        if !self.ends_with(&end) {
            return Ok(Some(ReadingEnd::Restart(FORGOTTEN)));
        }
        match &self.target {
            ReadTarget::Stage(_) => {
                self.not_before = Instant::now() + follower.lease;
                let ended = self.compare(follower, is_acknowledged_there, true)?;
                if ended.is_some() || self.may_lead.is_none() {
                    return Ok(ended);
                }
            }
            ReadTarget::Own { .. } => {
                if self.is_passed(follower) {
                    return Ok(Some(ReadingEnd::Restart(PASSED)));
                }
                if !self.manifest.is_within(&follower.data)? {
                    return Ok(Some(ReadingEnd::Lacking));
                }
            }
            ReadTarget::Folder(_) => {}
        }
        self.send_lead(follower, end.seq).await
    }

    /// Returns whether the stream ends with the message that was read last.
    fn ends_with(&self, end: &StreamEnd) -> bool {
        if end.is_empty {
            return self.epoch.is_none();
        }
        let is_same = match (&end.last, self.hash) {
            (Some(last), Some(hash)) => last.hash == hash,
            // The message was read before this process started. A foreign message carries no
            // information.
            (Some(StreamMessage { content: Ok(verified), .. }), None) => {
                Some(verified.message.epoch) == self.epoch
            }
            (Some(_) | None, _) => true,
        };
        end.seq >= self.position && is_same
    }

    async fn send_lead(&mut self, follower: &Follower, last: u64) -> io::Result<Option<ReadingEnd>> {
        let member = &follower.member;
        let epoch = next_epoch(self.epoch, member.epoch());
        let message = ReplicationMessage { epoch, kind: ReplicationKind::Lead { node: member.node } };
        let at = Instant::now();
        let (bytes, seq) = (message.encode(), last + 1);
        let id = follower.stream.id(&message, &bytes, member.node, seq);
        let expected = ExpectedPosition { seq, id: id.clone(), after: None };
        let stored = match follower.stream.send(&message, bytes, expected).await {
            Ok(stored) => stored.await,
            Err(error) => Err(error),
        };
        match stored {
            // If the broker already knows the id it stores nothing.
            Ok(ack) if ack.duplicate || ack.sequence != seq => Ok(None),
            Ok(_) => Ok(Some(ReadingEnd::Won { epoch, seq, id, at })),
            Err(error) if error.kind() == PublishErrorKind::Other => {
                // The broker answered: it has no space. The space reserved for cancels is enough to
                // start with.
                if !std::mem::replace(&mut self.logged_full, true) {
                    tracing::error!(%error, "the broker cannot store the lead message of this server: the server tries again");
                }
                follower.stream.release_reserve().await;
                self.not_before = Instant::now() + FULL_PAUSE;
                Ok(None)
            }
            Err(error) => {
                // The next reading shows whether it was stored after all.
                tracing::debug!(%error, "the lead message could not be stored");
                Ok(None)
            }
        }
    }
}
