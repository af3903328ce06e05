//! A power cut on a real file system: the data folder is on an image of its own, and the image is copied while the service
//! runs. What the copy has is what had reached the disk; everything that was told at level `disk` must be in it.
//!
//! Only in the full form, and only where images may be mounted.

use crate::LIVELY;
use crate::image::{Mounted, copy_of_one_moment};
use crate::lives::{Witness, is_full, state};
use crate::service::{Service, command, folder};

/// Lines heard before the cut.
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
    let mut service = Service::spawn(command(&disk.0.join("data"), &settings));
    assert!(service.is_ready(), "{}", service.ready);
    let mut witness = Witness::default();
    for _ in 0..LINES {
        witness.hear(&service.line());
    }
    service.pause();
    assert!(copy_of_one_moment(&image, &cut), "the disk is copied while nothing is written");
    service.signal("KILL");
    service.end();
    drop(disk);
    assert!(witness.len() > 20, "it traded: {}", witness.len());
    let after = Mounted::of(&cut, place.join("after")).expect("the copy is a file system");
    witness.check(&state(&after.0.join("data")), 0);
}
