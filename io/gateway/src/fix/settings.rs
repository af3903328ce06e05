//! Settings of `[fix]` and `[[fix.session]]` for the acceptor: which clients may connect, and the
//! parameters of their sessions.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use pitlane_auth::{Identity, Role, Strategies};
use pitlane_config::time_zone::Zone;
use pitlane_config::{Config, ExecTypes, FixSessionConfig, SecondLogon, Secret, SessionPurpose};
use pitlane_engine::id::{Source, StrategyId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::OrderKind;
use pitlane_engine::time::{NS_PER_MS, NS_PER_S, TimeOfDay, Timestamp};
use pitlane_protocols::codes::FixProfile;
use pitlane_protocols::fix::dictionary::DictionarySettings;
use pitlane_protocols::fix::drop_copy::CopyFilter;
use pitlane_protocols::fix::logon_probe::matches_comp_id;
use pitlane_protocols::fix::rate_limit::RateLimitSettings;
use pitlane_protocols::fix::schedule::{SessionSchedule, UtcOffsets};
use pitlane_protocols::fix::session::FixSessionSettings;
use pitlane_protocols::fix::version::FixVersion;

use super::session_registry::is_plain;

/// Settings common to all sessions.
#[derive(Clone, Debug)]
pub struct FixSettings {
    pub instance: u64,
    pub profile: FixProfile,
    pub message_bytes_max: usize,
    pub output_bytes_max: usize,
    pub sending_time_ns_max: u64,
    /// Time from the connection to a complete Logon, in nanoseconds.
    pub logon_ns_max: u64,
    pub logon_bytes_max: usize,
    /// Maximum size in bytes of the store of each session.
    pub store_bytes: usize,
    pub families: Vec<SessionFamily>,
}

/// A configured session: one client, or all clients with a common name prefix.
#[derive(Clone, Debug)]
pub struct SessionFamily {
    config: FixSessionConfig,
    /// Time zone of the session's schedule.
    zone: Zone,
    strategy: StrategyId,
    /// Whether its Logon must carry the name and secret of a user or token. Two CompIDs that anyone
    /// can guess prove nothing: where a login is required, a client needs a password of its own, an
    /// allowed address, or a login.
    needs_login: bool,
    /// Dictionary of its sessions.
    dictionary: Arc<DictionarySettings>,
    /// The reports that a drop-copy session receives; `None` for a session with orders.
    pub copies: Option<CopyFilter>,
    pub store_folder: PathBuf,
    pub log_folder: Option<PathBuf>,
}

/// The proof that a Logon must carry beside the CompIDs and the address.
#[derive(Clone, Copy, Debug)]
pub enum LogonProof<'a> {
    None,
    /// This name and password.
    Config(&'a str, &'a Secret),
    /// Name and secret of a user or token.
    Credentials,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionEnds {
    pub peer: IpAddr,
    /// The local port.
    pub port: u16,
}

impl FixSettings {
    pub fn of(config: &Config, reference: &RefData) -> FixSettings {
        let fix = &config.fix;
        let profile = match fix.exec_type {
            ExecTypes::Spec => FixProfile::Spec,
            ExecTypes::Strict44 => FixProfile::Strict44,
        };
        let family = |session: &FixSessionConfig| {
            let named = session.strategy.as_deref();
            let named =
                named.and_then(|name| reference.strategies().iter().find(|known| &*known.name == name));
            SessionFamily {
                zone: config.service.timezone.clone(),
                strategy: named.map_or(StrategyId::SERVER, |strategy| strategy.id),
                needs_login: config.login_required()
                    && session.password.is_none()
                    && session.addresses_allowed.is_empty(),
                copies: copy_filter(session, reference),
                store_folder: session
                    .file_store_path
                    .clone()
                    .unwrap_or_else(|| config.service.data_dir.join("fix")),
                log_folder: session.file_log_path.clone(),
                dictionary: Arc::new(DictionarySettings::new(
                    fix.custom_fields.clone(),
                    session.validate_user_defined_fields,
                )),
                config: session.clone(),
            }
        };
        FixSettings {
            instance: config.service.instance,
            profile,
            message_bytes_max: fix.message_bytes_max,
            output_bytes_max: fix.out_buffer_bytes,
            sending_time_ns_max: fix.sending_time_s_max as u64 * NS_PER_S,
            logon_ns_max: fix.logon_timeout_ms as u64 * NS_PER_MS,
            logon_bytes_max: fix.logon_bytes_max,
            store_bytes: fix.store_bytes,
            families: fix.sessions.iter().map(family).collect(),
        }
    }

    /// Returns the family of a client by the CompIDs in its Logon; an exact name takes precedence
    /// over one with a `*`.
    pub fn family(&self, sender_comp_id: &[u8], target_comp_id: &[u8]) -> Option<&SessionFamily> {
        let matches = |family: &&SessionFamily| {
            family.config.sender_comp_id.as_bytes() == target_comp_id
                && matches_comp_id(&family.config.target_comp_id, sender_comp_id)
        };
        let mut matching = self.families.iter().filter(matches);
        let first = matching.next()?;
        if first.is_single() {
            Some(first)
        } else {
            matching.find(|family| family.is_single()).or(Some(first))
        }
    }

    /// Sets the sources of the sessions whose reports are copied. `source_of` returns the source of
    /// a session by its name, permanently.
    pub fn assign_copied_sessions<E>(
        &mut self,
        mut source_of: impl FnMut(&str) -> Result<Option<Source>, E>,
    ) -> Result<(), E> {
        let ours: BTreeSet<String> =
            self.families.iter().map(|family| family.config.sender_comp_id.clone()).collect();
        for at in 0..self.families.len() {
            let clients = self.families[at].config.copy_sessions.clone();
            if clients.is_empty() {
                continue;
            }
            let mut sources = Vec::new();
            for (client, ours) in
                clients.iter().flat_map(|client| ours.iter().map(move |ours| (client, ours)))
            {
                let family = self.family(client.as_bytes(), ours.as_bytes());
                if let Some(name) = family.and_then(|family| family.name(client)) {
                    sources.extend(source_of(&name)?);
                }
            }
            if let Some(filter) = &mut self.families[at].copies {
                filter.sessions = Some(sources);
            }
        }
        Ok(())
    }

    /// Returns the drop-copy sessions with what they receive.
    pub fn drop_copies(&self) -> impl Iterator<Item = (String, &CopyFilter)> {
        self.families
            .iter()
            .filter_map(|family| Some((family.name(family.single()?)?, family.copies.as_ref()?)))
    }

    /// Returns the family of a session that exists already.
    pub fn family_of(&self, name: &str) -> Option<(&SessionFamily, String)> {
        self.families.iter().find_map(|family| {
            let client = name.strip_prefix(family.config.sender_comp_id.as_str())?.strip_prefix('-')?;
            let found = self.family(client.as_bytes(), family.config.sender_comp_id.as_bytes())?;
            Some((found, client.to_string()))
        })
    }
}

impl SessionFamily {
    pub fn is_single(&self) -> bool {
        !self.config.target_comp_id.ends_with('*')
    }

    /// Returns the client's CompID, if the family has only one client.
    pub fn single(&self) -> Option<&str> {
        self.is_single().then_some(self.config.target_comp_id.as_str())
    }

    /// Returns the name of this client's session; `None` if the client's CompID is not a valid
    /// name.
    pub fn name(&self, client: &str) -> Option<String> {
        is_plain(client)
            .then(|| format!("{}-{client}", self.config.sender_comp_id))
            .filter(|name| is_plain(name))
    }

    /// Returns whether a client may connect from this address to this port.
    pub fn admits(&self, arrival: ConnectionEnds) -> bool {
        let addresses = &self.config.addresses_allowed;
        let from = addresses.is_empty() || addresses.iter().any(|allowed| allowed.contains(arrival.peer));
        from && self.config.socket_accept_port.is_none_or(|port| port == arrival.port)
    }

    /// Returns the silence, in nanoseconds, after which a second connection takes the place of the
    /// first one; `None` if it never does.
    pub fn replace_after_ns(&self) -> Option<u64> {
        let replaces = self.config.second_logon == SecondLogon::Replace;
        replaces.then_some(self.config.replace_after_ms as u64 * NS_PER_MS)
    }

    /// Returns whether a login may use its sessions.
    pub fn permits(&self, identity: &Identity) -> bool {
        match self.config.purpose {
            SessionPurpose::MarketData => identity.role >= Role::Read,
            // An order may name any strategy, and copies are of all strategies, so a login that is
            // limited to some strategies does not suffice.
            SessionPurpose::All | SessionPurpose::Orders | SessionPurpose::DropCopy => {
                identity.role >= Role::Trade && identity.strategies == Strategies::All
            }
        }
    }

    /// Returns the version of its sessions.
    pub fn version(&self) -> FixVersion {
        self.config.version
    }

    /// Returns our own CompID in its sessions.
    pub fn sender_comp_id(&self) -> &str {
        &self.config.sender_comp_id
    }

    /// Returns the proof that a Logon must carry.
    pub fn proof(&self) -> LogonProof<'_> {
        match &self.config.password {
            Some(password) => {
                LogonProof::Config(self.config.username.as_deref().unwrap_or_default(), password)
            }
            None if self.needs_login => LogonProof::Credentials,
            None => LogonProof::None,
        }
    }

    /// Returns the schedule of the session, with the UTC offsets of its zone around this time.
    pub fn schedule(&self, now: Timestamp) -> SessionSchedule {
        schedule_in(&self.zone, self.config.start_time, self.config.end_time, now)
    }

    pub fn session(
        &self,
        now: Timestamp,
        fix: &FixSettings,
        client: &str,
        source: Source,
    ) -> FixSessionSettings {
        let config = &self.config;
        let kinds = OrderKind::ALL.into_iter().zip(config.valid_order_types);
        FixSessionSettings {
            version: config.version,
            instance: fix.instance,
            schedule: self.schedule(now),
            reset_on_logon: config.reset_on_logon,
            refresh_on_logon: config.refresh_on_logon,
            validate: config.use_data_dictionary && config.validate_incoming_message,
            dictionary: self.dictionary.clone(),
            // The gateway checks the login before the session receives the connection.
            login: false,
            sending_time_ns_max: fix.sending_time_ns_max,
            report_open_orders: config.report_open_orders,
            cancel_on_disconnect_ns: config.cancel_on_disconnect_s.map(|grace| grace as u64 * NS_PER_S),
            profile: fix.profile,
            order_types: kinds.filter(|(_, on)| *on).map(|(kind, _)| kind).collect(),
            strategy: self.strategy,
            may_trade: config.purpose.has_orders(),
            may_see_positions: config.purpose != SessionPurpose::MarketData,
            market_data_max: if config.purpose.has_market_data() { config.market_data_max } else { 0 },
            market_data_rpt_seq: config.market_data_rpt_seq,
            rate_limit: RateLimitSettings {
                orders_per_s: config.orders_per_s_max,
                cancels_per_s: config.cancels_per_s_max,
                queries_per_s: config.queries_per_s_max,
            },
            message_bytes_max: fix.message_bytes_max,
            output_bytes_max: fix.output_bytes_max,
            orders_max: config.orders_max,
            ..FixSessionSettings::new(&config.sender_comp_id, client, source)
        }
    }
}

/// Returns what a drop-copy session receives, without its sessions, which have no numbers yet.
fn copy_filter(session: &FixSessionConfig, reference: &RefData) -> Option<CopyFilter> {
    if session.purpose != SessionPurpose::DropCopy {
        return None;
    }
    let accounts = reference.accounts().iter().filter(|row| session.copy_accounts.contains(&row.name));
    let strategies = reference.strategies().iter().filter(|row| session.copy_strategies.contains(&row.name));
    Some(CopyFilter {
        accounts: accounts.map(|row| row.id).collect(),
        strategies: strategies.map(|row| row.id).collect(),
        sessions: None,
    })
}

/// Returns a schedule in a time zone, with the UTC offsets around this time.
pub fn schedule_in(zone: &Zone, start: TimeOfDay, end: TimeOfDay, now: Timestamp) -> SessionSchedule {
    let (changed, changes) = (zone.changed(now), zone.changes(now));
    let clocks = UtcOffsets {
        before_s: zone.ahead_s(changed.map_or(now, |changed| Timestamp(changed.0.saturating_sub(1)))),
        since: changed.unwrap_or(Timestamp::ZERO),
        ahead_s: zone.ahead_s(now),
        until: changes.unwrap_or(Timestamp::MAX),
        after_s: zone.ahead_s(changes.unwrap_or(now)),
    };
    SessionSchedule { start, end, clocks }
}
