//! `weft path FID`.

use crate::cluster::{Admin, ClusterArgs};
use crate::outcome::Outcome;
use crate::output;
use anyhow::{Context, bail};
use clap::Args;
use std::path::PathBuf;
use weft_model::Fid;
use weft_rpc::pb::mds::FidToPath;

/// Print a path of each FID, from the root of the volume, or on a mount.
#[derive(Args)]
pub struct PathOf {
    /// FIDs (0xSEQUENCE:0xOBJECT) or inode numbers.
    #[arg(required = true)]
    fids: Vec<Fid>,
    /// Print paths on this mount, which has the whole volume.
    #[arg(long)]
    mount: Option<PathBuf>,
    #[command(flatten)]
    cluster: ClusterArgs,
}

impl PathOf {
    /// Prints them.
    ///
    /// # Errors
    /// When there is no such inode, or it has no name any more.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let admin = Admin::connect(&self.cluster.contact(self.mount.as_deref())?)?;
        let top = self.mount.unwrap_or_else(|| "/".into());
        let mut outcome = Outcome::Done;
        for &fid in &self.fids {
            match path_of(&admin, fid) {
                Ok(path) => output::put(&format!("{}\n", top.join(path).display()))?,
                Err(error) if self.fids.len() == 1 => return Err(error),
                Err(error) => {
                    eprintln!("weft: {error:#}");
                    outcome = Outcome::Partly;
                }
            }
        }
        Ok(outcome)
    }
}

/// A path of the inode, relative to the root of the volume.
///
/// # Errors
/// When there is no such inode, it has no name any more, or its MDT does not answer.
pub fn path_of(admin: &Admin, fid: Fid) -> anyhow::Result<String> {
    let Some(mdt) = admin.map().mdt_of(fid) else { bail!("fid={fid}: no MDT has given it out") };
    let reply = admin.ask(mdt, FidToPath { fid: fid.0 });
    let reply = reply.with_context(|| format!("fid={fid}"))?;
    Ok(String::from_utf8_lossy(&reply.path).into_owned())
}
