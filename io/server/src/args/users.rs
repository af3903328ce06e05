//! Arguments of the commands on users and tokens.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use pitlane_auth::{Role, Strategies, credentials};

use super::settings::SettingsArgs;

/// Subcommands of `pitlane user`. A running service applies the change on SIGHUP.
#[derive(Clone, Debug, Subcommand)]
pub enum UserCommand {
    /// Add a user; the password is read from the terminal, or from the first line of standard input
    #[command(after_help = "Example:
  pitlane user add alice --role trade --strategies PAIRS,MOMENTUM --file /etc/pitlane/users")]
    Add(NewCredentialArgs),
    /// Change the password of a user
    Passwd(CredentialNameArgs),
    /// Remove a user
    Remove(CredentialNameArgs),
    /// List all users with role and strategies
    List(CredentialFileArgs),
}

/// Subcommands of `pitlane token`. A running service applies the change on SIGHUP.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token and print it; it is shown only this once and not stored
    #[command(after_help = "Example:
  pitlane token create robot --role trade --file /etc/pitlane/tokens
  pitlane token create momentum --role strategy --strategies MOMENTUM --file /etc/pitlane/tokens")]
    Create(NewCredentialArgs),
    /// Revoke a token
    Revoke(CredentialNameArgs),
    /// List the name of each token with role and strategies
    List(CredentialFileArgs),
}

#[derive(Clone, Debug, Args)]
pub struct NewCredentialArgs {
    pub name: String,
    /// read, trade or admin, each with all rights of the one before; or strategy, for tokens of
    /// strategy processes
    #[arg(long, value_parser = credentials::parse_role)]
    pub role: Role,
    /// Names of strategies, separated by commas, whose orders and positions the login may see and
    /// change; *: all
    #[arg(long, value_name = "LIST", default_value = "*", value_parser = credentials::parse_strategies)]
    pub strategies: Strategies,
    #[command(flatten)]
    pub file: CredentialFileArgs,
}

#[derive(Clone, Debug, Args)]
pub struct CredentialNameArgs {
    pub name: String,
    #[command(flatten)]
    pub file: CredentialFileArgs,
}

/// File of users or tokens.
#[derive(Clone, Debug, Args)]
pub struct CredentialFileArgs {
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// File of users or tokens [default: auth.users_file, auth.tokens_file]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}
