//! The layouts of `config/layouts`, each on a machine with as many cores as its name says.

use std::collections::BTreeMap;
use std::path::Path;

use super::rules::present;
use super::*;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Returns the layouts by the number of cores in their names.
fn layouts() -> BTreeMap<u32, PathBuf> {
    let files = fs::read_dir(repository("config/layouts")).expect("the folder of the layouts");
    let numbered = |path: PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let cores = name.strip_suffix("-cores.toml").or(name.strip_suffix("-core.toml"));
        (cores.and_then(|cores| cores.parse().ok()).unwrap_or_else(|| panic!("{name}")), path)
    };
    files.map(|file| numbered(file.expect("a file").path())).collect()
}

/// Loads a layout as bench/README.md tells to, on a machine with so many cores.
fn on_a_machine(layout: &Path, cores: u32) -> Result<Loaded, ConfigFaults> {
    let files = [PathBuf::from("bench"), repository("bench/remote.toml"), layout.to_owned()];
    let files = files.map(|file| file.display().to_string()).to_vec();
    let tokens = format!("auth.tokens_file={}", present());
    let listeners = ["fix.listen=10.0.0.1:9880", "stomp.listen=10.0.0.1:61613"];
    let Sources { options, .. } = options(&[listeners[0], listeners[1], &tokens]);
    let machine = Machine { cores: (0..cores).collect(), cores_usable: cores as usize };
    pitlane_config::load(&Sources { files, options, ..Sources::default() }, &machine)
}

#[test]
fn every_layout_fits_a_machine_with_its_number_of_cores() {
    let layouts = layouts();
    assert_eq!(layouts.keys().copied().collect::<Vec<_>>(), [1, 2, 4, 8, 16]);
    for (cores, path) in layouts {
        let Loaded { config, warnings, .. } =
            on_a_machine(&path, cores).unwrap_or_else(|faults| panic!("{cores}: {faults}"));
        assert_eq!(warnings, [""; 0], "{cores}");
        let topology = &config.topology;
        let (shards, gateways) = topology.threads();
        assert!(shards + gateways <= cores as usize, "{cores}");
        if cores > 1 {
            assert_eq!(topology.quick_cores().len(), shards + gateways, "{cores}: each has its own core");
            assert!(topology.core_lists().iter().all(|(_, cores, threads)| cores.len() == *threads));
            let faults = on_a_machine(&path, cores - 1).expect_err("a core is missing").to_string();
            assert!(faults.contains(&format!("there is no core {}", cores - 1)), "{faults}");
        }
    }
}
