//! The examples of the README, run as they are written, at a free port.

use std::process::Command;

use crate::service::RestService;

#[test]
fn every_example_of_the_readme_works() {
    let mut service = RestService::start("readme");
    let readme = include_str!("../../../../README.md");
    let block = readme.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let examples: Vec<_> = block.lines().collect();
    assert!(examples.len() >= 5 && examples.iter().all(|line| line.starts_with("curl ")), "{examples:?}");
    for example in examples {
        let line = example.replace("127.0.0.1:9090", &service.address().to_string());
        assert_ne!(line, example);
        let done = Command::new("sh").args(["-c", &line]).output().unwrap();
        let output =
            String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{example}: {output}");
        if !output.is_empty() {
            serde_json::from_str::<serde_json::Value>(&output).unwrap();
        }
    }
    assert_eq!(service.order("my-1")["limit"], 100.5);
}
