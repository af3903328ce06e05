//! Makes `cargo test` build the extension, which the tests in Python load, and checks what Python
//! needs of it.

use std::fs;

#[test]
fn the_extension_has_the_entry_point_that_python_calls() {
    let here = std::env::current_exe().unwrap();
    let built = here.with_file_name("libpitlane_native.so");
    let bytes = fs::read(&built).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
    let entry = b"PyInit_pitlane_native\0";
    assert!(bytes.windows(entry.len()).any(|window| window == entry));
    // Without the stable ABI there would be names of one version of Python.
    let private = b"_PyObject_GC_New\0";
    assert!(!bytes.windows(private.len()).any(|window| window == private));
}
