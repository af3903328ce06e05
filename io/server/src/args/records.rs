//! Arguments of the commands on the data folder: journal, audit log, standby.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pitlane_config::Sources;

use super::settings::{SettingsArgs, data_setting};

/// Subcommands of `pitlane journal`.
#[derive(Clone, Debug, Subcommand)]
pub enum JournalCommand {
    /// Print one line for each record
    #[command(after_help = "Example:
  pitlane journal dump --data /var/lib/pitlane --shard 0 --from 1000 --limit 20")]
    Dump(JournalPartArgs),
    /// Check every checksum, link and snapshot, and that replay reproduces the stored digests
    #[command(after_help = "Example:
  pitlane journal verify --data /var/lib/pitlane")]
    Verify(JournalPartArgs),
    /// Rebuild the state as a start would, or up to a record, and print it
    #[command(after_help = "Example:
  pitlane journal replay --data /var/lib/pitlane --shard 0 --to 1000")]
    Replay(JournalPartArgs),
}

/// Part of a journal. No command changes the journal, and a service may be using it.
#[derive(Clone, Debug, Args)]
pub struct JournalPartArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Only this shard
    #[arg(long, value_name = "N")]
    pub shard: Option<u16>,
    /// First record
    #[arg(long, value_name = "SEQUENCE", default_value_t = 0)]
    pub from: u64,
    /// Last record [default: the last one in the journal]
    #[arg(long, value_name = "SEQUENCE")]
    pub to: Option<u64>,
    /// Highest number of lines [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

impl JournalPartArgs {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.data.as_ref().map(|dir| data_setting(dir)));
        sources
    }
}

/// Subcommands of `pitlane audit`.
#[derive(Clone, Debug, Subcommand)]
pub enum AuditCommand {
    /// Check that every line follows from the previous one, and that no line is missing; exits with
    /// 1 if not
    ///
    /// Anchors reveal missing lines: the file audit-anchor in the data folder, and the journal. The
    /// service may be running.
    #[command(after_help = "Example:
  pitlane audit verify --data /var/lib/pitlane")]
    Verify(AuditVerifyArgs),
    /// Print who sent each order, modification and cancel, as lines of JSON from the journal
    #[command(after_help = "Example:
  pitlane audit orders --data /var/lib/pitlane --login alice")]
    Orders(AuditOrdersArgs),
}

#[derive(Clone, Debug, Args)]
pub struct AuditVerifyArgs {
    #[command(flatten)]
    pub folder: DataFolderArgs,
    /// Number of the first line, if files with older lines were moved away
    #[arg(long, value_name = "LINE")]
    pub begins_with: Option<u64>,
}

/// Selection of orders. The command does not change the journal, and a service may be using it.
#[derive(Clone, Debug, Args)]
pub struct AuditOrdersArgs {
    #[command(flatten)]
    pub part: JournalPartArgs,
    /// Only commands of this login
    #[arg(long, value_name = "NAME")]
    pub login: Option<String>,
    /// Only the order or request with this id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub struct DataFolderArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Folder of journal and certificates: service.data_dir
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

impl DataFolderArgs {
    pub fn sources(&self) -> Sources {
        let mut sources = self.settings.sources();
        sources.options.extend(self.data.as_ref().map(|dir| data_setting(dir)));
        sources
    }
}

/// Subcommands of `pitlane standby`. The server that owns the folder must not run. The decision
/// applies to its next start, once.
#[derive(Clone, Debug, Subcommand)]
pub enum StandbyCommand {
    /// Lead with this folder and rebuild the stream from it; data that only the stream has are
    /// discarded
    #[command(after_help = "Example:
  pitlane standby lead --data /var/lib/pitlane")]
    Lead(DataFolderArgs),
    /// Follow the stream; this folder is moved to standby/before
    #[command(after_help = "Example:
  pitlane standby follow --data /var/lib/pitlane")]
    Follow(DataFolderArgs),
}
