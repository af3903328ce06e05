//! Lists the files of the web page, if the page has been built, so that they become part of the
//! binary. Without them the binary works too and says how to build the page. Also reads the commit
//! that is being built.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Environment variable that names the commit in a build without the files of git.
const COMMIT: &str = "BUILT_FROM_COMMIT";

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).join("../..");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={COMMIT}");
    let commit = env::var(COMMIT).ok().or_else(|| commit(&root));
    println!("cargo:rustc-env={COMMIT}={}", commit.as_deref().unwrap_or("unknown"));
    list_page(&root.join("web/dist"))
}

/// The commit that is checked out, by git's own files; None where there are none.
fn commit(root: &Path) -> Option<String> {
    let git = root.join(".git");
    // In a further worktree it is a file, which names the folder.
    let git = match fs::read_to_string(&git) {
        Ok(text) => root.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => git,
    };
    let head = read(&git.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref:").map(str::trim) else { return Some(head) };
    // What all worktrees share.
    let shared = fs::read_to_string(git.join("commondir")).map_or(git.clone(), |text| git.join(text.trim()));
    let packed = || {
        let lines = read(&shared.join("packed-refs"))?;
        lines.lines().find_map(|line| Some(line.strip_suffix(name)?.trim().to_string()))
    };
    read(&shared.join(name)).or_else(packed)
}

/// A file of git's, trimmed; when it changes, the commit is read again.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo:rerun-if-changed={}", path.display());
    Some(text.trim().to_string())
}

fn list_page(folder: &Path) -> io::Result<()> {
    // Cargo runs this again at every build while the folder that it watches does not exist. Where
    // the folder cannot be made, nothing but time is lost.
    let _ = fs::create_dir_all(folder);
    println!("cargo:rerun-if-changed={}", folder.display());
    let page = folder.join("page");
    let mut files = Vec::new();
    if page.is_dir() {
        collect(&page, &mut files)?;
    }
    files.sort();
    let mut list = String::from("[\n");
    for file in &files {
        let name = file.strip_prefix(&page).map_err(io::Error::other)?;
        writeln!(list, "    ({:?}, include_bytes!({:?}) as &[u8]),", name, file.canonicalize()?)
            .map_err(io::Error::other)?;
    }
    list.push_str("]\n");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?).join("page_files.rs");
    fs::write(out, list)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
