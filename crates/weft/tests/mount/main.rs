//! A kernel mount of a whole cluster in this process, through the eyes of programs.
//!
//! `WEFT_MOUNTPOINT=/mnt/weft cargo test --release -p weft --test mount -- --ignored serve` serves
//! one until it is unmounted, for test suites of others (`WEFT_MOUNT_DEV=1`: with set-id and devices).
#![allow(unsafe_code)] // system calls that std has no words for

mod attrs;
mod cluster;
mod coherent;
mod data;
mod dirs;
mod locks;
mod names;
mod sys;
mod together;

use cluster::{Cluster, Kind};
use std::path::Path;
use weft_fuse::door::DoorConfig;

/// Serves a mount for others; see the top of this file.
#[test]
#[ignore = "serves until unmounted"]
fn serve() {
    let mountpoint =
        std::env::var_os("WEFT_MOUNTPOINT").expect("WEFT_MOUNTPOINT names a directory");
    let mut config = DoorConfig::default();
    if std::env::var_os("WEFT_MOUNT_DEV").is_some() {
        (config.options.nosuid, config.options.nodev) = (false, false);
    }
    let cluster = Cluster::start();
    let (client, mounted) = cluster.mount_on(Path::new(&mountpoint), Kind::WritesThrough, config);
    mounted.wait();
    client.unmount().unwrap();
}
