//! Reload of reference data while the service runs. Main does it, since main may wait for the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pitlane_config::refdata;
use pitlane_config::trading_hours::Calendar;
use pitlane_config::{Config, ConfigFaults, Durability, Params};
use pitlane_engine::refdata::{KnownStrategies, RefData};
use pitlane_gateway::control::ControlSettings;
use pitlane_gateway::reload::ReloadedRefData;
use pitlane_journal::disk::Disk;
use pitlane_journal::{keep_reference, known_strategies, name_of};
use pitlane_runtime::mailbox::MailboxSender;
use pitlane_strategy::Registry;

use super::ServeSettings;

#[derive(Debug)]
pub(super) struct RefDataReloader {
    pub config: Config,
    pub params: Params,
    pub registry: Registry,
    /// The newest set that was published.
    pub current: Arc<RefData>,
    /// Whether a reload is requested.
    pub requested: Arc<AtomicBool>,
    /// One mailbox to each shard.
    pub shards: Vec<MailboxSender<ReloadedRefData>>,
    /// Mailbox to the http thread: the set, or the description of its faults.
    pub answers: MailboxSender<Result<ReloadedRefData, String>>,
}

impl RefDataReloader {
    pub(super) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Executes the requested reload, if there is one.
    pub(super) fn poll(&mut self) {
        if !self.requested.swap(false, Ordering::AcqRel) {
            return;
        }
        let answer = self.read_again();
        match &answer {
            Ok(reloaded) => {
                tracing::info!(name = format!("{:016x}", reloaded.name), "reference data read again")
            }
            Err(faults) => tracing::warn!(faults, "the reference data stay as they were"),
        }
        // If the mailbox is full, the requester is gone: it did not take the last responses.
        let _ = self.answers.send(answer);
    }

    fn read_again(&mut self) -> Result<ReloadedRefData, String> {
        let config = &self.config;
        let reference = read(config, &self.params, &self.registry, &self.current)?;
        let name = match config.durability() {
            Durability::None => name_of(&reference),
            Durability::Replicated | Durability::Disk | Durability::Os => {
                keep_reference(&Disk::Real, &config.service.data_dir, &reference)
                    .map_err(|fault| fault.to_string())?
            }
        };
        if self.shards.iter().any(MailboxSender::is_full) {
            return Err("the shards have not taken the last ones yet; try again".to_string());
        }
        let control_settings = Arc::new(ControlSettings::of(config, &reference));
        let reloaded = ReloadedRefData { name, reference: Arc::new(reference), control_settings };
        for shard in &mut self.shards {
            let sent = shard.send(reloaded.clone());
            assert!(sent.is_ok(), "there was room and no other thread writes");
        }
        self.current = reloaded.reference.clone();
        Ok(reloaded)
    }
}

/// Reads the current files, if they have no fault.
fn read(config: &Config, params: &Params, registry: &Registry, current: &RefData) -> Result<RefData, String> {
    let (dir, names) = (config.refdata.dir.as_deref(), config.strategy_names());
    let read = refdata::read_after(dir, current, &config.adapter_names(), &names);
    let reference = Calendar::fit(config, read.map_err(|faults| faults.to_string())?);
    config.check_names(&reference, registry, params).map_err(|faults| faults.to_string())?;
    Ok(reference)
}

/// Does the same for a server that has waited to lead, without the strategies that only the
/// settings name; if the files have a fault, it keeps the set of its start.
pub(super) fn read_current(settings: &ServeSettings, current: &Arc<RefData>) -> Arc<RefData> {
    match read_files(settings, current) {
        Ok(reference) => Arc::new(reference),
        Err(faults) => {
            tracing::warn!(faults, "the reference data stay as they were");
            current.clone()
        }
    }
}

fn read_files(settings: &ServeSettings, current: &RefData) -> Result<RefData, String> {
    let ServeSettings { config, params, registry, .. } = settings;
    let read = refdata::read_after(config.refdata.dir.as_deref(), current, &config.adapter_names(), &[]);
    let files = Calendar::fit(config, read.map_err(|faults| faults.to_string())?);
    // The ids are found when the journal is open; the check needs only the names.
    let complete = config.add_strategies(&files, &KnownStrategies::default(), params);
    let checked = complete.and_then(|reference| config.check_names(&reference, registry, params));
    checked.map(|()| files).map_err(|faults| faults.to_string())
}

/// Returns the reference data of the files with the strategies that only the settings name. A
/// strategy that was there before, in this folder or in that of the previous leader, keeps its id.
pub(super) fn with_strategies(
    settings: &ServeSettings,
    files: &Arc<RefData>,
) -> Result<Arc<RefData>, ConfigFaults> {
    let config = &settings.config;
    let known = match config.durability() {
        Durability::None => KnownStrategies::default(),
        Durability::Replicated | Durability::Disk | Durability::Os => {
            known_strategies(&Disk::Real, &config.service.data_dir)
        }
    };
    let reference = config.add_strategies(files, &known, &settings.params)?;
    for note in config.addition_notes(files) {
        match note.is_suspect {
            true => tracing::warn!("{}", note.text),
            false => tracing::info!("{}", note.text),
        }
    }
    Ok(Arc::new(reference))
}

#[cfg(test)]
mod tests {
    use pitlane_gateway::reload::RELOADS_MAX;
    use pitlane_runtime::mailbox::mailbox;
    use pitlane_runtime::wakeup::Wakeup;

    use super::*;

    #[test]
    fn a_reload_before_the_shards_have_taken_the_last_one_is_rejected() {
        let mut config = Config::default();
        config.journal.level = Some(Durability::None);
        let (shard, mut reloads) = mailbox(RELOADS_MAX, Wakeup::new(|| {}));
        let (answers, mut answered) = mailbox(RELOADS_MAX, Wakeup::new(|| {}));
        let mut reloader = RefDataReloader {
            config,
            params: Params::default(),
            registry: Registry::with_examples(),
            current: Arc::new(refdata::shipped().unwrap()),
            requested: Arc::default(),
            shards: vec![shard],
            answers,
        };
        let mut ask = || {
            reloader.requested.store(true, Ordering::Release);
            reloader.poll();
            answered.poll().unwrap().map(|reloaded| reloaded.name)
        };
        for _ in 0..RELOADS_MAX {
            assert!(ask().is_ok());
        }
        assert!(ask().is_err_and(|problem| problem.contains("try again")));
        reloads.poll().unwrap();
        assert!(ask().is_ok());
        // Responses that no request takes are not kept for the next request.
        for _ in 0..=RELOADS_MAX {
            reloads.poll().unwrap();
            reloader.requested.store(true, Ordering::Release);
            reloader.poll();
        }
        assert_eq!(answered.len(), RELOADS_MAX);
    }
}
