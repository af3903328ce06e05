//! Reads tables of numbers from text while the program is compiled.

use super::TagRun;

/// The words of a text, line by line.
pub(in crate::fix) struct Table<const WORDS: usize, const LINES: usize> {
    pub(in crate::fix) words: [TagRun; WORDS],
    /// Index of the first word of each line.
    pub(in crate::fix) starts: [usize; LINES],
    /// Offset of each line in the text.
    pub(super) offsets: [usize; LINES],
    len: usize,
}

/// The word `:`.
pub(super) const COLON: TagRun = TagRun { first: 0, last: 0 };

impl<const WORDS: usize, const LINES: usize> Table<WORDS, LINES> {
    /// Returns the words of a line.
    pub(super) fn line(&self, at: usize) -> Option<&[TagRun]> {
        let end = self.starts.get(at + 1).copied().unwrap_or(self.len);
        self.words.get(*self.starts.get(at)?..end)
    }
}

/// Returns how many words a text has.
pub(super) const fn word_count(text: &[u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < text.len() {
        let is_space = text[at] == b' ' || text[at] == b'\n';
        let ends_word = at + 1 == text.len() || text[at + 1] == b' ' || text[at + 1] == b'\n';
        if !is_space && ends_word {
            count += 1;
        }
        at += 1;
    }
    count
}

/// Returns how many lines a text has, without those that continue another.
pub(super) const fn line_count(text: &[u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < text.len() {
        count += 1;
        at = next_line(text, at);
    }
    count
}

/// Returns the offset of the next line that continues no other.
pub(super) const fn next_line(text: &[u8], mut at: usize) -> usize {
    while at < text.len() {
        at += 1;
        if text[at - 1] == b'\n' && (at == text.len() || text[at] != b' ') {
            break;
        }
    }
    at
}

/// Returns the number at an offset, and the offset of its end.
pub(super) const fn number(text: &[u8], mut at: usize) -> (u32, usize) {
    let mut number = 0;
    while at < text.len() && text[at].is_ascii_digit() {
        number = number * 10 + (text[at] - b'0') as u32;
        at += 1;
    }
    (number, at)
}

/// Reads the words of a text whose lines begin with this many names.
pub(super) const fn table<const WORDS: usize, const LINES: usize>(
    text: &[u8],
    names: usize,
) -> Table<WORDS, LINES> {
    let (mut words, mut starts, mut offsets) = ([COLON; WORDS], [0; LINES], [0; LINES]);
    let (mut len, mut line, mut at) = (0, 0, 0);
    while line < LINES {
        (starts[line], offsets[line]) = (len, at);
        let end = next_line(text, at);
        let mut name = 0;
        while name < names {
            while text[at] != b' ' {
                at += 1;
            }
            name += 1;
        }
        while at < end {
            if text[at] == b' ' || text[at] == b'\n' {
                at += 1;
                continue;
            }
            let (word, after) = word(text, at);
            words[len] = word;
            len += 1;
            at = after;
        }
        line += 1;
    }
    Table { words, starts, offsets, len }
}

/// Returns the number, the range or the colon at an offset, and the offset of its end.
const fn word(text: &[u8], at: usize) -> (TagRun, usize) {
    if text[at] == b':' {
        return (COLON, at + 1);
    }
    let (first, end) = number(text, at);
    assert!(end > at, "a table has numbers");
    if end + 1 < text.len() && text[end] == b'.' && text[end + 1] == b'.' {
        let (last, end) = number(text, end + 2);
        return (TagRun { first, last }, end);
    }
    (TagRun { first, last: first }, end)
}
