//! The command line of `pitlane`, and of programs with strategies of their own.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use pitlane_auth::Auth;
use pitlane_auth::audit::verify::{self, Against};
use pitlane_auth::audit::{Anchor, AuditError, Link};
use pitlane_auth::cli as credentials;
use pitlane_auth::credentials::Kind;
use pitlane_backtest::SimulateError;
use pitlane_cluster::standby;
use pitlane_cluster::strategy_process::{self, StrategyProcessError, StrategyProcessSettings};
use pitlane_config::refdata;
use pitlane_config::trading_hours::Calendar;
use pitlane_config::{Config, ConfigFaults, Loaded, Machine, Params, ServiceMode, SettingOrigin, Sources};
use pitlane_engine::command::AuditAnchor;
use pitlane_engine::refdata::{KnownStrategies, RefData};
use pitlane_journal::anchors;
use pitlane_journal::cli::{self, JournalCliError, RecordRange};
use pitlane_journal::disk::Disk;
use pitlane_journal::sent::{self, SentFilter};
use pitlane_runtime::log;
use pitlane_strategy::Registry;

use crate::args::{
    AuditCommand, AuditOrdersArgs, AuditVerifyArgs, CheckArgs, Cli, CliCommand, CompletionsArgs,
    ConfigCommand, CredentialFileArgs, DoctorArgs, HealthArgs, ImportCommand, JournalCommand,
    JournalPartArgs, ManArgs, RefDataCommand, ServeArgs, ShowArgs, SimulateArgs, StandbyCommand,
    StrategyArgs, TokenCommand, TuneArgs, UserCommand,
};
use crate::doctor::{self, HostFiles, Probes};
use crate::health::{self, HealthError};
use crate::refdata_import::{self, ImportError};
use crate::serve::{self, ServeError, ServeSettings};
use crate::simulation::{self, SimulationCommandError};
use crate::tune::{self, TuneError};

/// Time limit for writing the last lines of the log.
const FLUSH_MAX: Duration = Duration::from_millis(500);
/// Root folder of the kernel's files.
const ROOT: &str = "/";

/// Runs the command line of this process: `serve`, `simulate`, `strategy` and all others, with the
/// kinds of strategies of the registry. A program with strategies of its own calls this in `main`:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use pitlane_strategy::prelude::*;
///
/// struct Idle;
/// impl Strategy for Idle {}
///
/// fn main() -> ExitCode {
///     pitlane::run(Registry::with_examples().add("idle", |_, _| Ok(Idle)))
/// }
/// ```
pub fn run(registry: Registry) -> ExitCode {
    if let Err(error) = registry.check() {
        let _ = writeln!(io::stderr(), "pitlane: {error}");
        return ExitCode::FAILURE;
    }
    let done = match Cli::parse().chosen() {
        CliCommand::Serve(serve) => run_serve(&serve, registry),
        CliCommand::Simulate(simulate) => run_simulate(&simulate, &registry),
        CliCommand::Strategy(args) => run_strategy(&args, registry),
        CliCommand::Check(check) => run_check(&check, &registry),
        CliCommand::Config(ConfigCommand::Show(show)) => run_show(&show),
        CliCommand::Doctor(doctor) => run_doctor(&doctor),
        CliCommand::Tune(tune) => run_tune(&tune),
        CliCommand::Health(health) => run_health(&health),
        CliCommand::Journal(verb) => run_journal(&verb),
        CliCommand::Standby(verb) => run_standby(&verb),
        CliCommand::User(verb) => run_user(&verb),
        CliCommand::Token(verb) => run_token(&verb),
        CliCommand::Audit(AuditCommand::Verify(args)) => run_audit(&args),
        CliCommand::Audit(AuditCommand::Orders(wanted)) => run_audit_orders(&wanted),
        CliCommand::Refdata(RefDataCommand::Import(ImportCommand::Binance(args))) => {
            refdata_import::import_binance(&args, &mut io::stdout().lock())
                .map_err(CliError::from)
                .map(|()| ExitCode::SUCCESS)
        }
        CliCommand::Completions(completions) => run_completions(&completions),
        CliCommand::Man(man) => run_man(&man),
    };
    match done {
        Ok(code) => code,
        // The reader has closed standard output (broken pipe); the process exits without an error.
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(trouble) => {
            let _ = writeln!(io::stderr(), "{trouble}");
            ExitCode::FAILURE
        }
    }
}

/// Reason why a command failed.
enum CliError {
    Config(ConfigFaults),
    Refdata(refdata::RefDataFaults),
    Serve(ServeError),
    Simulate(SimulateError),
    Strategy(StrategyProcessError),
    Journal(JournalCliError),
    Credentials(credentials::CredentialCliError),
    Audit(AuditError),
    Health(HealthError),
    Import(ImportError),
    Tune(TuneError),
    Standby(io::Error),
    Output(io::Error),
}

impl std::fmt::Display for CliError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CliError::Config(faults) => faults.fmt(f),
            CliError::Refdata(faults) => faults.fmt(f),
            CliError::Credentials(error) => write!(f, "pitlane: {error}"),
            CliError::Audit(error) => write!(f, "pitlane: {error}"),
            CliError::Health(unwell) => write!(f, "pitlane: {unwell}"),
            CliError::Import(ImportError::Refdata(faults)) => faults.fmt(f),
            CliError::Import(error) => write!(f, "pitlane: {error}"),
            CliError::Journal(error) => write!(f, "pitlane: {error}"),
            CliError::Serve(error) => write!(f, "pitlane: {error}"),
            CliError::Strategy(error) => write!(f, "pitlane: {error}"),
            CliError::Tune(error) => write!(f, "pitlane: {error}"),
            CliError::Simulate(error) => write!(f, "pitlane: {error}"),
            CliError::Standby(error) | CliError::Output(error) => write!(f, "pitlane: {error}"),
        }
    }
}

impl From<ConfigFaults> for CliError {
    fn from(faults: ConfigFaults) -> CliError {
        CliError::Config(faults)
    }
}

impl From<refdata::RefDataFaults> for CliError {
    fn from(faults: refdata::RefDataFaults) -> CliError {
        CliError::Refdata(faults)
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> CliError {
        if let ServeError::Settings(faults) = error {
            return CliError::Config(faults);
        }
        CliError::Serve(error)
    }
}

impl From<SimulationCommandError> for CliError {
    fn from(error: SimulationCommandError) -> CliError {
        match error {
            SimulationCommandError::Simulate(error) => CliError::Simulate(error),
            SimulationCommandError::Output(error) => CliError::Output(error),
        }
    }
}

impl From<JournalCliError> for CliError {
    fn from(error: JournalCliError) -> CliError {
        if let JournalCliError::Output(error) = error {
            return CliError::Output(error);
        }
        CliError::Journal(error)
    }
}

impl From<credentials::CredentialCliError> for CliError {
    fn from(error: credentials::CredentialCliError) -> CliError {
        if let credentials::CredentialCliError::Output(error) = error {
            return CliError::Output(error);
        }
        CliError::Credentials(error)
    }
}

impl From<verify::VerifyError> for CliError {
    fn from(error: verify::VerifyError) -> CliError {
        match error {
            verify::VerifyError::Output(error) => CliError::Output(error),
            verify::VerifyError::Audit(error) => CliError::Audit(error),
        }
    }
}

impl From<HealthError> for CliError {
    fn from(unwell: HealthError) -> CliError {
        CliError::Health(unwell)
    }
}

impl From<ImportError> for CliError {
    fn from(error: ImportError) -> CliError {
        if let ImportError::Output(error) = error {
            return CliError::Output(error);
        }
        CliError::Import(error)
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        CliError::Output(error)
    }
}

fn run_serve(serve: &ServeArgs, registry: Registry) -> Result<ExitCode, CliError> {
    let CheckedSettings { loaded, files, .. } = read(&serve.sources(), &registry)?;
    let Loaded { config, params, warnings } = loaded;
    refuse_other_modes(&config, &params)?;
    let (log, events) = log::start(&config.log)?;
    log::abort_on_panic(log.lines(), config.durability());
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let time = serve.seconds.map(Duration::from_secs);
    let settings = ServeSettings { config, params, registry, quiet: serve.quiet, time };
    let served = serve::serve(&settings, &Arc::new(files), Some(events));
    if let Err(deposed @ ServeError::Deposed(_)) = &served {
        tracing::warn!("{deposed}: this server restarts as a follower");
        log.lines().flush(FLUSH_MAX);
        return Err(restart_process().into());
    }
    Ok(served.map(|()| ExitCode::SUCCESS)?)
}

/// Restarts this process with the same arguments, so that nothing it held can leave it. Returns
/// only if that is not possible.
fn restart_process() -> io::Error {
    let binary = std::env::current_exe().unwrap_or_else(|_| "pitlane".into());
    Command::new(binary).args(std::env::args_os().skip(1)).exec()
}

/// Refuses `service.mode = "simulation"` for `serve` and names `pitlane simulate` instead.
fn refuse_other_modes(config: &Config, params: &Params) -> Result<(), ConfigFaults> {
    let mut faults = ConfigFaults::default();
    if config.service.mode == ServiceMode::Simulation {
        let problem = "for simulation there is `pitlane simulate`";
        faults.add(&params.origin("service.mode"), "service.mode", problem);
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn run_simulate(args: &SimulateArgs, registry: &Registry) -> Result<ExitCode, CliError> {
    let CheckedSettings { loaded, files, reference } = read(&args.sources(), registry)?;
    let Loaded { config, warnings, .. } = loaded;
    for note in config.addition_notes(&files).iter().filter(|note| note.is_suspect) {
        writeln!(io::stderr(), "warning: {}", note.text)?;
    }
    // A simulation stores no journal on purpose.
    for warning in warnings.iter().filter(|warning| !warning.starts_with("journal.level")) {
        writeln!(io::stderr(), "warning: {warning}")?;
    }
    Ok(simulation::run(args, config, &Arc::new(reference), registry)?)
}

fn run_strategy(args: &StrategyArgs, registry: Registry) -> Result<ExitCode, CliError> {
    let Loaded { config, params, .. } = pitlane_config::load(&args.sources(), &Machine::of(Path::new(ROOT)))?;
    let (_log, _) = log::start(&config.log)?;
    strategy_process::run(&StrategyProcessSettings { name: args.name.clone(), config, params, registry })
        .map_err(CliError::Strategy)?;
    Ok(ExitCode::SUCCESS)
}

fn run_check(check: &CheckArgs, registry: &Registry) -> Result<ExitCode, CliError> {
    let CheckedSettings { loaded, files, reference: data } = read(&check.sources(), registry)?;
    Auth::open(serve::auth_settings(&loaded.config, &data))?;
    for warning in &loaded.warnings {
        writeln!(io::stderr(), "warning: {warning}")?;
    }
    writeln!(
        io::stdout(),
        "ok: {} exchanges, {} families, {} securities, {} accounts, {} strategies",
        data.exchanges().len(),
        data.families().len(),
        data.securities().len(),
        data.accounts().len(),
        data.strategies().len()
    )?;
    for note in loaded.config.addition_notes(&files) {
        writeln!(io::stdout(), "{}", note.text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run_show(show: &ShowArgs) -> Result<ExitCode, CliError> {
    let Loaded { params, warnings, .. } =
        pitlane_config::load(&show.settings.sources(), &Machine::of(Path::new(ROOT)))?;
    let is_built_in = |origin: &SettingOrigin| matches!(origin, SettingOrigin::File { name, .. } if &**name == pitlane_config::BUILT_IN);
    let mut out = io::stdout().lock();
    for (name, param) in params.iter().filter(|(_, param)| !show.changed || !is_built_in(&param.origin)) {
        writeln!(out, "{:<56} # {}", format!("{name} = {}", param.text), param.origin)?;
    }
    for warning in warnings {
        writeln!(io::stderr(), "warning: {warning}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run_doctor(args: &DoctorArgs) -> Result<ExitCode, CliError> {
    let root = Path::new(ROOT);
    let config = pitlane_config::load(&args.sources(), &Machine::of(root))?.config;
    let findings = doctor::examine(&config, root, &Probes::take(&config));
    let mut out = io::stdout().lock();
    let unfit = doctor::unfit(&findings);
    if args.json {
        writeln!(out, "{:#}", doctor::to_json(&findings))?;
    } else {
        for finding in &findings {
            writeln!(out, "{finding}")?;
        }
        match unfit {
            0 => writeln!(out, "\nfit")?,
            _ => {
                writeln!(
                    out,
                    "\n{unfit} of {} need correction; `pitlane tune` makes changes",
                    findings.len()
                )?;
            }
        }
    }
    Ok(if unfit == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_tune(args: &TuneArgs) -> Result<ExitCode, CliError> {
    let root = Path::new(ROOT);
    let mut out = io::stdout().lock();
    let outcomes = if args.undo {
        tune::undo(root, &args.record).map_err(CliError::Tune)?
    } else {
        let config = pitlane_config::load(&args.settings.sources(), &Machine::of(root))?.config;
        let findings = doctor::examine(&config, root, &Probes::take(&config));
        let plan = tune::plan(&HostFiles::at(root), &findings);
        if !args.apply || plan.steps.is_empty() {
            writeln!(out, "{plan}")?;
            return Ok(ExitCode::SUCCESS);
        }
        tune::apply(root, &args.record, plan.steps).map_err(CliError::Tune)?
    };
    let is_done = tune::print(&outcomes, args.undo, &mut out)?;
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_health(args: &HealthArgs) -> Result<ExitCode, CliError> {
    let config = pitlane_config::load(&args.settings.sources(), &Machine::of(Path::new(ROOT)))?.config;
    let address = health::ask(&config, Duration::from_secs(args.wait.into()))?;
    writeln!(io::stdout(), "{address}: ready")?;
    Ok(ExitCode::SUCCESS)
}

fn run_journal(verb: &JournalCommand) -> Result<ExitCode, CliError> {
    let (JournalCommand::Dump(args) | JournalCommand::Verify(args) | JournalCommand::Replay(args)) = verb;
    let config = pitlane_config::load(&args.sources(), &Machine::of(Path::new(ROOT)))?.config;
    let data = config.service.data_dir.as_path();
    let part = part_of(args);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let is_sound = match verb {
        JournalCommand::Dump(_) => cli::dump(&Disk::Real, data, &part, &mut out).map(|_| true),
        JournalCommand::Verify(_) => {
            cli::verify(&Disk::Real, data, &part, &mut out).map(|found| found.faults == 0)
        }
        JournalCommand::Replay(_) => cli::replay(&Disk::Real, data, &part, &mut out).map(|_| true),
    };
    out.flush()?;
    Ok(if is_sound? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn part_of(args: &JournalPartArgs) -> RecordRange {
    let all = RecordRange::default();
    RecordRange {
        shard: args.shard,
        from: args.from,
        to: args.to.unwrap_or(all.to),
        limit: args.limit.unwrap_or(all.limit),
    }
}

fn run_audit_orders(args: &AuditOrdersArgs) -> Result<ExitCode, CliError> {
    let config = pitlane_config::load(&args.part.sources(), &Machine::of(Path::new(ROOT)))?.config;
    let wanted = SentFilter { login: args.login.clone(), int_id: args.id.clone() };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let data = config.service.data_dir.as_path();
    let printed = sent::orders(&Disk::Real, data, &part_of(&args.part), &wanted, &mut out);
    out.flush()?;
    printed?;
    Ok(ExitCode::SUCCESS)
}

fn run_audit(args: &AuditVerifyArgs) -> Result<ExitCode, CliError> {
    let config = pitlane_config::load(&args.folder.sources(), &Machine::of(Path::new(ROOT)))?.config;
    let data = config.service.data_dir.as_path();
    let anchor = |anchor: AuditAnchor| Anchor { log: anchor.log, line: anchor.line, hash: Link(anchor.hash) };
    let against = Against {
        journal: anchors::anchors(&Disk::Real, data)?.into_iter().map(anchor).collect(),
        is_standby: config.standby.group.is_some(),
        begins_with: args.begins_with,
    };
    let is_sound = verify::verify(data, &against, &mut io::stdout().lock())?;
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_standby(verb: &StandbyCommand) -> Result<ExitCode, CliError> {
    let (StandbyCommand::Lead(folder) | StandbyCommand::Follow(folder)) = verb;
    let config = pitlane_config::load(&folder.sources(), &Machine::of(Path::new(ROOT)))?.config;
    let decide = match verb {
        StandbyCommand::Lead(_) => standby::cli::lead,
        StandbyCommand::Follow(_) => standby::cli::follow,
    };
    writeln!(io::stdout(), "{}", decide(&config.service.data_dir).map_err(CliError::Standby)?)?;
    Ok(ExitCode::SUCCESS)
}

fn run_user(verb: &UserCommand) -> Result<ExitCode, CliError> {
    let path = |args: &CredentialFileArgs| credential_file(args, Kind::Users);
    match verb {
        UserCommand::Add(new) => {
            credentials::add_user(&path(&new.file)?, &new.name, new.role, &new.strategies)?;
        }
        UserCommand::Passwd(named) => credentials::change_password(&path(&named.file)?, &named.name)?,
        UserCommand::Remove(named) => credentials::remove(Kind::Users, &path(&named.file)?, &named.name)?,
        UserCommand::List(args) => credentials::list(Kind::Users, &path(args)?, &mut io::stdout().lock())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run_token(verb: &TokenCommand) -> Result<ExitCode, CliError> {
    let path = |args: &CredentialFileArgs| credential_file(args, Kind::Tokens);
    match verb {
        TokenCommand::Create(new) => {
            let token = credentials::create_token(&path(&new.file)?, &new.name, new.role, &new.strategies)?;
            writeln!(io::stdout(), "{token}")?;
        }
        TokenCommand::Revoke(named) => credentials::remove(Kind::Tokens, &path(&named.file)?, &named.name)?,
        TokenCommand::List(args) => credentials::list(Kind::Tokens, &path(args)?, &mut io::stdout().lock())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the file that is named, or that of the settings.
fn credential_file(args: &CredentialFileArgs, kind: Kind) -> Result<PathBuf, CliError> {
    if let Some(path) = &args.file {
        return Ok(path.clone());
    }
    let auth = pitlane_config::load(&args.settings.sources(), &Machine::of(Path::new(ROOT)))?.config.auth;
    let (path, key) = match kind {
        Kind::Users => (auth.users_file, "auth.users_file"),
        Kind::Tokens => (auth.tokens_file, "auth.tokens_file"),
    };
    let unset =
        || credentials::CredentialCliError::Refused(format!("{key} is not set: name a file with --file"));
    Ok(path.ok_or_else(unset)?)
}

fn run_completions(completions: &CompletionsArgs) -> Result<ExitCode, CliError> {
    // The generator writes into memory first, so that a closed pipe does not make it fail.
    let mut text = Vec::new();
    clap_complete::generate(completions.shell, &mut Cli::command(), "pitlane", &mut text);
    io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn run_man(man: &ManArgs) -> Result<ExitCode, CliError> {
    let named = |error| io::Error::other(format!("{}: {error}", man.folder.display()));
    clap_mangen::generate_to(Cli::command(), &man.folder).map_err(named)?;
    Ok(ExitCode::SUCCESS)
}

/// Settings and reference data, checked against each other.
struct CheckedSettings {
    loaded: Loaded,
    /// The reference data of the files.
    files: RefData,
    /// The same, with the strategies that only the settings name. Without a journal their ids are
    /// final.
    reference: RefData,
}

fn read(sources: &Sources, registry: &Registry) -> Result<CheckedSettings, CliError> {
    let loaded = pitlane_config::load(sources, &Machine::of(Path::new(ROOT)))?;
    let reference = match &loaded.config.refdata.dir {
        Some(dir) => refdata::read(dir, &loaded.config.adapter_names())?,
        None => refdata::shipped()?,
    };
    let files = Calendar::fit(&loaded.config, reference);
    let reference = loaded.config.add_strategies(&files, &KnownStrategies::default(), &loaded.params)?;
    loaded.config.check_names(&reference, registry, &loaded.params)?;
    Ok(CheckedSettings { loaded, files, reference })
}
