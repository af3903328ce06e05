//! Checks of the journal's location: file system, free space, sync time.

use std::path::Path;

use pitlane_config::Config;

use super::host::HostFiles;
use super::probes::Probes;
use super::{HostCheck, HostFinding};

/// Highest acceptable sync time, in microseconds: a group of orders waits for one sync.
const SYNC_US_MAX: u64 = 1_000;
/// Space of two snapshots of a shard and the journal between them, in bytes of journal.
const SNAPSHOTS: u64 = 3;
/// File systems that lose their content, and those whose sync depends on another machine.
const VOLATILE: [&str; 3] = ["tmpfs", "ramfs", "rootfs"];
const REMOTE: [&str; 6] = ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"];

const KIND: HostCheck =
    HostCheck { name: "file-system", why: "the journal is only as durable as its file system" };
const ROOM: HostCheck = HostCheck { name: "free-space", why: "a full disk stops order entry" };
const BROKER: HostCheck =
    HostCheck { name: "broker", why: "at level replicated an order is acknowledged when the broker has it" };
const RIGHTS: HostCheck = HostCheck {
    name: "broker-rights",
    why: "a client that may publish on a subject of the server can impersonate the server",
};
const SPEED: HostCheck = HostCheck { name: "sync-speed", why: "at level disk each answer waits for a sync" };

pub(super) fn check(config: &Config, host: &HostFiles, probes: &Probes) -> Vec<HostFinding> {
    let mut findings = vec![kind(config, host, probes), room(config, probes), speed(config, probes)];
    findings.extend(broker(config, probes));
    findings.extend(rights(probes));
    findings
}

/// Checks the rights at the broker.
fn rights(probes: &Probes) -> Vec<HostFinding> {
    match &probes.rights {
        None => Vec::new(),
        Some(Err(error)) => {
            vec![RIGHTS.unfit(
                format!("the broker of nats.url: {error}"),
                "start the broker, and check nats.user and nats.peer_user",
            )]
        }
        Some(Ok(warnings)) if warnings.is_empty() => {
            vec![
                RIGHTS.fit(
                    "the logins have the rights that they need, and servers have an account of their own",
                ),
            ]
        }
        Some(Ok(warnings)) => warnings
            .iter()
            .map(|warning| RIGHTS.unfit(warning.found.clone(), warning.remedy.clone()))
            .collect(),
    }
}

/// Checks what the guarantee of the standby depends on, as far as a client sees it.
fn broker(config: &Config, probes: &Probes) -> Vec<HostFinding> {
    match &probes.broker {
        None => Vec::new(),
        Some(Err(error)) => {
            vec![BROKER.unfit(format!("the broker of nats.url: {error}"), "start nats-server with -js")]
        }
        Some(Ok(facts)) => {
            let warnings = facts.warnings(config);
            let found = "the broker fulfils the requirements of level replicated, as far as a client can see";
            if warnings.is_empty() {
                return vec![BROKER.fit(found)];
            }
            warnings.into_iter().map(|warning| BROKER.unfit(warning.found, warning.remedy)).collect()
        }
    }
}

fn kind(config: &Config, host: &HostFiles, probes: &Probes) -> HostFinding {
    let mounts = host.text("proc/self/mountinfo").unwrap_or_default();
    let Some((point, kind)) = mount_of(&mounts, &probes.data_dir) else {
        return KIND.unknown("the system does not report what is mounted");
    };
    let found = format!("{} is on {kind} ({point})", probes.data_dir.display());
    let move_it = format!(
        "set service.data_dir to a folder on a local disk, now {}",
        config.service.data_dir.display()
    );
    if VOLATILE.contains(&kind) {
        return KIND.unfit(format!("{found}, which is gone after a restart"), move_it);
    }
    if REMOTE.contains(&kind) {
        return KIND.unfit(format!("{found}, whose syncs travel over a network"), move_it);
    }
    KIND.fit(found)
}

/// Returns mount point and type of the file system of a folder: of the mounts above it the deepest,
/// of equals the last.
fn mount_of<'a>(mounts: &'a str, folder: &Path) -> Option<(&'a str, &'a str)> {
    let parse = |line: &'a str| {
        let (left, right) = line.split_once(" - ")?;
        Some((left.split(' ').nth(4)?, right.split(' ').next()?))
    };
    let above = mounts.lines().filter_map(parse).filter(|(point, _)| folder.starts_with(point));
    above.max_by_key(|(point, _)| Path::new(point).components().count())
}

fn room(config: &Config, probes: &Probes) -> HostFinding {
    let journal = &config.journal;
    let segments = journal.segment_bytes as u64 * (journal.reserve_segments as u64 + 1);
    let wanted = (segments + SNAPSHOTS * journal.snapshot_every_bytes) * config.topology.shards as u64;
    match probes.free_bytes {
        None => ROOM.unknown("the system does not report how much is free"),
        Some(free) if free >= wanted => ROOM.fit(format!("{} MiB of at least {}", free >> 20, wanted >> 20)),
        Some(free) => {
            let found = format!(
                "{} MiB of at least {} for {} shards",
                free >> 20,
                wanted >> 20,
                config.topology.shards
            );
            ROOM.unfit(
                found,
                format!("make room on {}, or set journal.segment_bytes lower", probes.data_dir.display()),
            )
        }
    }
}

fn speed(config: &Config, probes: &Probes) -> HostFinding {
    let level = config.durability();
    match &probes.sync_us {
        Err(problem) => SPEED.unknown(format!("{}: {problem}", probes.data_dir.display())),
        Ok(us) if *us > SYNC_US_MAX && level.is_synced() => {
            let remedy = "put service.data_dir on a disk with a write cache that survives power loss";
            SPEED.unfit(format!("an fdatasync of 4 KiB takes {us} us"), remedy)
        }
        Ok(us) => SPEED.fit(format!("an fdatasync of 4 KiB takes {us} us; the level is {level}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_above_a_folder_is_its_own() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /data rw shared:1 - xfs /dev/sdb rw\n\
                      3 1 0:6 / /database rw - tmpfs tmpfs rw\nnonsense";
        let of = |folder: &str| mount_of(mounts, Path::new(folder));
        assert_eq!(of("/data/journal"), Some(("/data", "xfs")));
        assert_eq!(of("/database"), Some(("/database", "tmpfs")));
        assert_eq!(of("/home"), Some(("/", "ext4")));
        assert_eq!(mount_of("", Path::new("/")), None);
    }
}
