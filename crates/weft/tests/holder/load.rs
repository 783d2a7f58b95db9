//! Programs at work on a mount, each of which knows what it has done and takes no failure.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Names in the directory that is listed over and over.
const LISTED: usize = 1500;

/// How the programs are told to end, and what they measured.
pub struct Work<'a> {
    pub stop: &'a AtomicBool,
}

/// What a program has done.
#[derive(Debug, Default)]
pub struct Done {
    pub operations: u64,
    /// The longest one.
    pub longest: Duration,
}

impl Done {
    fn timed<T>(&mut self, what: &str, act: impl FnOnce() -> std::io::Result<T>) -> T {
        let begun = Instant::now();
        let outcome = act();
        self.operations += 1;
        self.longest = self.longest.max(begun.elapsed());
        outcome.unwrap_or_else(|error| panic!("{what} (operation {}): {error}", self.operations))
    }
}

fn bytes(number: u64, len: usize) -> Vec<u8> {
    let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    seed.iter().copied().cycle().take(len).collect()
}

impl Work<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.load(SeqCst)
    }

    /// Makes and removes names: done twice, each operation would fail.
    pub fn names(&self, dir: &Path) -> Done {
        let mut done = Done::default();
        fs::create_dir(dir).unwrap();
        let mut kept = BTreeSet::new();
        for number in 0.. {
            if !self.goes_on() {
                break;
            }
            let at = |kind: &str| dir.join(format!("{kind}{number}"));
            let content = bytes(number, 1 + number as usize % 9000);
            let mut file = done.timed("create", || File::create_new(at("new")));
            done.timed("write", || file.write_all(&content));
            done.timed("rename", || fs::rename(at("new"), at("kept")));
            done.timed("link", || fs::hard_link(at("kept"), at("link")));
            done.timed("write", || file.write_all(b"more"));
            done.timed("unlink", || fs::remove_file(at("link")));
            done.timed("mkdir", || fs::create_dir(at("dir")));
            done.timed("symlink", || std::os::unix::fs::symlink("x", at("dir").join("symlink")));
            done.timed("unlink", || fs::remove_file(at("dir").join("symlink")));
            done.timed("rmdir", || fs::remove_dir(at("dir")));
            drop(file);
            if number % 3 == 0 {
                done.timed("unlink", || fs::remove_file(at("kept")));
            } else {
                kept.insert(format!("kept{number}"));
            }
            if number % 50 == 49 && number % 3 != 0 {
                let content = done.timed("read", || fs::read(dir.join(format!("kept{number}"))));
                let expected = [&bytes(number, 1 + number as usize % 9000)[..], b"more"].concat();
                assert!(content == expected, "content of {number}");
            }
        }
        let found: BTreeSet<String> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(found, kept);
        done
    }

    /// Appends numbers through one descriptor: each must be there once.
    pub fn appends(&self, path: &Path, flags: i32) -> Done {
        let mut done = Done::default();
        let mut options = OpenOptions::new();
        let mut file =
            options.create_new(true).append(true).custom_flags(flags).open(path).unwrap();
        let mut count = 0u64;
        while self.goes_on() {
            done.timed("append", || file.write_all(&count.to_le_bytes()));
            count += 1;
        }
        done.timed("fsync", || file.sync_all());
        let found = fs::read(path).unwrap();
        let numbers = found.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        let wrong = numbers.enumerate().find(|&(at, number)| at as u64 != number);
        assert_eq!(wrong, None, "in {} of {count} numbers", found.len() / 8);
        assert_eq!(found.len() as u64, count * 8);
        done
    }

    /// Writes large and small pieces anywhere in an open file that has no name, cuts it, and reads it.
    pub fn data(&self, path: &Path) -> Done {
        let mut done = Done::default();
        let mut options = OpenOptions::new();
        let file = options.create_new(true).read(true).write(true).open(path).unwrap();
        fs::remove_file(path).unwrap();
        let mut wanted: Vec<u8> = Vec::new();
        for number in 0u64.. {
            if !self.goes_on() {
                break;
            }
            let seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize;
            let (offset, len) =
                (seed % (2 << 20), 1 + (seed >> 30) % [5000, 1 << 20][number as usize % 2]);
            let data = bytes(number, len);
            done.timed("write", || file.write_all_at(&data, offset as u64));
            wanted.resize(wanted.len().max(offset + len), 0);
            wanted[offset..offset + len].copy_from_slice(&data);
            match number % 16 {
                7 => done.timed("fsync", || file.sync_all()),
                9 => {
                    wanted.truncate(offset);
                    done.timed("truncate", || file.set_len(offset as u64));
                    wanted.resize(offset, 0);
                }
                _ => {}
            }
            let size = done.timed("stat", || file.metadata()).len();
            assert_eq!(size, wanted.len() as u64, "size after {number}");
            let from = (seed >> 20) % (wanted.len() + 1);
            let mut read = vec![0; 100_000.min(wanted.len() - from)];
            done.timed("read", || file.read_exact_at(&mut read, from as u64));
            assert!(read == wanted[from..from + read.len()], "data after {number} at {from}");
        }
        done
    }

    /// Lists a directory that does not change: every name once.
    pub fn lists(&self, dir: &Path) -> Done {
        let mut done = Done::default();
        while self.goes_on() {
            let mut seen = BTreeSet::new();
            let mut entries = done.timed("opendir", || fs::read_dir(dir));
            while let Some(entry) = done.timed("readdir", || entries.next().transpose()) {
                assert!(seen.insert(entry.file_name()), "{:?} twice", entry.file_name());
                if seen.len() % 200 == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            assert_eq!(seen.len(), LISTED);
        }
        done
    }

    /// Holds a lock from beginning to end. One who tries never gets it, one who waits when it is given back.
    pub fn locks(&self, path: &Path) -> Done {
        let mut done = Done::default();
        let open = || OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let (held, other, waiting) = (open().unwrap(), open().unwrap(), open().unwrap());
        held.lock().unwrap();
        let (tell, told) = channel();
        let waiter = std::thread::spawn(move || {
            waiting.lock().unwrap();
            tell.send(()).unwrap();
        });
        while self.goes_on() {
            let tried = done.timed("lock", || match other.try_lock() {
                Err(TryLockError::Error(error)) => Err(error),
                tried => Ok(tried.is_ok()),
            });
            assert!(!tried && told.try_recv().is_err(), "somebody else has the lock");
            std::thread::sleep(Duration::from_millis(1));
        }
        held.unlock().unwrap();
        told.recv_timeout(crate::cluster::PATIENCE).expect("who waits gets the lock");
        waiter.join().unwrap();
        done
    }

    /// All of them at once, while `disturb` does what they must not notice.
    pub fn all(dir: &Path, flags: i32, disturb: impl FnOnce()) -> Vec<(&'static str, Done)> {
        let stop = AtomicBool::new(false);
        let work = Work { stop: &stop };
        let work = &work;
        let at = |name: &str| -> PathBuf { dir.join(name) };
        fs::create_dir(at("lists")).unwrap();
        (0..LISTED).for_each(|n| drop(File::create_new(at("lists").join(n.to_string())).unwrap()));
        std::thread::scope(|scope| {
            let handles = vec![
                ("names", scope.spawn(move || work.names(&at("names")))),
                ("more names", scope.spawn(move || work.names(&at("more names")))),
                ("appends", scope.spawn(move || work.appends(&at("appends"), flags))),
                ("data", scope.spawn(move || work.data(&at("data")))),
                ("lists", scope.spawn(move || work.lists(&at("lists")))),
                ("locks", scope.spawn(move || work.locks(&at("locks")))),
            ];
            // A disturbance that fails must not leave the programs running.
            let disturbed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(disturb));
            stop.store(true, SeqCst);
            let done = handles.into_iter().map(|(name, handle)| (name, handle.join().unwrap()));
            let done = done.collect();
            disturbed.unwrap();
            done
        })
    }
}

/// What is in a file that was read through a descriptor from its beginning.
pub fn read_all(file: &File) -> Vec<u8> {
    let mut all = Vec::new();
    (&*file).read_to_end(&mut all).unwrap();
    all
}
