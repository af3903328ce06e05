//! `pitlane tune` on made-up machines: it makes the changes that the doctor asks for, and undoes
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use pitlane::doctor::{self, HostFiles};
use pitlane::tune::{self, TuneError, TuneOutcome, TuneStep};

use super::{machine, pinned, well};

const GOVERNOR: &str = "sys/devices/system/cpu/cpu5/cpufreq/scaling_governor";
const IDLE_STATE: &str = "sys/devices/system/cpu/cpu2/cpuidle/state2/disable";
const PAGES: &str = "sys/kernel/mm/transparent_hugepage/enabled";
const INTERRUPT: &str = "proc/irq/25/smp_affinity_list";
const POLL: &str = "proc/sys/net/core/busy_poll";
const CLOCK: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";
const SIBLINGS: &str = "sys/devices/system/cpu/cpu2/topology/thread_siblings_list";
const ONLINE: &str = "sys/devices/system/cpu/cpu1/online";
const BOOT_FILE: &str = "etc/default/grub.d/pitlane.cfg";

/// A fault for each kind of change, and one that needs a person.
const FAULTS: &[(&str, &str)] = &[
    (GOVERNOR, "powersave\n"),
    (IDLE_STATE, "0\n"),
    (PAGES, "[always] madvise never\n"),
    (INTERRUPT, "0-5\n"),
    (POLL, "0\n"),
    (CLOCK, "hpet\n"),
    (SIBLINGS, "1-2\n"),
    (ONLINE, "1\n"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("sys/devices/system/cpu/nohz_full", "\n"),
    ("etc/default/grub.d/other.cfg", "# of another package\n"),
    ("proc/swaps", "Filename Type\n/swap.img file 1 0 -2\n"),
];

fn steps_of(root: &Path) -> Vec<TuneStep> {
    let findings = doctor::examine(&pinned(&[]), root, &well());
    tune::plan(&HostFiles::at(root), &findings).steps
}

fn text(root: &Path, path: &str) -> Option<String> {
    fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_string())
}

fn record(root: &Path) -> PathBuf {
    root.join("tune.json")
}

fn all_done(outcomes: &[(TuneStep, TuneOutcome)]) -> bool {
    outcomes.iter().all(|(_, outcome)| matches!(outcome, TuneOutcome::Done))
}

#[test]
fn changes_are_made_and_undone() {
    let root = machine("tuned", FAULTS);
    let steps = steps_of(&root);
    let old: Vec<Option<String>> = steps.iter().map(|step| text(&root, &step.path)).collect();
    assert_eq!(steps.len(), 8, "{steps:#?}");
    let outcomes = tune::apply(&root, &record(&root), steps.clone()).unwrap();
    let mut printed = Vec::new();
    assert!(tune::print(&outcomes, false, &mut printed).unwrap() && all_done(&outcomes));
    let printed = String::from_utf8(printed).unwrap();
    assert!(printed.starts_with(&format!("done    /{GOVERNOR}: powersave -> performance\n")), "{printed}");
    assert!(printed.ends_with("run update-grub and reboot: boot parameters have changed\n"), "{printed}");
    for (path, after) in [
        (GOVERNOR, "performance"),
        (IDLE_STATE, "1"),
        (PAGES, "madvise"),
        (INTERRUPT, "0-1"),
        (POLL, "50"),
        (CLOCK, "tsc"),
        (ONLINE, "0"),
        (BOOT_FILE, "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX isolcpus=2-5 nohz_full=2-5 rcu_nocbs=2-5\""),
    ] {
        assert_eq!(text(&root, path).as_deref(), Some(after), "{path}");
    }
    assert!(all_done(&tune::undo(&root, &record(&root)).unwrap()));
    for (step, old) in steps.iter().zip(old) {
        // Of a choice only the chosen word is written; a kernel shows the others again.
        let old = old.map(|text| text.replace("[always] madvise never", "always"));
        assert_eq!(text(&root, &step.path), old, "{}", step.path);
    }
    assert!(matches!(tune::undo(&root, &record(&root)), Err(TuneError::NoRecord(_))), "all is undone");
}

#[test]
fn the_plan_shows_changes_and_what_a_person_must_do() {
    let root = machine("tune-plan", FAULTS);
    let findings = doctor::examine(&pinned(&[]), &root, &well());
    let shown = tune::plan(&HostFiles::at(&root), &findings).to_string();
    assert!(shown.contains(&format!("change  /{GOVERNOR}: powersave -> performance\n")), "{shown}");
    assert!(shown.contains(&format!("change  /{PAGES}: always -> madvise\n")), "{shown}");
    assert!(shown.contains(&format!("change  /{BOOT_FILE}: (no file) -> GRUB_CMDLINE_LINUX")), "{shown}");
    assert!(shown.contains("by hand swap: swapoff -a"), "{shown}");
    assert!(shown.ends_with("8 changes; `pitlane tune --apply` makes them"), "{shown}");
    assert_eq!(text(&root, GOVERNOR).as_deref(), Some("powersave"), "nothing is written");

    let fit = machine("tune-fit", &[]);
    let findings = doctor::examine(&pinned(&[]), &fit, &well());
    assert_eq!(tune::plan(&HostFiles::at(&fit), &findings).to_string(), "there is nothing to change");
}

#[test]
fn without_a_folder_for_boot_parameters_a_person_sets_them() {
    let faults = [("sys/devices/system/cpu/isolated", "\n")];
    let root = machine("tune-boot", &faults);
    let findings = doctor::examine(&pinned(&[]), &root, &well());
    let plan = tune::plan(&HostFiles::at(&root), &findings);
    assert!(plan.steps.is_empty(), "{plan:#?}");
    assert!(plan.to_string().contains("by hand isolation: add isolcpus=2-5"), "{plan}");
}

#[test]
fn what_others_have_changed_since_is_left_alone() {
    let root = machine("tune-since", &[(GOVERNOR, "powersave\n"), (POLL, "0\n")]);
    tune::apply(&root, &record(&root), steps_of(&root)).unwrap();
    fs::write(root.join(GOVERNOR), "schedutil\n").unwrap();
    let outcomes = tune::undo(&root, &record(&root)).unwrap();
    let governor = outcomes.iter().find(|(step, _)| step.path == GOVERNOR).unwrap();
    assert!(
        matches!(&governor.1, TuneOutcome::ChangedSince(Some(now)) if now == "schedutil"),
        "{governor:?}"
    );
    let line = tune::line(&governor.0, &governor.1, true);
    assert_eq!(line, format!("left    /{GOVERNOR}: it was changed since, to schedutil"));
    assert_eq!(text(&root, GOVERNOR).as_deref(), Some("schedutil"));
    assert_eq!(text(&root, POLL).as_deref(), Some("0"));
}

/// After another fault has appeared, a second run adds to the record of the first.
#[test]
fn two_runs_are_undone_together() {
    let root = machine("tune-twice", &[(GOVERNOR, "powersave\n"), (INTERRUPT, "0-5\n")]);
    tune::apply(&root, &record(&root), steps_of(&root)).unwrap();
    fs::write(root.join(POLL), "10\n").unwrap();
    // The settings have changed: other cores are kept free.
    let further =
        TuneStep { path: INTERRUPT.to_string(), before: text(&root, INTERRUPT), after: "0".to_string() };
    let steps = [steps_of(&root), vec![further]].concat();
    assert_eq!(steps.len(), 2, "{steps:#?}");
    tune::apply(&root, &record(&root), steps).unwrap();
    assert!(all_done(&tune::undo(&root, &record(&root)).unwrap()));
    for (path, old) in [(GOVERNOR, "powersave"), (INTERRUPT, "0-5"), (POLL, "10")] {
        assert_eq!(text(&root, path).as_deref(), Some(old), "{path}");
    }
}

/// A file that cannot be written fails alone, and the record keeps what could not be undone.
#[test]
fn a_failed_change_does_not_keep_the_others_from_being_made() {
    let root = machine("tune-failed", &[(GOVERNOR, "powersave\n"), (POLL, "0\n")]);
    let steps = steps_of(&root);
    // A folder in the place of the file: it can be neither written nor read, also by root.
    fs::remove_file(root.join(GOVERNOR)).unwrap();
    fs::create_dir(root.join(GOVERNOR)).unwrap();
    let outcomes = tune::apply(&root, &record(&root), steps).unwrap();
    let failed: Vec<&TuneStep> = outcomes
        .iter()
        .filter(|(_, outcome)| matches!(outcome, TuneOutcome::Failed(_)))
        .map(|(step, _)| step)
        .collect();
    assert!(!tune::print(&outcomes, false, &mut Vec::new()).unwrap());
    assert_eq!(failed.iter().map(|step| step.path.as_str()).collect::<Vec<_>>(), [GOVERNOR]);
    assert_eq!(text(&root, POLL).as_deref(), Some("50"));
}

#[test]
fn a_record_that_is_damaged_or_foreign_is_refused() {
    let root = machine("tune-record", &[]);
    let (path, victim) = (record(&root), root.join("etc/passwd"));
    fs::create_dir_all(victim.parent().unwrap()).unwrap();
    fs::write(&victim, "root\n").unwrap();
    for text in [
        "",
        "{}",
        "[1]",
        r#"[{"path":"etc/passwd","before":"x","after":"root"}]"#,
        r#"[{"path":"sys/../etc/passwd","before":"x","after":"root"}]"#,
        r#"[{"path":"sys/kernel","before":1,"after":"x"}]"#,
        r#"[{"path":"sys/kernel","before":null}]"#,
    ] {
        fs::write(&path, text).unwrap();
        assert!(matches!(tune::undo(&root, &path), Err(TuneError::Record(..))), "{text}");
        assert!(matches!(tune::apply(&root, &path, Vec::new()), Err(TuneError::Record(..))), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "it is kept");
    }
    fs::write(&path, " ".repeat((1 << 20) + 1)).unwrap();
    let refused = tune::undo(&root, &path).unwrap_err();
    assert!(refused.to_string().ends_with("too large for a record of `pitlane tune`"), "{refused}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "root\n");
}
