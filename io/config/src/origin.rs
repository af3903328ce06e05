//! Where a setting comes from.

use std::fmt;
use std::sync::Arc;

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingOrigin {
    /// Line and column from 1; both 0 if the fault concerns the whole file.
    File {
        name: Arc<str>,
        line: usize,
        column: usize,
    },
    Variable(Arc<str>),
    /// An option of the command line.
    Option(&'static str),
}

impl SettingOrigin {
    pub fn file(name: &str) -> SettingOrigin {
        SettingOrigin::File { name: name.into(), line: 0, column: 0 }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::File { name, line: 0, .. } => f.write_str(name),
            SettingOrigin::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            SettingOrigin::Variable(name) => f.write_str(name),
            SettingOrigin::Option(name) => f.write_str(name),
        }
    }
}
