//! `weft cluster init|key`.

use crate::outcome::Outcome;
use crate::{files, keys, output};
use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use weft_model::TargetId;
use weft_rpc::{ClusterKey, Role};
use weft_store::superblock::Uuid;

/// Commands on a whole cluster.
#[derive(Subcommand)]
pub enum Command {
    /// Make a new cluster: its identity, its key, and the manager's directory.
    Init(Init),
    /// Print the key of a role, for machines that need no more.
    Key(Key),
}

/// Make a new cluster: its identity, its key, and the manager's directory.
#[derive(Args)]
pub struct Init {
    /// Where to: the manager's directory `mgt` and `cluster.key` come to lie here.
    #[arg(long)]
    dir: PathBuf,
}

/// Print the key of a role, for machines that need no more.
#[derive(Args)]
pub struct Key {
    /// What the machine is to be.
    #[arg(long)]
    role: RoleName,
    /// The cluster's key.
    #[arg(long, env = "WEFT_KEY")]
    key: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    Client,
    Server,
    Admin,
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// Those of the files.
    pub fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Command::Init(init) => init.run(),
            Command::Key(key) => key.run(),
        }
    }
}

impl Init {
    fn run(self) -> anyhow::Result<Outcome> {
        let dir = std::path::absolute(&self.dir)?;
        let (key_file, mgt) = (dir.join("cluster.key"), dir.join("mgt"));
        if key_file.exists() {
            bail!("file={} exists; a cluster has been made here already", key_file.display());
        }
        files::make_dir(&dir)?;
        let cluster = Uuid::random()?;
        super::target::format(&mgt, TargetId::MGT, cluster, false)?;
        keys::write(&key_file, &ClusterKey::generate()?)?;
        output::put(&format!(
            "cluster = \"{cluster}\"\nkey = \"{}\"\n\n[manager]\ndir = \"{}\"\n",
            key_file.display(),
            mgt.display()
        ))?;
        eprintln!(
            "weft: these lines belong into the configuration of the manager's node (see weft config \
             default); the first two, and a copy of the key, into that of every node. Then: weft \
             target format --config FILE, weft server --config FILE"
        );
        Ok(Outcome::Done)
    }
}

impl Key {
    fn run(self) -> anyhow::Result<Outcome> {
        let role = match self.role {
            RoleName::Client => Role::Client,
            RoleName::Server => Role::Server,
            RoleName::Admin => Role::Admin,
        };
        output::put(&keys::read(&self.key)?.for_role(role)?.to_text())?;
        Ok(Outcome::Done)
    }
}
