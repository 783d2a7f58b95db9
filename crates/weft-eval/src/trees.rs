//! Directory trees: making them, looking at every file, removing everything.

use crate::api::Api;
use crate::ranks::job::Member;
use crate::record::{Cpu, Sample};
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Instant;

/// Which trees.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Trees {
    /// How they are reached.
    pub api: String,
    /// Their roots.
    pub dirs: Vec<String>,
    /// Size of the files that are looked for, bytes.
    pub size: u64,
    /// What their names contain.
    pub name: String,
}

/// What a rank has seen.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Seen {
    /// Files that this rank has looked at.
    files: u64,
    /// Those that were looked for.
    matches: u64,
    seconds: f64,
    cpu: Cpu,
}

/// All ranks read all directories; each looks at the attributes of its share of the files.
///
/// # Errors
/// Those of the file system and of other ranks.
pub fn find(member: &Member<'_>, trees: &Trees) -> io::Result<()> {
    let api = member.api(&trees.api)?;
    member.comm.barrier()?;
    let (meter, clock) = (member.meter(), Instant::now());
    let (mut seen, mut number) = (Seen::default(), 0);
    for dir in &trees.dirs {
        walk(member, api.as_ref(), trees, dir, &mut number, &mut seen)?;
    }
    (seen.seconds, seen.cpu) = (clock.elapsed().as_secs_f64(), meter.stop());
    let all = member.comm.exchange(&seen)?;
    if member.comm.rank() > 0 {
        return Ok(());
    }
    let operations: u64 = all.iter().map(|seen| seen.files).sum();
    let matches: u64 = all.iter().map(|seen| seen.matches).sum();
    let seconds = all.iter().map(|seen| seen.seconds).fold(0.0, f64::max);
    let mut cpu = all[0].cpu.clone();
    cpu.load = all.iter().map(|seen| seen.cpu.load).sum();
    member.comm.report(&Sample {
        phase: "find".into(),
        rate: operations as f64 / seconds,
        unit: "ops/s".into(),
        operations,
        seconds,
        detail: [("matches".to_string(), matches as f64)].into(),
        cpu,
        ..Sample::default()
    })
}

fn walk(
    member: &Member<'_>,
    api: &dyn Api,
    trees: &Trees,
    dir: &str,
    number: &mut u64,
    seen: &mut Seen,
) -> io::Result<()> {
    member.comm.check()?;
    for (name, is_dir) in api.list(dir)? {
        let path = format!("{dir}/{name}");
        if is_dir {
            walk(member, api, trees, &path, number, seen)?;
            continue;
        }
        if *number % u64::from(member.comm.size()) == u64::from(member.comm.rank()) {
            let found = api.stat(&path)? == trees.size && name.contains(&trees.name);
            seen.files += 1;
            seen.matches += u64::from(found);
        }
        *number += 1;
    }
    Ok(())
}

/// The first rank makes them.
///
/// # Errors
/// Those of the file system and of other ranks.
pub fn make(member: &Member<'_>, trees: &Trees) -> io::Result<()> {
    if member.comm.rank() == 0 {
        let api = member.api(&trees.api)?;
        trees.dirs.iter().try_for_each(|dir| api.mkdir_all(dir))?;
    }
    member.comm.barrier()
}

/// The first rank removes them; what cannot be removed stays.
///
/// # Errors
/// Those of other ranks.
pub fn remove(member: &Member<'_>, trees: &Trees) -> io::Result<()> {
    if member.comm.rank() == 0 {
        let api = member.api(&trees.api)?;
        trees.dirs.iter().for_each(|dir| api.remove_all(dir));
    }
    member.comm.barrier()
}
