//! The house rules that a machine can check: directions of dependencies, sizes of files, no `unsafe` and
//! no direct clock, file or socket where it does not belong.

use std::fs;
use std::path::{Path, PathBuf};

/// Which crates of ours each crate may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("weft-model", &[]),
    ("weft-rocksdb", &[]),
    ("weft-rpc", &["weft-model"]),
    ("weft-store", &["weft-model", "weft-rocksdb"]),
    ("weft-manager", &["weft-model", "weft-rpc", "weft-store"]),
    ("weft-mds", &["weft-model", "weft-rpc", "weft-store"]),
    ("weft-oss", &["weft-model", "weft-rpc", "weft-store"]),
    ("weft-client", &["weft-model", "weft-rpc"]),
    ("weft-fuse", &["weft-model", "weft-client"]),
    ("weft-preload", &["weft-model", "weft-rpc", "weft-client"]),
    ("weft-lossy", &["weft-fuse"]),
    ("weft-admin", &["weft-model", "weft-rpc"]),
    (
        "weft-eval",
        &["weft-model", "weft-rpc", "weft-store", "weft-client", "weft-fuse", "weft-admin"],
    ),
    ("weft-study", &["weft-model", "weft-eval"]),
    (
        "weft-sim",
        &[
            "weft-model",
            "weft-rpc",
            "weft-store",
            "weft-manager",
            "weft-mds",
            "weft-oss",
            "weft-client",
        ],
    ),
];

/// Longest source file.
const MAX_LINES: usize = 800;

fn root() -> PathBuf {
    // Tests run in the directory of their package. Clones may share what is built, so it does not have the path.
    Path::new("../..").canonicalize().unwrap()
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Our crates in the `[dependencies]` of a manifest.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest.split("\n[dependencies]").nth(1).unwrap_or("");
    let section = section.split("\n[").next().unwrap_or("");
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| name.starts_with("weft-")).map(String::from).collect()
}

#[test]
fn dependencies_point_one_way() {
    for (name, allowed) in ALLOWED {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let Ok(manifest) = fs::read_to_string(&path) else { continue };
        for dependency in dependencies(&manifest) {
            assert!(
                allowed.contains(&dependency.as_str()),
                "{name} must not depend on {dependency}"
            );
        }
    }
    for entry in fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let known = name == "weft" || ALLOWED.iter().any(|(allowed, _)| *allowed == name);
        assert!(known, "{name} has no row in the table of dependencies");
    }
}

#[test]
fn files_stay_readable() {
    let mut files = Vec::new();
    rust_files(&root().join("crates"), &mut files);
    assert!(files.len() > 50);
    for file in files {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines", file.display());
    }
}

#[test]
fn the_model_is_pure() {
    let mut files = Vec::new();
    rust_files(&root().join("crates/weft-model/src"), &mut files);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for banned in
            ["std::fs", "std::net", "std::thread", "SystemTime", "Instant::now", "unsafe "]
        {
            assert!(!text.contains(banned), "{} uses {banned}", file.display());
        }
    }
}

#[test]
fn servers_and_clients_ask_the_environment_for_time() {
    for name in ["weft-manager", "weft-mds", "weft-oss", "weft-client"] {
        let mut files = Vec::new();
        rust_files(&root().join("crates").join(name).join("src"), &mut files);
        for file in files.iter().filter(|file| !file.to_string_lossy().contains("test")) {
            let text = fs::read_to_string(file).unwrap();
            for banned in ["SystemTime::now", "std::fs::", "std::net::", "#![allow(unsafe_code)]"] {
                assert!(!text.contains(banned), "{} uses {banned}", file.display());
            }
        }
    }
}
