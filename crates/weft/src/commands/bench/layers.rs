//! `weft bench survey --layers`: the same work on the disk, in the object store, over the wire, through
//! the client library and through a mount; data and metadata.

use super::common::{Common, LibraryDoors, Wanted, cluster_of, servers_of};
use super::store::Store;
use crate::cli::Global;
use crate::commands::dev::Home;
use crate::keys;
use crate::node::Node;
use crate::outcome::Outcome;
use anyhow::Context;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_client::{Client, ClientConfig};
use weft_eval::driver::{self, Setup};
use weft_eval::mdtest;
use weft_eval::ranks::job::{Cluster, Doors};
use weft_eval::record::{Fsync, Sample};
use weft_eval::survey::{self, Files, Layer, Library, Objects, Wire, Workload};
use weft_model::TargetKind;
use weft_rpc::SystemEnv;

/// What is asked for.
pub struct Plan {
    /// On the disk of the targets.
    pub local: PathBuf,
    /// Where the cluster is mounted.
    pub mount: Option<PathBuf>,
    /// What every layer does with data.
    pub work: Workload,
    /// Files of each thread for the metadata.
    pub files: u64,
}

/// A cluster of as many OSTs that this process serves itself, in a directory that goes with it.
struct Inside {
    client: Arc<Client>,
    node: Option<Node>,
    dir: PathBuf,
}

/// Runs it.
///
/// # Errors
/// Those of the layers.
pub fn run(plan: &Plan, common: &Common, global: Global) -> anyhow::Result<Outcome> {
    let wanted = Wanted::threads("POSIX", &plan.local);
    let Some(mut setup) = common.setup(&wanted)? else { return Ok(Outcome::Done) };
    let doors = LibraryDoors::default();
    let cluster = cluster_of(common)?;
    setup.servers.extend(servers_of(cluster.key.as_deref())?);
    let client = doors.weft(&cluster)?;
    let inside = Inside::start(&plan.local, osts(&client).len() as u16)?;
    let settings = json!({
        "size": plan.work.size, "record": plan.work.record, "threads": plan.work.threads,
        "fsync": plan.work.sync, "rounds": plan.work.rounds, "files": plan.files,
    });
    let local = plan.local.display().to_string();
    let mut record = driver::begin(&setup, "layers", settings, &[&local]);
    let note = if plan.work.sync { "fsync, inside the time of writing (-e)" } else { "no fsync" };
    record.fsync = Fsync { included: plan.work.sync, note: note.into() };
    record.caches.note =
        "nothing was done about caches: reads may come from memory, at all layers".into();
    record.ranks.count = plan.work.threads;
    if plan.mount.is_none() {
        record.notes.push("the mount was not measured: no --mount".into());
    }
    let data = data_layers(plan, &client, &inside)?;
    Common::say(global, "data: ")?;
    let mut dot = |_: &Sample| drop(Common::say(global, "."));
    record.add(survey::run_layers(&data, &plan.work, &setup.servers, &mut dot)?);
    if plan.files > 0 {
        Common::say(global, "\nmetadata: ")?;
        record.add(metadata(plan, &setup, &client, &inside, &mut dot)?);
    }
    drop(data);
    drop(inside);
    Common::say(global, &format!("\n\n{}\n", survey::layers_table(&record, "MiB/s")))?;
    Common::say(global, &survey::layers_table(&record, "ops/s"))?;
    common.finish(global, &[record])
}

/// Indices of the OSTs of a cluster.
pub fn osts(client: &Client) -> Vec<u16> {
    let map = client.map();
    let osts = map.targets.iter().filter(|target| target.id.kind == TargetKind::Ost);
    osts.map(|target| target.id.index).collect()
}

fn data_layers(plan: &Plan, client: &Arc<Client>, inside: &Inside) -> anyhow::Result<Vec<Layer>> {
    let name = |what: &str| format!("weft-survey.{}.{what}", std::process::id());
    let one =
        |name: &str, objects: Arc<dyn Objects>| Layer { name: name.into(), targets: vec![objects] };
    let mut wires: Vec<Arc<dyn Objects>> = Vec::new();
    for ost in osts(client) {
        wires.push(Arc::new(Wire::make(client.clone(), &name(&format!("wire{ost}")), ost)?));
    }
    let mut layers = vec![
        one("local files", Arc::new(Files::make(&plan.local)?)),
        one("object store", Arc::new(Store::make(&plan.local)?)),
        one(
            "client library, no wire",
            Arc::new(Library::make(inside.client.clone(), "survey", None)?),
        ),
        Layer { name: "OSTs over the wire".into(), targets: wires },
        one("client library", Arc::new(Library::make(client.clone(), &name("library"), None)?)),
    ];
    if let Some(mount) = &plan.mount {
        layers.push(one("mount (FUSE)", Arc::new(Files::make(mount)?)));
    }
    Ok(layers)
}

/// Clients that are there already.
struct Given(Arc<Client>);

impl Doors for Given {
    fn weft(&self, _: &Cluster) -> std::io::Result<Arc<Client>> {
        Ok(self.0.clone())
    }
}

/// How a layer is asked for names.
enum Way<'a> {
    /// System calls in a directory.
    Kernel(String),
    Library(&'a Arc<Client>),
    /// Requests to the MDT, as they are.
    Requests,
}

/// Empty files at the layers that have names: each thread its own tree.
fn metadata(
    plan: &Plan,
    given: &Setup,
    client: &Arc<Client>,
    inside: &Inside,
    told: &mut dyn FnMut(&Sample),
) -> anyhow::Result<Vec<Sample>> {
    let name = format!("weft-survey.{}.md", std::process::id());
    let at = |dir: &Path| Way::Kernel(dir.join(&name).display().to_string());
    let mut layers = vec![
        ("local files", at(&plan.local)),
        ("client library, no wire", Way::Library(&inside.client)),
        ("MDT over the wire", Way::Requests),
        ("client library", Way::Library(client)),
    ];
    if let Some(mount) = &plan.mount {
        layers.push(("mount (FUSE)", at(mount)));
    }
    let mut all = Vec::new();
    for round in 0..plan.work.rounds {
        for (layer, way) in &layers {
            let samples = match way {
                Way::Kernel(dir) => {
                    let samples = mdtest(plan, given, None, dir)?;
                    // mdtest leaves the directory it was pointed at.
                    std::fs::remove_dir(dir)?;
                    samples
                }
                Way::Library(client) => mdtest(plan, given, Some(client), &format!("/{name}"))?,
                Way::Requests => {
                    let at_once = (plan.work.threads, plan.files);
                    survey::run_requests(client, &name, at_once, &given.servers)?
                }
            };
            for mut sample in samples {
                sample.phase = format!("{layer}: {}", sample.phase);
                sample.iteration = round;
                told(&sample);
                all.push(sample);
            }
        }
    }
    if plan.mount.is_none() {
        // Otherwise it is the directory that was removed through the mount.
        let ctx = weft_client::Ctx::root();
        client.rmdir(&ctx, client.root(), name.as_bytes())?;
    }
    Ok(all)
}

/// One run of mdtest; its phases by what is done to files.
fn mdtest(
    plan: &Plan,
    given: &Setup,
    client: Option<&Arc<Client>>,
    dir: &str,
) -> anyhow::Result<Vec<Sample>> {
    let mut setup =
        Setup { repeats: 0, servers: given.servers.clone(), ..Setup::threads(plan.work.threads) };
    if let Some(client) = client {
        setup.doors = Arc::new(Given(client.clone()));
        setup.cluster = Some(Cluster::default());
    }
    let api = if client.is_some() { "WEFT" } else { "POSIX" };
    let files = plan.files.to_string();
    let line = ["-F", "-u", "-a", api, "-n", &files, "-d", dir];
    let record = mdtest::run(&mdtest::Config::parse(line)?, &setup, &mut |_| {})?;
    let mut samples: Vec<Sample> = record.samples.into_iter().filter(|s| !s.minor).collect();
    for sample in &mut samples {
        sample.phase = match sample.phase.trim_start_matches("File ") {
            // Nothing is in them, so it is open and close.
            "read" => "open".into(),
            kind => kind.into(),
        };
    }
    Ok(samples)
}

impl Inside {
    fn start(local: &Path, osts: u16) -> anyhow::Result<Inside> {
        let dir =
            std::path::absolute(local)?.join(format!("survey-cluster.{}", std::process::id()));
        let mut home = Home::make(&dir, Some(osts), None, None)?;
        let node = Node::start(&home.one_process()?, &|| false)?;
        let config = ClientConfig {
            managers: home.addresses()?,
            key: Some(keys::read(&home.key_file())?),
            mountpoint: "weft bench survey".into(),
            ..ClientConfig::default()
        };
        let client = Client::mount(config, Some(node.registry()), Arc::new(SystemEnv::new()))
            .with_context(|| format!("scratch cluster in {}", dir.display()))?;
        Ok(Inside { client, node: Some(node), dir })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let left = self.client.unmount().map_err(anyhow::Error::from);
        if let Some(node) = self.node.take() {
            node.stop();
        }
        if let Err(error) = left.and(std::fs::remove_dir_all(&self.dir).map_err(Into::into)) {
            tracing::warn!(%error, dir = %self.dir.display(), "the scratch cluster was not removed");
        }
    }
}
