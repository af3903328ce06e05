//! Parses comma-separated values as RFC 4180 defines them, and nothing looser.
//!
//! ```text
//! file   = [BOM] record *( EOL record ) [EOL]      EOL = LF or CRLF
//! record = cell *( "," cell )                      an empty line is no record
//! cell   = *TEXT without , " CR LF  /  <"> *( any character, " doubled ) <">
//! ```
//!
//! Not by the crate `csv` (1.4), which reports none of the faults below: it takes a stray quote as
//! text, joins what follows a closing quote, and reads to the end of the file after a quote that
//! is never closed. A wrong cell of reference data would become a wrong tick size or account.

/// Cells in one record. The widest table has 16; a file with more is none of these tables.
pub(super) const CELLS_MAX: usize = 64;

/// One record and the line it begins on, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CsvRecord {
    pub line: usize,
    pub cells: Vec<String>,
}

/// Reason why a record is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CsvError {
    /// A quote in a cell that does not begin with one.
    StrayQuote,
    /// Text between a closing quote and the next comma.
    AfterQuote,
    /// The file ends within quotes.
    Unclosed,
    TooManyCells,
    /// A carriage return that does not end a line.
    StrayReturn,
}

impl CsvError {
    pub(super) fn words(self) -> &'static str {
        match self {
            CsvError::StrayQuote => "a quote within a cell that does not begin with one",
            CsvError::AfterQuote => "text after a closing quote",
            CsvError::Unclosed => "a quote is opened and never closed",
            CsvError::TooManyCells => "too many cells",
            CsvError::StrayReturn => "a carriage return that ends no line",
        }
    }
}

/// Returns the records of a text, in order; a bad one is skipped up to the end of its line and
/// reported with the number of that line.
pub(super) fn records(text: &str) -> impl Iterator<Item = Result<CsvRecord, (usize, CsvError)>> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    std::iter::from_fn(move || {
        while let Some(after) = strip_line_end(rest) {
            rest = after;
            line += 1;
        }
        if rest.is_empty() {
            return None;
        }
        let start = line;
        let (record, after) = match record(rest) {
            Ok((cells, after)) => (Ok(CsvRecord { line: start, cells }), after),
            Err(error) => (Err((start, error)), skip_line(rest)),
        };
        line += rest[..rest.len() - after.len()].matches('\n').count();
        rest = after;
        Some(record)
    })
}

/// Returns the cells of the first record, and the text after its line end.
fn record(text: &str) -> Result<(Vec<String>, &str), CsvError> {
    let mut cells = Vec::new();
    let mut rest = text;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_cell(quoted)?,
            None => plain_cell(rest)?,
        };
        if cells.len() == CELLS_MAX {
            return Err(CsvError::TooManyCells);
        }
        cells.push(cell);
        if let Some(after) = after.strip_prefix(',') {
            rest = after;
        } else if let Some(after) = strip_line_end(after) {
            return Ok((cells, after));
        } else if after.is_empty() {
            return Ok((cells, after));
        } else if after.starts_with('\r') {
            return Err(CsvError::StrayReturn);
        } else {
            return Err(CsvError::AfterQuote);
        }
    }
}

fn plain_cell(text: &str) -> Result<(String, &str), CsvError> {
    let end = text.find([',', '"', '\r', '\n']).unwrap_or(text.len());
    if text[end..].starts_with('"') {
        return Err(CsvError::StrayQuote);
    }
    Ok((text[..end].to_string(), &text[end..]))
}

/// Parses a cell after its opening quote.
fn quoted_cell(text: &str) -> Result<(String, &str), CsvError> {
    let mut cell = String::new();
    let mut rest = text;
    loop {
        let at = rest.find('"').ok_or(CsvError::Unclosed)?;
        cell.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('"') {
            Some(after) => rest = after,
            None => return Ok((cell, rest)),
        }
        cell.push('"');
    }
}

fn strip_line_end(text: &str) -> Option<&str> {
    text.strip_prefix('\n').or_else(|| text.strip_prefix("\r\n"))
}

fn skip_line(text: &str) -> &str {
    text.find('\n').map_or("", |at| &text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a text and writes the result: records as `line:cell|cell`, errors as `line!error`.
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = records(text)
            .map(|record| match record {
                Ok(record) => format!("{}:{}", record.line, record.cells.join("|")),
                Err((line, error)) => format!("{line}!{error:?}"),
            })
            .collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn lines_become_records() {
        check("", &[]);
        check("a,b\n1,2\n", &["1:a|b", "2:1|2"]);
        check("a,b\n1,2", &["1:a|b", "2:1|2"]);
        check("a,,\n,", &["1:a||", "2:|"]);
        check(" a , b ", &["1: a | b "]);
    }

    #[test]
    fn marks_returns_and_empty_lines_are_taken() {
        check("\u{feff}a,b\r\n1,2\r\n", &["1:a|b", "2:1|2"]);
        check("\n\na\n\r\nb\n\n", &["3:a", "5:b"]);
    }

    #[test]
    fn quotes_hold_anything() {
        check("\"a,b\",c", &["1:a,b|c"]);
        check("\"say \"\"hi\"\"\",\"\"", &["1:say \"hi\"|"]);
        check("\"two\nlines\",x\ny,z", &["1:two\nlines|x", "3:y|z"]);
    }

    #[test]
    fn a_bad_record_is_reported_and_the_next_is_read() {
        check("a\"b,c\nd", &["1!StrayQuote", "2:d"]);
        check("\"a\"b,c\nd", &["1!AfterQuote", "2:d"]);
        check("a\nx,\"open\nb", &["1:a", "2!Unclosed", "3:b"]);
        check("a\rb\nc", &["1!StrayReturn", "2:c"]);
        let wide = ",".repeat(CELLS_MAX);
        check(&format!("{wide}\nd"), &["1!TooManyCells", "2:d"]);
    }
}
