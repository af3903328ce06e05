//! FIX dialogues in files: how they are found and read line by line, and how their bytes are cut.

use std::path::Path;

use crate::dice::Dice;

/// How the other side's bytes are cut.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    Whole,
    EachByte,
    Seed(u64),
}

impl Cut {
    /// Returns the random numbers of a seed.
    pub fn dice(self) -> Dice {
        Dice::new(match self {
            Cut::Seed(seed) => seed,
            Cut::Whole | Cut::EachByte => 0,
        })
    }

    /// Passes bytes on piece by piece.
    pub fn pieces(self, dice: &mut Dice, bytes: &[u8], mut hand: impl FnMut(&[u8])) {
        let mut at = 0;
        while at < bytes.len() {
            let left = bytes.len() - at;
            let count = match self {
                Cut::Whole => left,
                Cut::EachByte => 1,
                Cut::Seed(_) => left.min(1 + dice.index(40)),
            };
            hand(&bytes[at..at + count]);
            at += count;
        }
    }
}

/// The ways in which messages are cut. A dialogue that fails with [`Cut::Whole`] too does not fail
/// because of them.
pub const CUTS: [Cut; 3] = [Cut::EachByte, Cut::Seed(1), Cut::Seed(2)];

/// Plays every dialogue of a folder, cut in each of these ways; there are at least `least`.
/// `DIALOGUE` in the environment selects by name.
pub fn play_all(folder: &Path, least: usize, cuts: &[Cut], play: impl Fn(&str, Cut) -> Result<(), String>) {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the dialogues are part of the repository")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    paths.sort();
    assert!(paths.len() >= least, "only {} dialogues", paths.len());
    let only = std::env::var("DIALOGUE").ok();
    let mut failures = Vec::new();
    for path in paths {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a readable file");
        assert!(text.starts_with("# "), "{name} does not begin with its rule");
        for cut in cuts {
            if let Err(problem) = play(&text, *cut) {
                failures.push(format!("{name} ({cut:?}): {problem}"));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{} dialogues went otherwise\n{}", failures.len(), failures.join("\n"));
}

/// Returns the settings that a dialogue begins with, key and value.
pub fn settings(text: &str) -> impl Iterator<Item = Result<(&str, &str), String>> {
    let fields = text.lines().filter_map(|line| line.strip_prefix("set ")).flat_map(|line| line.split(' '));
    fields.map(|keyword| keyword.split_once('=').ok_or_else(|| "a setting has a value".to_string()))
}

/// Performs the lines that are neither comment nor setting, in order.
pub fn perform_each(text: &str, mut perform: impl FnMut(&str) -> Result<(), String>) -> Result<(), String> {
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') || line.starts_with("set ") {
            continue;
        }
        perform(line).map_err(|problem| format!("line {}: `{line}`: {problem}", at + 1))?;
    }
    Ok(())
}
