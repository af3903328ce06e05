//! Decides who leads when a server's folder and the stream differ: a pure function, with a test for
//! every pair.
//!
//! Each of the two may have records that the other lacks. The stream loses records when its broker
//! comes back with older data or the stream is recreated; the folder lacks records that it has not
//! read yet.
//!
//! | the stream has the folder's records | the folder has the stream's records | result |
//! |---|---|---|
//! | yes | yes or no | the stream is authoritative: this server follows it |
//! | no  | yes | the folder is authoritative, and restores the stream |
//! | no  | no  | they have diverged: an operator decides |
//!
//! So no record that this folder may have acknowledged to a client is discarded without an
//! operator.

/// The state of a server's data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderState {
    /// The folder is empty.
    Empty,
    /// The journal never belonged to the group.
    Foreign,
    /// The journal of a leader. Only records that the broker acknowledged may have been
    /// acknowledged to clients.
    Led,
    /// A copy of the stream. All of its records may have been acknowledged to clients.
    Copy {
        /// Whether the copy was ever complete enough to lead with.
        complete: bool,
        /// Whether the copy is known to be as it was written: false after a loss of power.
        sound: bool,
    },
}

/// The last leader according to the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastLeader {
    /// The stream is empty.
    Absent,
    Us,
    Other,
    /// Another server, in an epoch before one that this server has led: the stream has lost that
    /// epoch. The other server was refused when this one took the lead, so it does not lead.
    Superseded,
}

/// Which of folder and stream contains the records of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overlap {
    /// Whether the folder contains every record of the stream.
    pub folder_has_stream: bool,
    /// Whether the stream is complete, and contains every record of the folder that may have been
    /// acknowledged to a client.
    pub stream_has_folder: bool,
}

/// The operator's decision, made once with `pitlane standby`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// This folder is authoritative.
    Lead,
    /// The stream is authoritative; the folder is moved to `standby/before`.
    Follow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeadVerdict {
    /// The folder is authoritative, and no other server is known to have led later. A server that
    /// starts also waits for one that the stream has forgotten, see `former_leases`.
    LeadNow,
    /// The folder is authoritative, unless another server shows within a lease that it leads.
    LeadWhenSilent,
    /// The stream is authoritative.
    Follow,
    /// Neither is sufficient to lead: another server has to start first.
    Wait,
    /// An operator has to decide.
    Refuse(LeadRefusal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeadRefusal {
    Foreign,
    Diverged,
    /// The copy is longer than the stream, and may have been damaged by a loss of power.
    Unsound,
}

/// Returns the verdict. If the stream has no leader, `overlap` has no meaning and is ignored.
pub(super) fn decide(
    folder: FolderState,
    last: LastLeader,
    overlap: Overlap,
    choice: Option<Choice>,
) -> LeadVerdict {
    let verdict = judge(folder, last, overlap);
    match (verdict, choice) {
        (LeadVerdict::Refuse(LeadRefusal::Foreign), _) => verdict,
        (LeadVerdict::Refuse(_), Some(Choice::Lead)) => LeadVerdict::LeadWhenSilent,
        // Without a stream there is nothing to follow.
        (LeadVerdict::Refuse(_) | LeadVerdict::LeadWhenSilent, Some(Choice::Follow))
            if last == LastLeader::Absent =>
        {
            LeadVerdict::Wait
        }
        (LeadVerdict::Refuse(_) | LeadVerdict::LeadWhenSilent, Some(Choice::Follow)) => LeadVerdict::Follow,
        _ => verdict,
    }
}

fn judge(folder: FolderState, last: LastLeader, overlap: Overlap) -> LeadVerdict {
    let Overlap { folder_has_stream, stream_has_folder } = overlap;
    match (folder, last) {
        (FolderState::Empty | FolderState::Foreign | FolderState::Led, LastLeader::Absent) => {
            LeadVerdict::LeadNow
        }
        (FolderState::Empty, _) => LeadVerdict::Follow,
        (FolderState::Foreign, _) => LeadVerdict::Refuse(LeadRefusal::Foreign),
        (FolderState::Copy { complete: false, .. }, LastLeader::Absent) => LeadVerdict::Wait,
        (FolderState::Copy { complete: false, .. }, _) => LeadVerdict::Follow,
        (FolderState::Copy { sound, .. }, LastLeader::Absent) => lead_if(sound),
        // No other server has led since: the own folder may continue even if the stream contains as
        // much.
        (FolderState::Led, LastLeader::Us) if folder_has_stream => LeadVerdict::LeadNow,
        (FolderState::Led, LastLeader::Superseded) if folder_has_stream && !stream_has_folder => {
            LeadVerdict::LeadNow
        }
        (FolderState::Led | FolderState::Copy { .. }, _) if stream_has_folder => LeadVerdict::Follow,
        (FolderState::Led, _) if folder_has_stream => LeadVerdict::LeadWhenSilent,
        (FolderState::Copy { sound, .. }, _) if folder_has_stream => lead_if(sound),
        (FolderState::Led | FolderState::Copy { .. }, _) => LeadVerdict::Refuse(LeadRefusal::Diverged),
    }
}

fn lead_if(sound: bool) -> LeadVerdict {
    if sound { LeadVerdict::LeadWhenSilent } else { LeadVerdict::Refuse(LeadRefusal::Unsound) }
}

/// Returns the epoch of the next leader: higher than every epoch that the stream or this server
/// knows. A stream that was rolled back has forgotten its last epochs, and if an epoch were used
/// twice, an old leader's messages could be taken for those of the new one.
pub(super) fn next_epoch(stream: Option<u64>, known: u64) -> u64 {
    stream.unwrap_or(0).max(known) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: [LastLeader; 4] =
        [LastLeader::Absent, LastLeader::Us, LastLeader::Other, LastLeader::Superseded];
    const FOLDERS: [FolderState; 7] = [
        FolderState::Empty,
        FolderState::Foreign,
        FolderState::Led,
        FolderState::Copy { complete: true, sound: true },
        FolderState::Copy { complete: true, sound: false },
        FolderState::Copy { complete: false, sound: true },
        FolderState::Copy { complete: false, sound: false },
    ];

    fn overlaps() -> impl Iterator<Item = Overlap> {
        [(true, true), (true, false), (false, true), (false, false)]
            .into_iter()
            .map(|(folder_has_stream, stream_has_folder)| Overlap { folder_has_stream, stream_has_folder })
    }

    /// Covers every pair: one line for each folder and last leader; the columns are the overlaps:
    /// same, folder longer, stream longer, diverged.
    #[test]
    fn every_pair_of_folder_and_stream_has_its_verdict() {
        use LeadVerdict::{Follow, LeadNow, LeadWhenSilent, Refuse, Wait};
        let (foreign, diverged, unsound) =
            (Refuse(LeadRefusal::Foreign), Refuse(LeadRefusal::Diverged), Refuse(LeadRefusal::Unsound));
        let table = [
            // The lines of a folder: no leader (then the overlap is ignored), this server, another,
            // a superseded one.
            [LeadNow; 4],
            [Follow; 4],
            [Follow; 4],
            [Follow; 4],
            // Foreign.
            [LeadNow; 4],
            [foreign; 4],
            [foreign; 4],
            [foreign; 4],
            // Led.
            [LeadNow; 4],
            [LeadNow, LeadNow, Follow, diverged],
            [Follow, LeadWhenSilent, Follow, diverged],
            [Follow, LeadNow, Follow, diverged],
            // A copy that is complete and sound.
            [LeadWhenSilent; 4],
            [Follow, LeadWhenSilent, Follow, diverged],
            [Follow, LeadWhenSilent, Follow, diverged],
            [Follow, LeadWhenSilent, Follow, diverged],
            // Complete, after a loss of power.
            [unsound; 4],
            [Follow, unsound, Follow, diverged],
            [Follow, unsound, Follow, diverged],
            [Follow, unsound, Follow, diverged],
            // Never complete: not sufficient to lead.
            [Wait; 4],
            [Follow; 4],
            [Follow; 4],
            [Follow; 4],
            [Wait; 4],
            [Follow; 4],
            [Follow; 4],
            [Follow; 4],
        ];
        let pairs = FOLDERS.into_iter().flat_map(|folder| LASTS.map(|last| (folder, last)));
        for ((folder, last), expected) in pairs.zip(table) {
            for (overlap, expected) in overlaps().zip(expected) {
                assert_eq!(decide(folder, last, overlap, None), expected, "{folder:?} {last:?} {overlap:?}");
            }
        }
    }

    /// For every pair: a folder with records that the stream lacks is never given up without an
    /// operator.
    #[test]
    fn a_longer_folder_never_follows_unless_an_operator_says_so() {
        for folder in FOLDERS {
            let may_be_needed = matches!(folder, FolderState::Led | FolderState::Copy { complete: true, .. });
            for last in LASTS {
                for overlap in overlaps().filter(|overlap| may_be_needed && !overlap.stream_has_folder) {
                    let verdict = decide(folder, last, overlap, None);
                    assert_ne!(verdict, LeadVerdict::Follow, "{folder:?} {last:?} {overlap:?}");
                }
            }
        }
    }

    /// A server that led with less than the stream contains would lose the difference.
    #[test]
    fn a_shorter_folder_never_leads_unless_an_operator_says_so() {
        for folder in FOLDERS {
            for last in [LastLeader::Us, LastLeader::Other, LastLeader::Superseded] {
                for overlap in overlaps().filter(|overlap| !overlap.folder_has_stream) {
                    let verdict = decide(folder, last, overlap, None);
                    assert!(
                        !matches!(verdict, LeadVerdict::LeadNow | LeadVerdict::LeadWhenSilent),
                        "{folder:?} {last:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_operator_decides_what_was_refused_and_nothing_else() {
        for folder in FOLDERS {
            for last in LASTS {
                for overlap in overlaps() {
                    let verdict = decide(folder, last, overlap, None);
                    let lead = decide(folder, last, overlap, Some(Choice::Lead));
                    let follow = decide(folder, last, overlap, Some(Choice::Follow));
                    match verdict {
                        LeadVerdict::Refuse(LeadRefusal::Foreign) => {
                            assert_eq!((lead, follow), (verdict, verdict))
                        }
                        LeadVerdict::Refuse(_) | LeadVerdict::LeadWhenSilent => {
                            assert_eq!(lead, LeadVerdict::LeadWhenSilent);
                            let none = last == LastLeader::Absent;
                            assert_eq!(follow, if none { LeadVerdict::Wait } else { LeadVerdict::Follow });
                        }
                        LeadVerdict::LeadNow | LeadVerdict::Follow | LeadVerdict::Wait => {
                            assert_eq!((lead, follow), (verdict, verdict))
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn an_epoch_is_beyond_all_that_is_known_even_when_the_stream_has_forgotten_some() {
        for (stream, known, next) in [(None, 0, 1), (Some(4), 0, 5), (Some(4), 6, 7), (None, 6, 7)] {
            assert_eq!(next_epoch(stream, known), next);
        }
    }
}
