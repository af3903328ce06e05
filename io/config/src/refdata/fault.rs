//! Faults of reference data files, in a form that editors can jump to:
//! `file:line: column: problem`.

use std::fmt;

use crate::diagnostics;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefDataFault {
    /// Name as the reader received it.
    pub file: String,
    /// Counted from 1; 0 if the fault concerns the whole file.
    pub line: usize,
    /// Empty if the fault concerns the whole line.
    pub column: String,
    pub problem: String,
}

impl fmt::Display for RefDataFault {
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

pub type RefDataFaults = diagnostics::Faults<RefDataFault>;

impl RefDataFaults {
    pub fn add(&mut self, file: &str, line: usize, column: &str, problem: String) {
        self.push(RefDataFault { file: file.to_string(), line, column: column.to_string(), problem });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::FAULTS_MAX;

    #[test]
    fn a_fault_names_file_line_and_column_as_far_as_there_are() {
        let mut faults = RefDataFaults::default();
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
        let mut faults = RefDataFaults::default();
        for line in 1..=FAULTS_MAX + 7 {
            faults.add("a.csv", line, "", "odd".into());
        }
        assert_eq!(faults.reported().len(), FAULTS_MAX);
        assert!(faults.to_string().ends_with("\nand 7 more"));
    }
}
