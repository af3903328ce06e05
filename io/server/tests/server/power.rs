//! A power cut on a real file system: the data folder is on a separate image, and the image is
//! copied while the service runs. The copy has what had reached the disk; everything that was
//! acknowledged at level `disk` must be in it.
//!
//! Only in the full form, and only where images may be mounted.

use pitlane_testkit::disk_image::{Mounted, copy_of_one_moment};
use pitlane_testkit::service::{ServiceProcess, command, folder};

use crate::LIVELY;
use crate::kills::{StatusLog, is_full, state};

/// Lines read before the cut.
const LINES: usize = 400;

#[test]
fn acknowledged_orders_at_level_disk_survive_a_power_cut() {
    if !is_full() {
        return;
    }
    let place = folder("power");
    let (image, cut) = (place.join("disk.img"), place.join("cut.img"));
    let Some(disk) = Mounted::new(&image, "128M", place.join("disk")) else {
        eprintln!("skipped: no image can be mounted here");
        return;
    };
    let settings = [&LIVELY[..], &["journal.level=disk", "shard.finished_max=100000"]].concat();
    let mut service = ServiceProcess::spawn(command(&disk.0.join("data"), &settings));
    assert!(service.is_ready(), "{}", service.ready);
    let mut status_log = StatusLog::default();
    for _ in 0..LINES {
        status_log.receive(&service.line());
    }
    service.pause();
    assert!(copy_of_one_moment(&image, &cut), "the disk is copied while nothing is written");
    service.signal("KILL");
    service.end();
    drop(disk);
    assert!(status_log.len() > 20, "it traded: {}", status_log.len());
    let after = Mounted::of(&cut, place.join("after")).expect("the copy is a file system");
    status_log.check(&state(&after.0.join("data")), 0);
}
