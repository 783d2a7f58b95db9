//! Tells the program which commit it is built from: its first 12 digits, with `-dirty` where the sources
//! have changes that are not committed; `unknown` outside a git checkout. `WEFT_COMMIT` in the environment
//! of the build says it instead.

use std::process::Command;

/// What the program is made of; as anything of it changes, a clean tree may have become a dirty one.
const SOURCES: [&str; 3] = ["../../Cargo.toml", "../../Cargo.lock", "build.rs"];

fn main() {
    println!("cargo::rerun-if-env-changed=WEFT_COMMIT");
    SOURCES.iter().for_each(|path| watch(path));
    for entry in std::fs::read_dir("..").into_iter().flatten().flatten() {
        watch(&entry.path().join("src").display().to_string());
    }
    // HEAD names the branch, the log of it grows whenever it or the branch moves.
    for name in ["HEAD", "logs/HEAD"] {
        git(&["rev-parse", "--git-path", name]).iter().for_each(|path| watch(path));
    }
    let commit = std::env::var("WEFT_COMMIT").ok().or_else(commit);
    println!("cargo::rustc-env=WEFT_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let dirty = git(&["status", "--porcelain", "--untracked-files=no"]);
    let mark = if dirty.is_some_and(|changes| !changes.is_empty()) { "-dirty" } else { "" };
    Some(commit + mark)
}

/// Output of a git command that succeeds.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}

/// Has the script run again when a path changes. One that is missing would have it run always.
fn watch(path: &str) {
    if std::path::Path::new(path).exists() {
        println!("cargo::rerun-if-changed={path}");
    }
}
