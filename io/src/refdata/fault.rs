//! What is wrong with the files, told so that an editor can jump there: `file:line: column: problem`.

use std::fmt;

/// Faults told in one go. Whoever has more than a hundred has one mistake a hundred times.
pub const FAULTS_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// As the reader was given it.
    pub file: String,
    /// From 1; 0 if it is about the file as a whole.
    pub line: usize,
    /// Empty if it is about the whole line.
    pub column: String,
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.column.is_empty() {
            write!(f, ": {}", self.column)?;
        }
        write!(f, ": {}", self.problem)
    }
}

/// All faults that were found, up to [`FAULTS_MAX`]; of the others only the number is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    told: Vec<Fault>,
    untold: usize,
}

impl Faults {
    pub fn add(&mut self, file: &str, line: usize, column: &str, problem: String) {
        if self.told.len() == FAULTS_MAX {
            self.untold += 1;
            return;
        }
        self.told.push(Fault { file: file.to_string(), line, column: column.to_string(), problem });
    }

    pub fn told(&self) -> &[Fault] {
        &self.told
    }

    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.told.iter().enumerate() {
            let line_end = if at == 0 { "" } else { "\n" };
            write!(f, "{line_end}{fault}")?;
        }
        if self.untold > 0 {
            write!(f, "\nand {} more", self.untold)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// ` (did you mean …?)` with the word nearest to `wrong`, or nothing if none is near.
pub fn suggestion(wrong: &str, words: &[&str]) -> String {
    let near = |word: &&&str| distance(&wrong.to_ascii_lowercase(), &word.to_ascii_lowercase());
    match words.iter().min_by_key(near) {
        Some(word) if near(&word) <= word.len() / 3 + 1 => format!(" (did you mean {word}?)"),
        _ => String::new(),
    }
}

/// Letters to insert, remove or change to get from one word to the other. Of long words only the beginning is seen.
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
    fn a_fault_names_file_line_and_column_as_far_as_there_are() {
        let mut faults = Faults::default();
        faults.add("a.csv", 12, "tickSize", "it is odd".into());
        faults.add("a.csv", 12, "", "it is short".into());
        faults.add("a.csv", 0, "", "it is gone".into());
        assert_eq!(
            faults.to_string(),
            "a.csv:12: tickSize: it is odd\na.csv:12: it is short\na.csv: it is gone"
        );
    }

    #[test]
    fn faults_beyond_the_bound_are_counted() {
        let mut faults = Faults::default();
        for line in 1..=FAULTS_MAX + 7 {
            faults.add("a.csv", line, "", "odd".into());
        }
        assert_eq!(faults.told().len(), FAULTS_MAX);
        assert!(faults.to_string().ends_with("\nand 7 more"));
    }

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
