//! Arguments that become settings, for every command that uses settings.

use std::env;
use std::path::{Path, PathBuf};

use clap::Args;
use pitlane_config::{Setting, Sources};

/// Sources of the settings, for every command that uses settings.
#[derive(Clone, Debug, Args)]
pub struct SettingsArgs {
    /// A file of settings, or a preset: dev, bench, pinned, simulation, distributed; if repeated,
    /// the later wins
    #[arg(long, value_name = "FILE|PRESET")]
    pub config: Vec<String>,
    /// One setting; overrides files and environment
    #[arg(long, value_name = "KEY=VALUE", value_parser = Setting::parse)]
    pub set: Vec<Setting>,
}

impl SettingsArgs {
    pub fn sources(&self) -> Sources {
        let text = |(name, value): (_, _)| Some((os_text(name)?, os_text(value)?));
        Sources {
            files: self.config.clone(),
            environment: env::vars_os().filter_map(text).collect(),
            options: self.set.clone(),
        }
    }
}

/// Returns a text of the operating system if it is valid Unicode.
fn os_text(text: std::ffi::OsString) -> Option<String> {
    text.into_string().ok()
}

#[derive(Clone, Debug, Args)]
pub struct RefDataFolderArgs {
    /// Folder with exchanges.csv, families.csv, securities.csv, accounts.csv and strategies.csv:
    /// refdata.dir
    #[arg(long = "refdata", value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

impl RefDataFolderArgs {
    pub(super) fn setting(&self) -> Option<Setting> {
        self.dir.as_ref().map(|dir| shorthand("--refdata", "refdata.dir", &dir.display().to_string()))
    }
}

pub(super) fn data_setting(dir: &Path) -> Setting {
    shorthand("--data", "service.data_dir", &dir.display().to_string())
}

pub(super) fn shorthand(option: &'static str, key: &str, value: &str) -> Setting {
    Setting { option, key: key.to_string(), value: value.to_string() }
}
