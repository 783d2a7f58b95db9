//! Reading directories while they change.

use crate::cluster::Cluster;
use crate::sys::Dir;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const ENTRIES: usize = 5000;

#[test]
fn what_stays_is_listed_once_while_other_names_come_and_go() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    let top = mount.path("dir");
    fs::create_dir(&top).unwrap();
    (0..ENTRIES).for_each(|number| drop(File::create(top.join(format!("keep{number}"))).unwrap()));
    let ended = Arc::new(AtomicBool::new(false));
    let (stop, place) = (ended.clone(), top.clone());
    let churn = std::thread::spawn(move || {
        for number in (0..).take_while(|_| !stop.load(Relaxed)) {
            let path = place.join(format!("gone{number}"));
            File::create(&path).unwrap();
            fs::remove_file(&path).unwrap();
        }
    });
    for _ in 0..5 {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        Dir::open(&top).for_each(|(name, _, _)| *seen.entry(name).or_default() += 1);
        assert!(seen.values().all(|&times| times == 1));
        assert!(seen.contains_key(".") && seen.contains_key(".."));
        assert_eq!(seen.keys().filter(|name| name.starts_with("keep")).count(), ENTRIES);
    }
    ended.store(true, Relaxed);
    churn.join().unwrap();
    assert_eq!(fs::metadata(&top).unwrap().size(), ENTRIES as u64);
    places_can_be_returned_to(&top);
}

fn places_can_be_returned_to(top: &std::path::Path) {
    let mut dir = Dir::open(top);
    let mut places = Vec::new();
    loop {
        let place = dir.tell();
        let Some((name, ..)) = dir.next() else { break };
        places.push((place, name));
    }
    assert_eq!(places.len(), ENTRIES + 2);
    for (place, name) in places.iter().rev().step_by(97) {
        dir.seek(*place);
        assert_eq!(dir.next().as_ref().map(|(name, ..)| name), Some(name));
    }
    // A place stays one after the directory was closed, and after its entry has gone.
    let (place, name) = &places[ENTRIES / 2];
    fs::remove_file(top.join(name)).unwrap();
    let mut dir = Dir::open(top);
    dir.seek(*place);
    assert_eq!(dir.next().map(|(name, ..)| name).as_ref(), Some(&places[ENTRIES / 2 + 1].1));
}

#[test]
fn entries_tell_number_and_type() {
    let cluster = Cluster::start();
    let mount = cluster.mount();
    fs::create_dir(mount.path("dir")).unwrap();
    File::create(mount.path("dir/file")).unwrap();
    fs::create_dir(mount.path("dir/sub")).unwrap();
    let number = |name| fs::metadata(mount.path(name)).unwrap().ino();
    let mut listed: Vec<_> = Dir::open(&mount.path("dir")).collect();
    listed.sort();
    let wanted = [
        (".", number("dir"), libc::DT_DIR),
        ("..", number(""), libc::DT_DIR),
        ("file", number("dir/file"), libc::DT_REG),
        ("sub", number("dir/sub"), libc::DT_DIR),
    ];
    assert_eq!(listed, wanted.map(|(name, number, kind)| (name.to_string(), number, kind)));
}
