//! The testbed: clusters of Weft on this machine, clients that are mounts, tools of `weft bench`.

use super::cluster::Cluster;
use super::recovery;
use super::tool::{Tool, line, words};
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_eval::record::{Place, Record};
use weft_study::engine::Testbed;
use weft_study::point::{CLUSTER, Point, Work, fill_in};
use weft_study::results::{Figure, Measured};

/// Clusters, one at a time.
pub struct ClusterBed {
    dir: PathBuf,
    tool: Tool,
    cluster: Option<Cluster>,
    /// Clusters started so far: each has a directory of its own.
    started: u32,
}

impl ClusterBed {
    /// Clusters in `dir`, which must not exist or be empty.
    ///
    /// # Errors
    /// When it is not, or cannot be made.
    pub fn new(dir: &Path, stopping: Arc<AtomicBool>) -> anyhow::Result<ClusterBed> {
        let named = || format!("cannot work in dir={}", dir.display());
        std::fs::create_dir_all(dir).with_context(named)?;
        if std::fs::read_dir(dir).with_context(named)?.next().is_some() {
            bail!(
                "dir={} is not empty; if a study was killed there, `weft dev down --dir` each cluster in it and \
                 remove them, or choose another with --dir",
                dir.display()
            );
        }
        Ok(ClusterBed {
            dir: dir.to_path_buf(),
            tool: Tool { stopping },
            cluster: None,
            started: 0,
        })
    }

    /// The cluster for a point: the one that is up, if it fits.
    fn cluster(&mut self, point: &Point) -> Result<&Cluster, String> {
        let cluster = match self.cluster.take() {
            Some(mut cluster) if cluster.fits(&point.cluster) => {
                cluster.fit(&point.cluster)?;
                cluster
            }
            other => {
                // First the old one goes: two at a time would disturb each other.
                drop(other);
                self.started += 1;
                let dir = self.dir.join(self.started.to_string());
                Cluster::start(&point.cluster, &dir, &self.tool)?
            }
        };
        Ok(self.cluster.insert(cluster))
    }
}

impl Testbed for ClusterBed {
    fn settings(&self) -> BTreeMap<String, String> {
        let place = Place::of(&self.dir);
        [
            ("Clients", "mounts (FUSE), each a process of its own; ranks are processes on them"),
            ("Network", "TCP on the loopback interface of one machine"),
            ("File system below the targets", place.fs.as_str()),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .into()
    }

    fn measure(&mut self, point: &Point) -> Result<Measured, String> {
        let tool = self.tool.clone();
        let cluster = self.cluster(point)?;
        let mut measured = match &point.work {
            Work::Bench(commands) => {
                bench(&tool, commands, &cluster.work_dirs(), Some(cluster.dir()))?
            }
            Work::Recovery { components, orderly } => {
                recovery::measure(cluster, components, *orderly)?
            }
        };
        measured.commands.splice(0..0, cluster.commands.iter().cloned());
        Ok(measured)
    }

    fn interrupted(&self) -> bool {
        self.tool.stopping.load(Ordering::Relaxed)
    }
}

impl Drop for ClusterBed {
    fn drop(&mut self) {
        self.cluster = None;
        // Anything left in it has been told of already.
        let _ = std::fs::remove_dir(&self.dir);
    }
}

/// Runs tools at the same time in the directories of the clients.
///
/// # Errors
/// The first tool's that fails; for a command that needs a cluster where there is none.
pub fn bench(
    tool: &Tool,
    commands: &[Vec<String>],
    dirs: &[String],
    cluster: Option<&Path>,
) -> Result<Measured, String> {
    if cluster.is_none() && commands.iter().flatten().any(|word| word == CLUSTER) {
        return Err("this needs servers".into());
    }
    let home = cluster.map(|dir| dir.display().to_string()).unwrap_or_default();
    let command = |args: &Vec<String>| {
        let fill = |word: &String| match word.as_str() {
            CLUSTER => home.clone(),
            word => fill_in(word, dirs),
        };
        let given = args.iter().map(fill);
        words("bench").into_iter().chain(given).chain(words("--output json")).collect()
    };
    let commands: Vec<Vec<String>> = commands.iter().map(command).collect();
    let outputs: Vec<Result<String, String>> = std::thread::scope(|scope| {
        let running: Vec<_> =
            commands.iter().map(|args| scope.spawn(move || tool.run(args))).collect();
        let panicked = || Err("the thread that runs a tool has panicked".to_string());
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
    });
    let mut measured = Measured::default();
    for (args, output) in commands.iter().zip(outputs) {
        let record: Record = serde_json::from_str(&output?)
            .map_err(|error| format!("`{}` has printed no record: {error}", line(args)))?;
        measured.commands.push(line(args));
        measured.figures.extend(Figure::of(&record));
        measured.notes.push(record.caches.note);
        measured.notes.push(record.fsync.note);
        measured.notes.extend(record.notes);
    }
    Ok(measured)
}
