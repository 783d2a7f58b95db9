//! Which cluster a command means.

use crate::commands::dev::{Home, default_dir};
use crate::mounts::{self, Record};
use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use weft_client::device::with_port;

/// How to find the cluster. Without any of these it is the one mounted where the path given (or the
/// current directory) is, else the development cluster, else the only one mounted here.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// Managers: HOST[:PORT] or unix:/SOCKET, separated by commas.
    #[arg(long, env = "WEFT_MANAGER", value_delimiter = ',', value_name = "ADDRESS")]
    manager: Vec<String>,
    /// File with the cluster's key.
    #[arg(long, env = "WEFT_KEY", value_name = "FILE")]
    key: Option<PathBuf>,
    /// Directory of a development cluster.
    #[arg(long, env = "WEFT_DEV_DIR", value_name = "DIR")]
    dev: Option<PathBuf>,
}

/// How to reach a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contact {
    /// Addresses of the managers.
    pub managers: Vec<String>,
    /// File with the key.
    pub key: Option<PathBuf>,
}

impl ClusterArgs {
    /// Finds the cluster; `path` is something in it, if the command has got any.
    ///
    /// # Errors
    /// When there is none to be found, or too many.
    pub fn contact(&self, path: Option<&Path>) -> anyhow::Result<Contact> {
        let found = self.named()?.map_or_else(|| mounted_at(path), |contact| Ok(Some(contact)));
        let contact = match found? {
            Some(contact) => contact,
            None => running_here()?,
        };
        Ok(Contact { key: self.key.clone().or(contact.key), ..contact })
    }

    /// What the options name.
    fn named(&self) -> anyhow::Result<Option<Contact>> {
        if !self.manager.is_empty() {
            let managers = self.manager.iter().map(|address| with_port(address)).collect();
            return Ok(Some(Contact { managers, key: self.key.clone() }));
        }
        let Some(dir) = &self.dev else { return Ok(None) };
        let home = Home::look(dir)?;
        let home =
            home.with_context(|| format!("no development cluster in dir={}", dir.display()))?;
        dev_contact(&home).map(Some)
    }
}

fn dev_contact(home: &Home) -> anyhow::Result<Contact> {
    Ok(Contact { managers: home.addresses()?, key: Some(home.key_file()) })
}

/// The cluster that is mounted where `path` or the current directory is.
fn mounted_at(path: Option<&Path>) -> anyhow::Result<Option<Contact>> {
    let path = std::path::absolute(path.unwrap_or(Path::new(".")))?;
    let records = mounts::recorded()?;
    let on = |path: &Path| {
        let inside = records.iter().filter(|record| path.starts_with(&record.mountpoint));
        inside.max_by_key(|record| record.mountpoint.as_os_str().len()).cloned()
    };
    // Links are followed only where the path as it is leads to no mount, which might hang.
    let found = on(&path).or_else(|| on(&path.canonicalize().ok()?));
    Ok(found.map(Contact::from))
}

/// The development cluster if it runs, else the only one that is mounted.
fn running_here() -> anyhow::Result<Contact> {
    if let Ok(dir) = default_dir()
        && let Some(home) = Home::look(&dir)?
        && home.is_up()?
    {
        return dev_contact(&home);
    }
    let mut contacts: Vec<Contact> = Vec::new();
    let own = mounts::recorded_own()?;
    let records = if own.is_empty() { mounts::recorded()? } else { own };
    for contact in records.into_iter().map(Contact::from) {
        if !contacts.contains(&contact) {
            contacts.push(contact);
        }
    }
    match contacts.len() {
        1 => Ok(contacts.remove(0)),
        0 => bail!("which cluster? say --manager HOST (and --key FILE), or set WEFT_MANAGER"),
        _ => bail!("which cluster? several are mounted; say --manager, or go to one of them"),
    }
}

impl From<Record> for Contact {
    fn from(record: Record) -> Contact {
        Contact { managers: record.managers, key: record.key }
    }
}
