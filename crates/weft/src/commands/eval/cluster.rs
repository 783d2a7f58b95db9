//! A cluster of a study, with its clients, in a directory of its own.

use super::tool::{Tool, line, words};
use crate::node::read_state_files;
use crate::process::ProcessId;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weft_study::point::Cluster as Spec;

/// Longest orderly stop of a server.
const STOP_PATIENCE: Duration = Duration::from_secs(60);

/// A cluster that is up, until it is dropped.
pub struct Cluster {
    spec: Spec,
    dir: PathBuf,
    mounts: Vec<PathBuf>,
    tool: Tool,
    /// The commands that have made it.
    pub commands: Vec<String>,
}

impl Cluster {
    /// Makes, starts and mounts a cluster in `dir`, which is not there yet.
    ///
    /// # Errors
    /// Those of its commands; what was started is stopped again.
    pub fn start(spec: &Spec, dir: &Path, tool: &Tool) -> Result<Cluster, String> {
        let mut cluster = Cluster {
            spec: spec.clone(),
            dir: dir.to_path_buf(),
            mounts: vec![dir.join("mnt")],
            tool: tool.clone(),
            commands: Vec::new(),
        };
        cluster.run(up(spec, dir))?;
        let address = std::fs::read_to_string(dir.join("run/address"))
            .map_err(|error| format!("the cluster has no address: {error}"))?;
        for number in 1..spec.clients {
            let mount = dir.join(format!("mnt{number}"));
            std::fs::create_dir_all(&mount).map_err(|e| format!("dir={}: {e}", mount.display()))?;
            let key = dir.join("cluster.key");
            let log = dir.join(format!("log/mnt{number}.log"));
            let mut command = words(&format!("mount {}", address.trim().replace('\n', ",")));
            command.push(text(&mount));
            command.extend([
                "--key".into(),
                text(&key),
                "-o".into(),
                format!("log={}", text(&log)),
            ]);
            cluster.run(command)?;
            cluster.mounts.push(mount);
        }
        cluster.fit(spec)?;
        Ok(cluster)
    }

    /// Whether points with this specification can be measured on it.
    pub fn fits(&self, spec: &Spec) -> bool {
        Spec { layout: Vec::new(), ..self.spec.clone() }
            == Spec { layout: Vec::new(), ..spec.clone() }
    }

    /// Sets the layout of new files.
    ///
    /// # Errors
    /// Those of `weft setstripe`.
    pub fn fit(&mut self, spec: &Spec) -> Result<(), String> {
        let work = text(&self.mounts[0].join("eval"));
        std::fs::create_dir_all(&work).map_err(|error| format!("dir={work}: {error}"))?;
        let options = if spec.layout.is_empty() { vec!["-d".into()] } else { spec.layout.clone() };
        let mut command = words("setstripe");
        command.extend(options);
        command.push(work);
        self.spec = spec.clone();
        self.run(command)
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory to work in, on each mount.
    pub fn work_dirs(&self) -> Vec<String> {
        self.mounts.iter().map(|mount| text(&mount.join("eval"))).collect()
    }

    /// Ends server processes: in order, or at once.
    ///
    /// # Errors
    /// A name that none of them has; one that does not stop.
    pub fn end(&self, components: &[String], orderly: bool) -> Result<(), String> {
        let running = read_state_files(&self.dir.join("run")).map_err(|error| error.to_string())?;
        let find = |name: &String| -> Result<ProcessId, String> {
            let found = running.iter().find(|state| state.name == *name);
            found.map(|state| state.process).ok_or_else(|| format!("no server {name} runs"))
        };
        let processes: Vec<ProcessId> = components.iter().map(find).collect::<Result<_, _>>()?;
        for process in processes {
            if !orderly {
                process.kill();
            } else if !process.stop(STOP_PATIENCE) {
                return Err(format!("process {} does not stop", process.pid));
            }
        }
        Ok(())
    }

    /// Starts the servers that do not run.
    ///
    /// # Errors
    /// Those of `weft dev up`.
    pub fn start_again(&self) -> Result<(), String> {
        self.tool.run(&words(&format!("dev up --dir {}", self.dir.display()))).map(drop)
    }

    fn run(&mut self, args: Vec<String>) -> Result<(), String> {
        self.commands.push(line(&args));
        self.tool.run(&args).map(drop)
    }
}

/// The command that makes the cluster.
fn up(spec: &Spec, dir: &Path) -> Vec<String> {
    let mut args = words(&format!(
        "dev up --processes --osts {} --osts-per-server {}",
        spec.osts, spec.osts_per_server
    ));
    args.extend(["--dir".into(), text(dir), "--mount".into(), text(&dir.join("mnt"))]);
    if spec.mdt_with_osts {
        args.push("--mdt-with-osts".into());
    }
    for (option, speed) in [("--throttle-ost", spec.ost_speed), ("--throttle-mdt", spec.mdt_speed)]
    {
        if let Some(speed) = speed {
            args.extend([option.to_string(), speed.to_string()]);
        }
    }
    args
}

/// Nothing of it is left, however it ended.
impl Drop for Cluster {
    fn drop(&mut self) {
        let told = |outcome: Result<String, String>| {
            if let Err(why) = outcome {
                eprintln!("weft: {why}");
            }
        };
        for mount in self.mounts.iter().skip(1) {
            told(self.tool.run_to_the_end(&["umount".into(), text(mount)]));
        }
        told(self.tool.run_to_the_end(&[
            "dev".into(),
            "down".into(),
            "--dir".into(),
            text(&self.dir),
        ]));
        if let Err(error) = std::fs::remove_dir_all(&self.dir) {
            eprintln!("weft: cannot remove dir={}: {error}", self.dir.display());
        }
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
