//! The directory of a development cluster: what is in it, and the configurations that follow.

use super::ports::Claim;
use super::shape::Shape;
use crate::node::NodeConfig;
use crate::node::config::{MountConfig, TargetConfig, Tuning};
use crate::{files, keys, mounts};
use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{getegid, geteuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weft_model::TargetId;
use weft_rpc::ClusterKey;
use weft_store::superblock::Uuid;
use weft_store::{FormatParams, Target};

/// Name of the process when there is only one.
pub const ALL: &str = "weft";
/// Name of the manager's process.
const MANAGER: &str = "manager";
/// Longest path that a Unix socket may have.
const MAX_SOCKET_PATH: usize = 107;
/// OSTs unless told otherwise: enough to see striping.
const DEFAULT_OSTS: u16 = 4;
/// Longest wait for another `weft dev` on the same directory.
const LOCK_PATIENCE: Duration = Duration::from_secs(120);

/// A cluster's directory, and what `dev.toml` says of it.
pub struct Home {
    dir: PathBuf,
    book: Book,
    /// Ports of the servers that were started.
    claims: Vec<Claim>,
    _lock: Option<File>,
}

/// Contents of `dev.toml`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    cluster: String,
    osts: u16,
    mount: PathBuf,
    /// Mount options, separated by commas.
    #[serde(default)]
    options: String,
    /// Whether it was last started as several processes.
    #[serde(default)]
    processes: bool,
    #[serde(default)]
    shape: Shape,
    /// Ports by process, so that clients find it where it was.
    #[serde(default)]
    ports: BTreeMap<String, u16>,
}

impl Home {
    /// Opens the cluster in `dir`, or makes one; what is asked for and was not there before is added.
    /// Others who want to start or stop it wait.
    ///
    /// # Errors
    /// When there is less than the cluster has, and those of the disk.
    pub fn make(
        dir: &Path,
        osts: Option<u16>,
        mount: Option<PathBuf>,
        options: Option<String>,
    ) -> anyhow::Result<Home> {
        files::make_dir(&dir.join("run"))?;
        files::make_dir(&dir.join("log"))?;
        let lock = Some(lock(dir)?);
        let book = match read_book(dir)? {
            Some(book) => book,
            None => Book {
                cluster: Uuid::random()?.to_string(),
                osts: osts.unwrap_or(DEFAULT_OSTS),
                mount: mounts::resolve(&dir.join("mnt"))?,
                options: String::new(),
                processes: false,
                shape: Shape::default(),
                ports: BTreeMap::new(),
            },
        };
        let mut home = Home { dir: dir.to_path_buf(), book, claims: Vec::new(), _lock: lock };
        if let Some(options) = options {
            home.book.options = options;
        }
        if let Some(osts) = osts {
            if osts < home.book.osts {
                bail!("the cluster in dir={} has {} OSTs already", dir.display(), home.book.osts);
            }
            home.book.osts = osts;
        }
        if let Some(mount) = mount {
            home.book.mount = mounts::resolve(&mount)?;
        }
        home.store()?;
        if !home.key_file().exists() {
            keys::write(&home.key_file(), &ClusterKey::generate()?)?;
        }
        home.format_missing()?;
        Ok(home)
    }

    /// Spreads the targets over servers, and limits their speed, from the next start on.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn reshape(&mut self, shape: &Shape) -> anyhow::Result<()> {
        self.book.shape.change(shape);
        self.store()
    }

    /// Opens the cluster in `dir` to look at it; none if there is none.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn look(dir: &Path) -> anyhow::Result<Option<Home>> {
        Ok(read_book(dir)?.map(|book| Home {
            dir: dir.to_path_buf(),
            book,
            claims: Vec::new(),
            _lock: None,
        }))
    }

    /// Lets nobody else start or stop the cluster meanwhile.
    ///
    /// # Errors
    /// When somebody else does for too long.
    pub fn locked(mut self) -> anyhow::Result<Home> {
        self._lock = Some(lock(&self.dir)?);
        Ok(self)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where it is to be mounted.
    pub fn mountpoint(&self) -> &Path {
        &self.book.mount
    }

    /// Options of the mount, separated by commas.
    pub fn mount_options(&self) -> &str {
        &self.book.options
    }

    /// The cluster's key.
    pub fn key_file(&self) -> PathBuf {
        self.dir.join("cluster.key")
    }

    /// Where processes tell of themselves.
    pub fn run_dir(&self) -> PathBuf {
        self.dir.join("run")
    }

    /// The log of a process.
    pub fn log_file(&self, name: &str) -> PathBuf {
        self.dir.join("log").join(format!("{name}.log"))
    }

    /// Addresses of the manager, as the last start has written them down.
    ///
    /// # Errors
    /// When it has never been started.
    pub fn addresses(&self) -> anyhow::Result<Vec<String>> {
        let file = self.run_dir().join("address");
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("file={}; has the cluster ever been up?", file.display()))?;
        Ok(text.lines().map(str::to_string).collect())
    }

    /// The configuration of the one process that does it all.
    ///
    /// # Errors
    /// When there is no port left.
    pub fn one_process(&mut self) -> anyhow::Result<NodeConfig> {
        let mut config = self.process(ALL, &[])?;
        let socket = self.run_dir().join("weft.sock");
        if socket.as_os_str().len() <= MAX_SOCKET_PATH {
            config.listen.insert(0, format!("unix:{}", socket.display()));
        }
        config.manager = Some(self.target(TargetId::MGT));
        config.mdt = vec![self.target(TargetId::mdt(0))];
        config.ost = (0..self.book.osts).map(|index| self.target(TargetId::ost(index))).collect();
        config.mount =
            vec![MountConfig { dir: self.book.mount.clone(), options: self.book.options.clone() }];
        self.finish(&config.listen, false)?;
        Ok(config)
    }

    /// The configurations of one process per server, in the order in which they are started. (The
    /// mount is a process of its own, too.)
    ///
    /// # Errors
    /// When there is no port left.
    pub fn processes(&mut self) -> anyhow::Result<Vec<NodeConfig>> {
        let mut manager = self.process(MANAGER, &[])?;
        manager.manager = Some(self.target(TargetId::MGT));
        let managers = manager.listen.clone();
        let mut configs = vec![manager];
        for server in 0..self.book.shape.servers(self.book.osts) {
            let mut oss = self.process(&format!("oss{server}"), &managers)?;
            let osts = self.book.shape.osts_of(server, self.book.osts);
            oss.ost = osts.map(|index| self.target(TargetId::ost(index))).collect();
            configs.push(oss);
        }
        let mdt = self.target(TargetId::mdt(0));
        if self.book.shape.mdt_with_osts {
            configs[1].mdt = vec![mdt];
        } else {
            let mut mds = self.process("mds0", &managers)?;
            mds.mdt = vec![mdt];
            configs.push(mds);
        }
        self.finish(&managers, true)?;
        Ok(configs)
    }

    /// Writes a configuration for its process.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn write_config(&self, config: &NodeConfig) -> anyhow::Result<PathBuf> {
        config.check()?;
        let path = self.run_dir().join(format!("{}.toml", config.node));
        files::replace(&path, toml::to_string(config)?.as_bytes(), 0o644)?;
        Ok(path)
    }

    fn process(&mut self, name: &str, managers: &[String]) -> anyhow::Result<NodeConfig> {
        let port = match self.is_running(name)? {
            true => self.book.ports.get(name).copied().unwrap_or_default(),
            false => self.claim_port(name)?,
        };
        Ok(NodeConfig {
            node: name.to_string(),
            listen: vec![format!("127.0.0.1:{port}")],
            managers: managers.to_vec(),
            key: Some(self.key_file()),
            cluster: Some(self.book.cluster.clone()),
            metrics: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            run_dir: Some(self.run_dir()),
            // It is theirs who make it: without root nobody could give it to them.
            tuning: Tuning {
                root_owner: (geteuid().as_raw(), getegid().as_raw()),
                ..Tuning::default()
            },
            ..NodeConfig::default()
        })
    }

    /// The port at which a process is going to listen: where it did before, if it can.
    fn claim_port(&mut self, name: &str) -> anyhow::Result<u16> {
        let before = self.book.ports.get(name).copied();
        // The process may have been started by us, and have ended.
        self.claims.retain(|claim| Some(claim.port) != before);
        let claim = Claim::any(before)?;
        let port = claim.port;
        self.claims.push(claim);
        self.book.ports.insert(name.to_string(), port);
        Ok(port)
    }

    /// Whether it was last started as several processes.
    pub fn is_apart(&self) -> bool {
        self.book.processes
    }

    /// Names of the servers that ought to run, as it was last started.
    pub fn server_names(&self) -> Vec<String> {
        if !self.book.processes {
            return vec![ALL.to_string()];
        }
        let shape = &self.book.shape;
        let osses = (0..shape.servers(self.book.osts)).map(|index| format!("oss{index}"));
        let mds = (!shape.mdt_with_osts).then(|| "mds0".to_string());
        osses.chain([MANAGER.to_string()]).chain(mds).collect()
    }

    /// Whether any of its servers runs.
    ///
    /// # Errors
    /// Those of the run directory.
    pub fn is_up(&self) -> anyhow::Result<bool> {
        Ok(!crate::node::read_state_files(&self.run_dir())?.is_empty())
    }

    fn is_running(&self, name: &str) -> anyhow::Result<bool> {
        Ok(crate::node::read_state_files(&self.run_dir())?.iter().any(|state| state.name == name))
    }

    fn target(&self, id: TargetId) -> TargetConfig {
        TargetConfig {
            dir: self.target_dir(id),
            index: Some(id.index),
            throttle: self.book.shape.throttle(id.kind),
        }
    }

    fn target_dir(&self, id: TargetId) -> PathBuf {
        self.dir.join(id.to_string().to_lowercase())
    }

    /// Writes down the ports that were chosen, where the manager is, and how it is started.
    fn finish(&mut self, managers: &[String], processes: bool) -> anyhow::Result<()> {
        self.book.processes = processes;
        self.store()?;
        let lines: String = managers.iter().map(|address| format!("{address}\n")).collect();
        files::replace(&self.run_dir().join("address"), lines.as_bytes(), 0o644)
    }

    fn store(&self) -> anyhow::Result<()> {
        files::replace(&self.dir.join("dev.toml"), toml::to_string(&self.book)?.as_bytes(), 0o644)
    }

    fn format_missing(&self) -> anyhow::Result<()> {
        let cluster: Uuid = self.book.cluster.parse().map_err(anyhow::Error::msg)?;
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let osts = (0..self.book.osts).map(TargetId::ost);
        for target in [TargetId::MGT, TargetId::mdt(0)].into_iter().chain(osts) {
            let dir = self.target_dir(target);
            if !dir.join(weft_store::superblock::FILE).exists() {
                Target::format(&dir, &FormatParams { cluster, target, created, force: false })?;
            }
        }
        Ok(())
    }
}

fn read_book(dir: &Path) -> anyhow::Result<Option<Book>> {
    let path = dir.join("dev.toml");
    let named = || format!("file={}", path.display());
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        text => toml::from_str(&text.with_context(named)?).map(Some).with_context(named),
    }
}

fn lock(dir: &Path) -> anyhow::Result<File> {
    let path = dir.join("run/lock");
    let file = File::create(&path).with_context(|| format!("file={}", path.display()))?;
    let deadline = std::time::Instant::now() + LOCK_PATIENCE;
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if std::time::Instant::now() >= deadline {
            bail!("another `weft dev` is at work on dir={}: {error}", dir.display());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(file)
}
