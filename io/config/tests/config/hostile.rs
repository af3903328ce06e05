//! Arbitrary file content is at worst refused.

use super::*;

fn swallow(text: &str) {
    let mut sources = file("hostile.toml", text);
    let _ = load(&sources);
    sources.files.clear();
    for key in
        ["fix.session", "http.listen", "lanes.events", "topology.main_cores", "risk.strategy.X.restricted"]
    {
        sources.options = vec![Setting { option: "--set", key: key.to_string(), value: text.to_string() }];
        let _ = load(&sources);
    }
}

#[test]
fn a_file_cut_anywhere_is_refused_or_read() {
    for at in (0..DEFAULT.len()).step_by(97).filter(|at| DEFAULT.is_char_boundary(*at)) {
        swallow(&DEFAULT[..at]);
    }
}

#[test]
fn nonsense_is_refused() {
    let deep = format!("a = {}", "[".repeat(100_000));
    let tables = format!("[{}x]", "a.".repeat(50_000));
    let long = format!("[service]\nname = \"{}\"", "x".repeat(200_000));
    let numbers = format!("[topology]\nmain_cores = [{}]", "1,".repeat(20_000));
    for text in
        ["\u{feff}", "\0", "=", "[", "[[fix.session]]", "fix = 5", "[fix]\nsession = 5", "service = []"]
    {
        swallow(text);
    }
    for text in [deep, tables, long, numbers] {
        assert!(load(&file("nonsense.toml", &text)).is_err());
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bytes.toml");
    fs::write(&path, [0xff, 0xfe, 0x00]).expect("a file for the test");
    let sources = Sources { files: vec![path.display().to_string()], ..Sources::default() };
    assert!(load(&sources).expect_err("it is no text").to_string().ends_with("it is not UTF-8 text"));
    let folder = Sources { files: vec![env!("CARGO_TARGET_TMPDIR").to_string()], ..Sources::default() };
    assert!(load(&folder).is_err());
}
