//! Decides who leads when a server's folder and the stream differ: a pure function, with a test for every pair.
//!
//! Each of the two may hold records that the other lacks. The stream loses records when its broker comes back with older data or is
//! made anew; the folder lacks what it has not read yet.
//!
//! | the stream holds the folder's records | the folder holds the stream's records | what follows |
//! |---|---|---|
//! | yes | yes or no | the stream leads: this server follows it |
//! | no  | yes | the folder leads, and restores the stream |
//! | no  | no  | they have diverged: an operator decides |
//!
//! So nothing that this folder may have told a client is given up without an operator.

/// What a server's data folder is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folder {
    /// Nothing is in it.
    Empty,
    /// A journal that never belonged to the group.
    Foreign,
    /// The journal of a leader. Only what the broker had acknowledged may have been told to clients.
    Led,
    /// A copy of the stream. All of it may have been told to clients.
    Copy {
        /// Whether it was ever enough to lead with.
        complete: bool,
        /// Whether it is known to be as it was written: false after a loss of power.
        sound: bool,
    },
}

/// Who led last, as the stream has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastLeader {
    /// The stream is empty.
    Nobody,
    Us,
    Other,
    /// Another server, in an epoch before one that this server has led: the stream has lost that. The other was refused when this one took
    /// the lead, so it does not lead.
    Superseded,
}

/// Which of folder and stream holds the records of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The folder holds every record of the stream.
    pub folder_has_stream: bool,
    /// The stream is complete, and holds every record of the folder that may have been told to a client.
    pub stream_has_folder: bool,
}

/// What an operator has decided, once, with `pitlane standby`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// This folder counts.
    Lead,
    /// The stream counts; the folder is put aside.
    Follow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The folder counts, and no other server can be leading.
    LeadNow,
    /// The folder counts, unless another server shows within a lease that it leads.
    LeadWhenSilent,
    /// The stream counts.
    Follow,
    /// Neither can be led with: another server has to start first.
    Wait,
    /// An operator has to decide.
    Refuse(Refusal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Foreign,
    Diverged,
    /// The copy is longer than the stream, and may have been damaged by a loss of power.
    Unsound,
}

/// Decides. Without a leader in the stream `overlap` says nothing, and is not looked at.
pub fn decide(folder: Folder, last: LastLeader, overlap: Overlap, choice: Option<Choice>) -> Verdict {
    let verdict = judge(folder, last, overlap);
    match (verdict, choice) {
        (Verdict::Refuse(Refusal::Foreign), _) => verdict,
        (Verdict::Refuse(_), Some(Choice::Lead)) => Verdict::LeadWhenSilent,
        // Without a stream there is nothing to follow.
        (Verdict::Refuse(_) | Verdict::LeadWhenSilent, Some(Choice::Follow))
            if last == LastLeader::Nobody =>
        {
            Verdict::Wait
        }
        (Verdict::Refuse(_) | Verdict::LeadWhenSilent, Some(Choice::Follow)) => Verdict::Follow,
        _ => verdict,
    }
}

fn judge(folder: Folder, last: LastLeader, overlap: Overlap) -> Verdict {
    let Overlap { folder_has_stream, stream_has_folder } = overlap;
    match (folder, last) {
        (Folder::Empty | Folder::Foreign | Folder::Led, LastLeader::Nobody) => Verdict::LeadNow,
        (Folder::Empty, _) => Verdict::Follow,
        (Folder::Foreign, _) => Verdict::Refuse(Refusal::Foreign),
        (Folder::Copy { complete: false, .. }, LastLeader::Nobody) => Verdict::Wait,
        (Folder::Copy { complete: false, .. }, _) => Verdict::Follow,
        (Folder::Copy { sound, .. }, LastLeader::Nobody) => lead_if(sound),
        // No other server has led since: its own folder may go on even where the stream holds as much.
        (Folder::Led, LastLeader::Us) if folder_has_stream => Verdict::LeadNow,
        (Folder::Led, LastLeader::Superseded) if folder_has_stream && !stream_has_folder => Verdict::LeadNow,
        (Folder::Led | Folder::Copy { .. }, _) if stream_has_folder => Verdict::Follow,
        (Folder::Led, _) if folder_has_stream => Verdict::LeadWhenSilent,
        (Folder::Copy { sound, .. }, _) if folder_has_stream => lead_if(sound),
        (Folder::Led | Folder::Copy { .. }, _) => Verdict::Refuse(Refusal::Diverged),
    }
}

fn lead_if(sound: bool) -> Verdict {
    if sound { Verdict::LeadWhenSilent } else { Verdict::Refuse(Refusal::Unsound) }
}

/// The epoch of the next leader: beyond all that the stream and this server know of. A stream that was rolled back has forgotten its
/// last epochs, and one that is given twice would let an old leader's messages pass for those of the new one.
pub fn next_epoch(stream: Option<u64>, known: u64) -> u64 {
    stream.unwrap_or(0).max(known) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: [LastLeader; 4] =
        [LastLeader::Nobody, LastLeader::Us, LastLeader::Other, LastLeader::Superseded];
    const FOLDERS: [Folder; 7] = [
        Folder::Empty,
        Folder::Foreign,
        Folder::Led,
        Folder::Copy { complete: true, sound: true },
        Folder::Copy { complete: true, sound: false },
        Folder::Copy { complete: false, sound: true },
        Folder::Copy { complete: false, sound: false },
    ];

    fn overlaps() -> impl Iterator<Item = Overlap> {
        [(true, true), (true, false), (false, true), (false, false)]
            .into_iter()
            .map(|(folder_has_stream, stream_has_folder)| Overlap { folder_has_stream, stream_has_folder })
    }

    /// Every pair, one line for each folder and last leader; the columns are the overlaps: same, folder longer, stream longer, diverged.
    #[test]
    fn every_pair_of_folder_and_stream_has_its_verdict() {
        use Verdict::{Follow, LeadNow, LeadWhenSilent, Refuse, Wait};
        let (foreign, diverged, unsound) =
            (Refuse(Refusal::Foreign), Refuse(Refusal::Diverged), Refuse(Refusal::Unsound));
        let table = [
            // The lines of a folder: nobody led (then the overlap says nothing), this server, another, one that is superseded.
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
            // Never complete: nothing can be led with.
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

    /// Whatever the pair: a folder with records that the stream lacks is never given up without an operator.
    #[test]
    fn a_longer_folder_never_follows_unless_an_operator_says_so() {
        for folder in FOLDERS {
            let may_be_needed = matches!(folder, Folder::Led | Folder::Copy { complete: true, .. });
            for last in LASTS {
                for overlap in overlaps().filter(|overlap| may_be_needed && !overlap.stream_has_folder) {
                    let verdict = decide(folder, last, overlap, None);
                    assert_ne!(verdict, Verdict::Follow, "{folder:?} {last:?} {overlap:?}");
                }
            }
        }
    }

    /// A server that leads with less than the stream holds would lose what the stream holds.
    #[test]
    fn a_shorter_folder_never_leads_unless_an_operator_says_so() {
        for folder in FOLDERS {
            for last in [LastLeader::Us, LastLeader::Other, LastLeader::Superseded] {
                for overlap in overlaps().filter(|overlap| !overlap.folder_has_stream) {
                    let verdict = decide(folder, last, overlap, None);
                    assert!(
                        !matches!(verdict, Verdict::LeadNow | Verdict::LeadWhenSilent),
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
                        Verdict::Refuse(Refusal::Foreign) => assert_eq!((lead, follow), (verdict, verdict)),
                        Verdict::Refuse(_) | Verdict::LeadWhenSilent => {
                            assert_eq!(lead, Verdict::LeadWhenSilent);
                            let none = last == LastLeader::Nobody;
                            assert_eq!(follow, if none { Verdict::Wait } else { Verdict::Follow });
                        }
                        _ => assert_eq!((lead, follow), (verdict, verdict)),
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
