//! Faults of files that people write: a bounded number of them, all at once, with a suggestion for
//! misspelt words.

use std::fmt;

/// Faults reported at once. More than a hundred faults are usually one mistake a hundred times.
pub const FAULTS_MAX: usize = 100;

/// All faults that were found, up to [`FAULTS_MAX`]; of the others only their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults<F> {
    reported: Vec<F>,
    omitted: usize,
}

impl<F> Faults<F> {
    pub fn push(&mut self, fault: F) {
        if self.reported.len() == FAULTS_MAX {
            self.omitted += 1;
        } else {
            self.reported.push(fault);
        }
    }

    pub fn reported(&self) -> &[F] {
        &self.reported
    }

    pub fn is_empty(&self) -> bool {
        self.reported.is_empty()
    }
}

impl<F> Default for Faults<F> {
    fn default() -> Faults<F> {
        Faults { reported: Vec::new(), omitted: 0 }
    }
}

impl<F: fmt::Display> fmt::Display for Faults<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.reported.iter().enumerate() {
            let line_end = if at == 0 { "" } else { "\n" };
            write!(f, "{line_end}{fault}")?;
        }
        if self.omitted > 0 {
            write!(f, "\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}

impl<F: fmt::Debug + fmt::Display> std::error::Error for Faults<F> {}

/// Returns ` (did you mean …?)` with the word nearest to `wrong`, or nothing if no word is near.
pub fn suggestion(wrong: &str, words: &[&str]) -> String {
    let near = |word: &&&str| distance(&wrong.to_ascii_lowercase(), &word.to_ascii_lowercase());
    match words.iter().min_by_key(near) {
        Some(word) if near(&word) <= word.len() / 3 + 1 => format!(" (did you mean {word}?)"),
        _ => String::new(),
    }
}

/// Returns the number of letters to insert, remove or change to get from one word to the other.
/// Only the beginning of long words counts.
fn distance(from: &str, to: &str) -> usize {
    const LETTERS_MAX: usize = 32;
    let to: Vec<char> = to.chars().take(LETTERS_MAX).collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().take(LETTERS_MAX).enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, &other) in to.iter().enumerate() {
            let replaced = corner + usize::from(letter != other);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_if_it_is_near() {
        let words = ["tickSize", "lotSize", "id"];
        assert_eq!(suggestion("ticksize", &words), " (did you mean tickSize?)");
        assert_eq!(suggestion("lotSzie", &words), " (did you mean lotSize?)");
        assert_eq!(suggestion("commission", &words), "");
        assert_eq!(suggestion("anything", &[]), "");
        assert_eq!((distance("", "abc"), distance("abc", ""), distance("kitten", "sitting")), (3, 3, 3));
    }
}
