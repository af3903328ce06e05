//! Arguments of the commands that check or show settings and this machine, and print help.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;
use pitlane_config::Sources;

use super::settings::{RefDataFolderArgs, SettingsArgs, data_setting};

#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    #[command(flatten)]
    pub refdata: RefDataFolderArgs,
}

impl CheckArgs {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.refdata.setting());
        sources
    }
}

#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every effective setting and its source
    #[command(after_help = "Examples:
  pitlane config show --config pinned
  pitlane config show --changed")]
    Show(ShowArgs),
}

#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Only settings that differ from the built-in ones
    #[arg(long)]
    pub changed: bool,
}

#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl DoctorArgs {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.data.as_ref().map(|dir| data_setting(dir)));
        sources
    }
}

#[derive(Clone, Debug, Args)]
pub struct TuneArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Make the changes
    #[arg(long, conflicts_with = "undo")]
    pub apply: bool,
    /// Undo the changes that were made
    #[arg(long)]
    pub undo: bool,
    /// File that keeps the texts before the changes
    #[arg(long, value_name = "FILE", default_value = "/var/lib/pitlane-tune.json")]
    pub record: PathBuf,
}

#[derive(Clone, Debug, Args)]
pub struct HealthArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Repeat the request until the service is ready, for at most this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub wait: u32,
}

#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    pub shell: Shell,
}

#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
