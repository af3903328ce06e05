//! Decides who leads: compares folder and staging folder, adopts the staging folder, or requests
//! the lead.

use std::io;
use std::time::Duration;

use async_nats::jetstream::context::PublishErrorKind;
use tokio::time::Instant;

use super::{Ended, FORGOTTEN, Into, LOOK, Reading};
use crate::standby::follower::{AGAIN, Follower};
use crate::standby::message::{ReplicationMessage, What};
use crate::standby::origin::Found;
use crate::standby::overlap;
use crate::standby::position::PositionFile;
use crate::standby::replica::{self, Replica};
use crate::standby::state::Stand;
use crate::standby::stream::{End, Leader, Place};
use crate::standby::verdict::{Folder, LastLeader, Overlap, Verdict, decide, next_epoch};

/// Pause between two requests for the lead while the broker has no space.
const FULL_PAUSE: Duration = Duration::from_millis(500);

impl Reading {
    /// Compares folder and staging folder when new messages arrived, at most once per second.
    pub(super) fn weigh_if_due(
        &mut self,
        follower: &mut Follower,
        is_told: bool,
    ) -> io::Result<Option<Ended>> {
        let is_new =
            self.weighed.is_none_or(|(position, at)| position != self.position && at.elapsed() >= LOOK);
        if !matches!(self.into, Into::Stage(_)) || !is_new {
            return Ok(None);
        }
        // A leader that restores the stream has not sent its whole folder yet.
        let is_final = self.leader.is_some_and(|leader| self.restored == Some(leader.epoch));
        self.weigh(follower, is_told, is_final)
    }

    fn weigh(&mut self, follower: &mut Follower, is_told: bool, is_final: bool) -> io::Result<Option<Ended>> {
        self.weighed = Some((self.position, Instant::now()));
        let member = &follower.member;
        let folder = member.folder();
        let last = match self.leader {
            None => LastLeader::Nobody,
            Some(leader) if leader.node == member.node => LastLeader::Us,
            Some(leader) if leader.epoch < member.led() => LastLeader::Superseded,
            Some(_) => LastLeader::Other,
        };
        let (data, stage) = (&follower.data, member.stage());
        let overlap = Overlap {
            folder_has_stream: overlap::is_held(&stage, data, &overlap::extents(&stage)?)?,
            stream_has_folder: self.manifest.complete
                && (is_told || overlap::is_held(data, &stage, &member.told()?)?),
        };
        let verdict = decide(folder, last, overlap, member.choice());
        let may_lead = matches!(verdict, Verdict::LeadNow | Verdict::LeadWhenSilent).then_some(verdict);
        let is_known = std::mem::replace(&mut self.may_lead, may_lead).is_some();
        match verdict {
            Verdict::LeadNow | Verdict::LeadWhenSilent if is_known => {}
            Verdict::LeadNow | Verdict::LeadWhenSilent => tracing::error!(
                "the broker has lost records that this server's folder holds: unless the server that led before leads again, this one \
                 restores the stream from its folder"
            ),
            Verdict::Follow if self.manifest.complete => self.adopt(follower, folder)?,
            Verdict::Refuse(why) if is_final => return Ok(Some(Ended::Refused(why))),
            Verdict::Follow | Verdict::Wait | Verdict::Refuse(_) => {}
        }
        Ok(None)
    }

    /// Adopts the staging folder: the stream contains everything that counts, and is read into the
    /// folder from here on.
    fn adopt(&mut self, follower: &mut Follower, folder: Folder) -> io::Result<()> {
        self.note_position(self.position)?;
        replica::sync(&follower.member.stage())?;
        // The unacknowledged end of a leader's folder is kept for inspection; so is a folder that
        // the operator gives up.
        let keep = folder == Folder::Led || follower.member.choice().is_some();
        follower.member.adopt(keep)?;
        self.into = Into::Folder(Replica::new(&follower.data));
        self.file = Some(PositionFile::open(&follower.member.position_path())?);
        follower.state.set_stand(Stand::Following);
        follower.state.set_complete(self.manifest.complete);
        Ok(())
    }

    /// Requests the lead. The request succeeds if nothing was stored behind what was read.
    pub(super) async fn ask(&mut self, follower: &mut Follower, is_told: bool) -> io::Result<Option<Ended>> {
        self.not_before = Instant::now() + AGAIN;
        let Ok(end) = follower.stream.end().await else { return Ok(None) };
        if !end.is_empty && end.seq > self.position {
            // The new messages are read first.
            return Ok(None);
        }
        if !self.ends_with(&end) {
            return Ok(Some(Ended::Again(FORGOTTEN)));
        }
        match &self.into {
            Into::Stage(_) => {
                self.not_before = Instant::now() + follower.lease;
                let ended = self.weigh(follower, is_told, true)?;
                if ended.is_some() || self.may_lead.is_none() {
                    return Ok(ended);
                }
            }
            Into::Own { at_once } => {
                let is_other = |leader: Leader| leader.node != follower.member.node || !at_once;
                if self.leader.is_some_and(is_other) {
                    return Ok(Some(Ended::Again("another server was quicker")));
                }
                if !self.manifest.is_within(&follower.data)? {
                    return Ok(Some(Ended::Lacking));
                }
            }
            Into::Folder(_) => {}
        }
        self.take_the_lead(follower, end.seq).await
    }

    /// Returns whether the stream ends with the message that was read last.
    fn ends_with(&self, end: &End) -> bool {
        if end.is_empty {
            return self.epoch.is_none();
        }
        let is_same = match (&end.last, self.mark) {
            (Some(last), Some(mark)) => last.mark == mark,
            // The message was read before this process started. A foreign message carries no
            // information.
            (Some(Found { message: Ok(sound), .. }), None) => Some(sound.parcel.epoch) == self.epoch,
            (Some(_) | None, _) => true,
        };
        end.seq >= self.position && is_same
    }

    async fn take_the_lead(&mut self, follower: &Follower, last: u64) -> io::Result<Option<Ended>> {
        let member = &follower.member;
        let epoch = next_epoch(self.epoch, member.epoch());
        let parcel = ReplicationMessage { epoch, what: What::Lead { node: member.node } };
        let at = Instant::now();
        let (bytes, seq) = (parcel.encode(), last + 1);
        let id = follower.stream.id(&parcel, &bytes, member.node, seq);
        let place = Place { seq, id: id.clone(), after: None };
        let kept = match follower.stream.send(&parcel, bytes, place).await {
            Ok(kept) => kept.await,
            Err(error) => Err(error),
        };
        match kept {
            // If the broker already knows the id it stores nothing.
            Ok(ack) if ack.duplicate || ack.sequence != seq => Ok(None),
            Ok(_) => Ok(Some(Ended::Won { epoch, seq, id, at })),
            Err(error) if error.kind() == PublishErrorKind::Other => {
                // The broker answered: it has no space. The space reserved for cancels is enough to
                // start with.
                if !std::mem::replace(&mut self.told_full, true) {
                    tracing::error!(%error, "the broker cannot store that this server leads: it is tried again");
                }
                follower.stream.release_reserve().await;
                self.not_before = Instant::now() + FULL_PAUSE;
                Ok(None)
            }
            Err(error) => {
                // The next reading shows whether it was stored after all.
                tracing::debug!(%error, "the lead could not be had");
                Ok(None)
            }
        }
    }
}
