//! A client of one file system, made when it is needed first, and what goes with it.

use crate::cache::{Cache, Change};
use crate::caller;
use crate::config::Entry;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Once};
use weft_client::{Client, ClientConfig, DirHandle, Keeping, OpenFile};
use weft_model::{ErrorKind, FsError, Result};
use weft_rpc::ClusterKey;
use weft_rpc::SystemEnv;

/// Files whose closing nobody waits for; whoever closes more waits.
const MAX_CLOSING: usize = 512;
/// Permission bits that a key file must not have.
const OTHERS: u32 = 0o077;
/// Bytes that may wait to be written behind. Less than in a mount: there may be many such processes.
const MAX_PENDING: usize = 64 << 20;

/// What is open at the servers.
#[derive(Debug)]
pub enum Handle {
    /// A file.
    File(OpenFile),
    /// A directory.
    Dir(DirHandle),
    /// Nothing: a place that was opened with `O_PATH`.
    Place,
}

/// A client, its caches, and the thread that closes.
pub struct Live {
    /// The client.
    pub client: Arc<Client>,
    /// Names and attributes.
    pub cache: Arc<Cache>,
    closing: Arc<Closing>,
}

#[derive(Default)]
struct Closing {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

#[derive(Default)]
struct Jobs {
    queue: VecDeque<Job>,
    at_work: bool,
    ended: bool,
}

/// A handle to be closed, and what ends with it.
struct Job {
    handle: Arc<Handle>,
    flock_owner: Option<u64>,
    _change: Option<Change>,
}

impl Live {
    /// Mounts.
    ///
    /// # Errors
    /// Those of the key file and the servers.
    pub fn start(entry: &Entry) -> Result<Live> {
        tell_on_stderr();
        let key = entry.key.as_deref().map(read_key).transpose()?;
        let config = ClientConfig {
            managers: entry.device.managers.clone(),
            key,
            host: host_name(),
            mountpoint: format!(
                "{} (process {})",
                String::from_utf8_lossy(&entry.prefix),
                std::process::id()
            ),
            policy: entry.policy,
            volume: entry.volume.clone(),
            subtree: entry.device.subtree.as_bytes().to_vec(),
            caches: entry.caches,
            delegations: entry.caches,
            writes_behind: entry.caches && entry.writes_behind,
            max_pending: MAX_PENDING,
            // Done per open file, in memory of the library's: see `ahead`.
            max_ahead: 0,
            ahead_chunk: 0,
            polls_locks: false,
        };
        let client = Client::mount(config, None, Arc::new(SystemEnv::new()))?;
        let cache = Arc::new(Cache::new(client.clone()));
        if entry.caches {
            let keeping: Arc<dyn Keeping> = cache.clone();
            client.start_caching(&keeping)?;
        }
        let closing = Arc::new(Closing::default());
        let (theirs, closer) = (closing.clone(), client.clone());
        let thread = std::thread::Builder::new().name("weft-closing".into());
        let started = thread.spawn(move || theirs.run(&closer));
        started.map_err(|error| FsError::from_io("start closing thread", &error))?;
        Ok(Live { client, cache, closing })
    }

    /// Closes a handle soon. What could not be written is in the log, as with a mount.
    pub fn close(&self, handle: Arc<Handle>, flock_owner: Option<u64>, change: Option<Change>) {
        let job = Job { handle, flock_owner, _change: change };
        let mut jobs = self.closing.jobs.lock();
        if jobs.queue.len() < MAX_CLOSING && !jobs.ended {
            jobs.queue.push_back(job);
            drop(jobs);
            self.closing.changed.notify_all();
        } else {
            drop(jobs);
            close(&self.client, &job);
        }
    }

    /// Closes everything, has everything stored, and leaves.
    pub fn leave(&self) {
        {
            let mut jobs = self.closing.jobs.lock();
            jobs.ended = true;
            self.closing.changed.notify_all();
            while jobs.at_work || !jobs.queue.is_empty() {
                self.closing.changed.wait(&mut jobs);
            }
        }
        if let Err(error) = self.client.unmount() {
            eprintln!("weft: servers have not taken everything: {error}");
        }
    }
}

impl Closing {
    fn run(&self, client: &Client) {
        let mut jobs = self.jobs.lock();
        loop {
            if let Some(job) = jobs.queue.pop_front() {
                jobs.at_work = true;
                drop(jobs);
                close(client, &job);
                drop(job);
                jobs = self.jobs.lock();
                jobs.at_work = false;
                self.changed.notify_all();
            } else if jobs.ended {
                return;
            } else {
                self.changed.wait(&mut jobs);
            }
        }
    }
}

fn close(client: &Client, job: &Job) {
    let ctx = caller::ctx();
    let closed = match &*job.handle {
        Handle::File(file) => client.close(&ctx, file, job.flock_owner),
        Handle::Dir(dir) => client.closedir(&ctx, dir),
        Handle::Place => Ok(()),
    };
    if let Err(error) = closed {
        eprintln!("weft: cannot close a file: {error}");
    }
}

/// Has warnings told, such as of servers that do not answer, once for the process.
fn tell_on_stderr() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let plain = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false);
        // Fails if there is one, which tells as well.
        let _ = plain.with_max_level(tracing_subscriber::filter::LevelFilter::WARN).try_init();
    });
}

fn host_name() -> String {
    // SAFETY: all bytes zero is a valid value; the kernel fills it in.
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: it has room for what the kernel writes.
    unsafe { libc::uname(&raw mut name) };
    let bytes = name.nodename.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8);
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

/// Reads a key file, which nobody but its owner may read.
fn read_key(path: &Path) -> Result<ClusterKey> {
    let named = |why: String| {
        FsError::new(ErrorKind::Denied, "read key")
            .on(format_args!("file={}", path.display()))
            .because(why)
    };
    let metadata = std::fs::metadata(path).map_err(|error| named(error.to_string()))?;
    if metadata.mode() & OTHERS != 0 {
        return Err(named(format!("it can be read by others; chmod 600 {}", path.display())));
    }
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    ClusterKey::parse(&text).map_err(|error| named(error.to_string()))
}
