//! Reads one file into rows of cells: matches the header with the known columns and converts each
//! cell to a value or a fault.

use pitlane_engine::id::Currency;
use pitlane_engine::text::{self, DECIMALS, TextError};

use super::csv::{self, CsvRecord};
use super::fault::RefDataFaults;
use crate::diagnostics::suggestion;

/// Bytes in one file: a million securities of some sixty bytes.
pub const FILE_BYTES_MAX: u64 = 64 << 20;
/// Records in one file: the highest number of securities, and the header.
pub const RECORDS_MAX: usize = (1 << 20) + 1;
/// Bytes in one text: longer ones fit no message and no screen.
pub const TEXT_BYTES_MAX: usize = 256;

/// A file as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSource {
    /// Name of the file in faults.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Rows of one table, each with its line.
#[derive(Debug)]
pub(super) struct TableRows<T> {
    pub rows: Vec<T>,
    pub lines: Vec<usize>,
}

/// Reads a file with exactly these columns, in any order; it may omit the optional ones, whose
/// cells are then empty. A row with a fault is created with defaults in the bad cells; if there is
/// a fault, no code uses the rows.
pub(super) fn read<T>(
    source: &TableSource,
    columns: &[&'static str],
    optional: &[&str],
    make: impl Fn(&mut RowCells<'_>) -> T,
    faults: &mut RefDataFaults,
) -> TableRows<T> {
    let mut table = TableRows { rows: Vec::new(), lines: Vec::new() };
    let text = match std::str::from_utf8(&source.bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = 1 + source.bytes[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
            faults.add(&source.name, line, "", "it is not UTF-8".into());
            return table;
        }
    };
    let mut header: Option<Vec<Option<usize>>> = None;
    for (at, record) in csv::records(text).enumerate() {
        let record = match record {
            _ if at == RECORDS_MAX => {
                faults.add(&source.name, 0, "", format!("it has more than {RECORDS_MAX} lines"));
                break;
            }
            Ok(record) => record,
            Err((line, error)) => {
                faults.add(&source.name, line, "", error.words().into());
                if header.is_none() {
                    return table;
                }
                continue;
            }
        };
        match &header {
            None => match places(&source.name, &record, columns, optional, faults) {
                Some(places) => header = Some(places),
                None => return table,
            },
            Some(places) if record.cells.len() != places.iter().flatten().count() => {
                let count = places.iter().flatten().count();
                let problem = format!("{} cells where the header has {count}", record.cells.len());
                faults.add(&source.name, record.line, "", problem);
            }
            Some(places) => {
                let file = &source.name;
                table.lines.push(record.line);
                table.rows.push(make(&mut RowCells { file, record: &record, columns, places, faults }));
            }
        }
    }
    if header.is_none() {
        faults.add(&source.name, 0, "", "it has no header line".into());
    }
    table
}

/// Returns the position of each known column in the records; None if the header does not have each
/// of them once, except for optional ones, and no other.
fn places(
    file: &str,
    header: &CsvRecord,
    columns: &[&'static str],
    optional: &[&str],
    faults: &mut RefDataFaults,
) -> Option<Vec<Option<usize>>> {
    let mut sound = true;
    let mut fault = |column: &str, problem: String| {
        faults.add(file, header.line, column, problem);
        sound = false;
    };
    for (at, name) in header.cells.iter().enumerate() {
        if !columns.contains(&name.as_str()) {
            fault(&shown(name), format!("there is no such column{}", suggestion(name, columns)));
        } else if header.cells[..at].contains(name) {
            fault(name, "the column stands there twice".into());
        }
    }
    let mut places = Vec::new();
    for column in columns {
        match header.cells.iter().position(|name| name == column) {
            Some(at) => places.push(Some(at)),
            None if optional.contains(column) => places.push(None),
            None => fault(column, "the column is missing".into()),
        }
    }
    sound.then_some(places)
}

/// The cells of one record by column name. Each method returns the value, or reports a fault and
/// returns the default.
pub(super) struct RowCells<'a> {
    file: &'a str,
    record: &'a CsvRecord,
    columns: &'a [&'static str],
    places: &'a [Option<usize>],
    faults: &'a mut RefDataFaults,
}

impl<'a> RowCells<'a> {
    pub(super) fn fault(&mut self, column: &str, problem: String) {
        self.faults.add(self.file, self.record.line, column, problem);
    }

    /// Returns the raw text of a column.
    pub(super) fn raw(&self, column: &str) -> &'a str {
        let at = self
            .columns
            .iter()
            .position(|name| *name == column)
            .expect("a row asks for columns of its table");
        self.places[at].map_or("", |place| &self.record.cells[place])
    }

    /// Reads a text for people: no control characters, no surrounding blanks, possibly empty.
    pub(super) fn text(&mut self, column: &str) -> String {
        let text = self.raw(column);
        let problem = if text.len() > TEXT_BYTES_MAX {
            format!("it is longer than {TEXT_BYTES_MAX} bytes")
        } else if text.chars().any(char::is_control) {
            format!("{} has a control character in it", shown(text))
        } else if text.trim() != text {
            format!("{} has blanks around it", shown(text))
        } else {
            return text.to_string();
        };
        self.fault(column, problem);
        String::new()
    }

    /// Reads a text that must not be empty.
    pub(super) fn name(&mut self, column: &str) -> String {
        let text = self.text(column);
        if self.raw(column).is_empty() {
            self.fault(column, "it is empty".into());
        }
        text
    }

    /// Reads a text that `admits` accepts.
    pub(super) fn text_like(&mut self, column: &str, what: &str, admits: impl Fn(&str) -> bool) -> String {
        let text = self.raw(column);
        if admits(text) {
            return text.to_string();
        }
        self.fault(column, format!("{} is not {what}", shown(text)));
        String::new()
    }

    /// Reads a number up to `max`.
    pub(super) fn number<T: TryFrom<u64> + Default>(&mut self, column: &str, max: T) -> T
    where
        u64: From<T>,
    {
        let max = u64::from(max);
        let value = self.value(column, "a whole number", |bytes| match text::parse_u64(bytes) {
            Ok(value) if value > max => Err(TextError::Range),
            other => other,
        });
        T::try_from(value).unwrap_or_default()
    }

    /// Reads a value with its parser; `what` names it, with its article.
    pub(super) fn value<T: Default>(
        &mut self,
        column: &str,
        what: &str,
        parse: impl Fn(&[u8]) -> Result<T, TextError>,
    ) -> T {
        let text = self.raw(column);
        let error = match parse(text.as_bytes()) {
            Ok(value) => return value,
            Err(error) => error,
        };
        let problem = match error {
            TextError::Empty => format!("it is empty where {what} is wanted"),
            TextError::Character | TextError::TooLong => format!("{} is not {what}", shown(text)),
            TextError::TooManyDecimals => format!("{} has more than {DECIMALS} decimals", shown(text)),
            TextError::Range => format!("{} is out of range for {what}", shown(text)),
        };
        self.fault(column, problem);
        T::default()
    }

    /// Reads a value that may be absent.
    pub(super) fn optional<T>(&mut self, column: &str, read: impl Fn(&mut Self, &str) -> T) -> Option<T> {
        if self.raw(column).is_empty() { None } else { Some(read(self, column)) }
    }

    pub(super) fn currency(&mut self, column: &str) -> Currency {
        self.value(column, "a currency of one to eight capitals or digits", Currency::parse)
    }

    pub(super) fn flag(&mut self, column: &str) -> bool {
        self.word(column, &["true", "false"], |word| Some(word == "true")).unwrap_or_default()
    }

    /// Reads one of a list of words.
    pub(super) fn word<T>(
        &mut self,
        column: &str,
        words: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.raw(column);
        if words.contains(&text) {
            return parse(text);
        }
        self.fault_word(column, text, words);
        None
    }

    /// Reads some of a list of words, separated by spaces, each at most once.
    pub(super) fn words<T>(
        &mut self,
        column: &str,
        words: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        let texts: Vec<&str> = self.raw(column).split(' ').filter(|text| !text.is_empty()).collect();
        for (at, text) in texts.iter().enumerate() {
            match parse(text) {
                None => self.fault_word(column, text, words),
                Some(_) if texts[..at].contains(text) => {
                    self.fault(column, format!("{text} is named twice"));
                }
                Some(value) => found.push(value),
            }
        }
        found
    }

    fn fault_word(&mut self, column: &str, text: &str, words: &[&str]) {
        let listed = words.join(", ");
        self.fault(column, format!("{} is not one of {listed}{}", shown(text), suggestion(text, words)));
    }
}

/// Returns a text of a file in a form that can be shown: quoted, escaped, and not too long.
fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    let mut short: String = text.chars().take(CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}
