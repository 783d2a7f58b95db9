//! A target: a directory with a superblock, a key-value store and, on an OST, objects.
//!
//! ```text
//! superblock  what it is            lock   who has it open
//! state       how it was left       kv/    the key-value store
//! objects/    00 .. ff, an OST's objects and their checksums
//! intents     an OST's writes in progress
//! ```

use crate::files::{self, Lock};
use crate::kv::{Batch, Kv, POWER_LOST, Profile, RocksKv};
use crate::objects::{FsObjects, ObjectStore, ObjectsConfig, StatFs};
use crate::space::{self, Gauge};
use crate::superblock::{self, INLINE_DATA, SUMS_4K, Superblock, Uuid};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_model::{ErrorKind, FsError, Result, TargetId, TargetKind};

pub use crate::files::LastStop;

const KV_DIR: &str = "kv";
/// Everything a target directory may hold, in the order in which a new format removes it.
const OUR_NAMES: &[&str] = &[
    superblock::FILE,
    "superblock.new",
    "state",
    "state.new",
    KV_DIR,
    "kv.verify",
    crate::objects::DIR,
    crate::objects::INTENTS,
    "lock",
];

/// What [`Target::format`] needs to know.
#[derive(Clone, Debug)]
pub struct FormatParams {
    /// The cluster it will belong to.
    pub cluster: Uuid,
    /// Its kind and number there.
    pub target: TargetId,
    /// Time, seconds since the epoch.
    pub created: u64,
    /// Destroy what a target that is already in the directory holds.
    pub force: bool,
}

/// What [`Target::open`] expects and how the target is run.
#[derive(Clone, Debug, Default)]
pub struct OpenParams {
    /// Refuse a target of another cluster.
    pub cluster: Option<Uuid>,
    /// Refuse another target.
    pub target: Option<TargetId>,
    /// Sizes of the key-value store; by default those for the target's kind.
    pub profile: Option<Profile>,
    /// Bytes that data may not use; by default 1 % of the file system, at least 64 MiB (MDT: 256 MiB).
    pub reserve: Option<u64>,
    /// How objects are kept (OST only).
    pub objects: ObjectsConfig,
}

/// Space of a target.
pub type Space = StatFs;

/// An open target. Dropping it without [`Target::close`] is like a crash of the process: safe, but
/// the next open has to look after it.
pub struct Target {
    dir: PathBuf,
    superblock: Superblock,
    last_stop: LastStop,
    gauge: Arc<Gauge>,
    kv: Arc<dyn Kv>,
    objects: Option<Arc<FsObjects>>,
    _lock: Lock,
}

impl Target {
    /// Makes a target in `dir`, which is made if need be and otherwise must be empty.
    ///
    /// A crash leaves either no target, and the next format cleans up, or a whole one.
    ///
    /// # Errors
    /// `Exists` when there is a target and `force` is not given; `NotEmpty` when there is anything
    /// else, whatever `force` says; `Busy` when it is open.
    pub fn format(dir: &Path, params: &FormatParams) -> Result<Superblock> {
        fs::create_dir_all(dir).map_err(|e| files::fail("format", dir, &e))?;
        refuse_strangers(dir, params.force)?;
        let _lock = Lock::take(dir)?;
        remove_remains(dir)?;
        let is_ost = params.target.kind == TargetKind::Ost;
        if is_ost {
            FsObjects::format(dir)?;
        }
        let kv = RocksKv::create(&dir.join(KV_DIR), profile_of(params.target.kind))?;
        kv.sync()?;
        drop(kv);
        files::record_state(dir, false)?;
        let mut superblock = Superblock {
            cluster: params.cluster,
            target: params.target,
            uuid: Uuid::random()?,
            created: params.created,
            compat: Vec::new(),
            ro_compat: Vec::new(),
            incompat: features_of(params.target.kind).iter().map(|&name| name.into()).collect(),
            sequence: 0,
        };
        superblock.store(dir)?;
        let path = fs::canonicalize(dir).map_err(|e| files::fail("format", dir, &e))?;
        path.parent().map_or(Ok(()), files::sync_dir)?;
        Ok(superblock)
    }

    /// Opens the target in `dir` for this process alone and repairs what a crash has left.
    ///
    /// # Errors
    /// As [`Superblock::load`]; `Invalid` when it is not the target or the cluster expected;
    /// `Busy`, naming the process that has it open; `Corrupt` or `Checksum` when its store is
    /// damaged. Nothing is changed then.
    pub fn open(dir: &Path, params: &OpenParams) -> Result<Target> {
        let mut superblock = Superblock::load(dir)?;
        check_identity(dir, &superblock, params)?;
        let lock = Lock::take(dir)?;
        let features = features_of(superblock.target.kind);
        superblock.add_features(dir, features)?;
        let last_stop = files::last_stop(dir)?;
        let kind = superblock.target.kind;
        let profile = params.profile.unwrap_or(profile_of(kind));
        let reserve = match params.reserve {
            Some(bytes) => bytes,
            None => space::default_reserve(dir, least_reserve(kind))?,
        };
        let gauge = Arc::new(Gauge::new(dir, reserve)?);
        let kv: Arc<dyn Kv> = Arc::new(RocksKv::open(&dir.join(KV_DIR), profile)?);
        let objects = match kind {
            TargetKind::Ost => {
                let gauge = gauge.clone();
                Some(FsObjects::open(dir, kv.clone(), gauge, last_stop, &params.objects)?)
            }
            TargetKind::Mdt | TargetKind::Mgt => None,
        };
        if kind == TargetKind::Mdt && last_stop == LastStop::PowerLoss {
            kv.write(Batch::new().put(&POWER_LOST, &[]))?;
        }
        // Only now: a crash during the repair must be followed by the same repair.
        files::record_state(dir, true)?;
        let dir = dir.to_path_buf();
        Ok(Target { dir, superblock, last_stop, gauge, kv, objects, _lock: lock })
    }

    /// What the superblock says.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Its kind and number.
    pub fn id(&self) -> TargetId {
        self.superblock.target
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How it had been left before this open.
    pub fn last_stop(&self) -> LastStop {
        self.last_stop
    }

    /// The key-value store.
    pub fn kv(&self) -> &Arc<dyn Kv> {
        &self.kv
    }

    /// The objects, on an OST.
    pub fn objects(&self) -> Option<Arc<dyn ObjectStore>> {
        self.objects.clone().map(|objects| objects as Arc<dyn ObjectStore>)
    }

    /// Space; what is available is less the reserve.
    ///
    /// # Errors
    /// What the file system says.
    pub fn space(&self) -> Result<Space> {
        self.gauge.statfs()
    }

    /// Asks whether `bytes` more may be stored, for whatever makes the store grow. (Objects ask by
    /// themselves; removals need not ask.) Cheap.
    ///
    /// # Errors
    /// `NoSpace` when only the reserve is left.
    pub fn admit(&self, bytes: u64) -> Result<()> {
        self.gauge.admit(bytes)
    }

    /// Puts everything on stable storage and records that it was closed. Whoever still has its
    /// store must not write any more.
    ///
    /// # Errors
    /// What the disk says; the target then counts as crashed.
    pub fn close(self) -> Result<()> {
        if let Some(objects) = &self.objects {
            objects.close()?;
        }
        self.kv.sync()?;
        files::record_state(&self.dir, false)
    }
}

/// Incompatible features in use.
const fn features_of(kind: TargetKind) -> &'static [&'static str] {
    match kind {
        TargetKind::Ost => &[SUMS_4K],
        TargetKind::Mdt => &[INLINE_DATA],
        TargetKind::Mgt => &[],
    }
}

fn profile_of(kind: TargetKind) -> Profile {
    match kind {
        TargetKind::Mdt => Profile::METADATA,
        TargetKind::Ost | TargetKind::Mgt => Profile::SMALL,
    }
}

fn least_reserve(kind: TargetKind) -> u64 {
    match kind {
        TargetKind::Mdt => space::MIN_RESERVE_MDT,
        TargetKind::Ost | TargetKind::Mgt => space::MIN_RESERVE,
    }
}

fn check_identity(dir: &Path, superblock: &Superblock, params: &OpenParams) -> Result<()> {
    let wrong = |have: String, want: String| {
        FsError::new(ErrorKind::Invalid, "open target")
            .on(format!("dir={}", dir.display()))
            .because(format!("the directory holds {have}, expected {want}"))
    };
    if let Some(cluster) = params.cluster.filter(|&cluster| cluster != superblock.cluster) {
        let have = format!("a target of cluster {}", superblock.cluster);
        return Err(wrong(have, format!("cluster {cluster}")));
    }
    if let Some(target) = params.target.filter(|&target| target != superblock.target) {
        return Err(wrong(superblock.target.to_string(), target.to_string()));
    }
    Ok(())
}

/// Lets a format go on only where it destroys nothing but what it may.
fn refuse_strangers(dir: &Path, force: bool) -> Result<()> {
    let subject = format!("dir={}", dir.display());
    if dir.join(superblock::FILE).exists() && !force {
        let what = Superblock::load(dir).map_or("a target".to_owned(), |s| s.target.to_string());
        return Err(FsError::new(ErrorKind::Exists, "format")
            .on(subject)
            .because(format!("holds {what} already; force destroys it")));
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(|e| files::fail("format", dir, &e))? {
        let entry = entry.map_err(|e| files::fail("format", dir, &e))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| name != "lost+found");
    let stranger = names.iter().find(|name| !OUR_NAMES.contains(&name.as_str()));
    // What a format leaves when it is cut short has at least its lock.
    let ours = names.is_empty() || names.iter().any(|name| name == "lock");
    match stranger.or(if ours { None } else { names.first() }) {
        None => Ok(()),
        Some(name) => Err(FsError::new(ErrorKind::NotEmpty, "format")
            .on(subject)
            .because(format!("holds {name:?}, which is not of a target; empty it by hand"))),
    }
}

/// Removes what an earlier target, or a format cut short, has left; the superblock first.
fn remove_remains(dir: &Path) -> Result<()> {
    for name in OUR_NAMES.iter().filter(|&&name| name != "lock") {
        let path = dir.join(name);
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(files::fail("format", &path, &error));
            }
            Ok(()) if *name == superblock::FILE => files::sync_dir(dir)?,
            _ => {}
        }
    }
    Ok(())
}
