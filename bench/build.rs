//! Gives the binary the version of its compiler: numbers cannot be compared without it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=RUSTC");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(rustc).arg("--version").output();
    let version =
        output.map_or_else(|_| "unknown".into(), |o| String::from_utf8_lossy(&o.stdout).into_owned());
    println!("cargo::rustc-env=PITLANE_BENCH_RUSTC={}", version.trim());
}
