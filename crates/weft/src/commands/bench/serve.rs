//! `weft bench serve`: ranks for drivers on other machines; and `weft bench rank`, one of them.

use super::common::{LibraryDoors, rank_program};
use crate::outcome::Outcome;
use crate::{keys, output};
use anyhow::Context;
use clap::Args;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weft_eval::ranks::link::Link;
use weft_eval::ranks::{job, serve};

/// Let drivers (`weft bench ... --hosts`) run ranks here, as the user who started this. A driver must
/// know the key; what it can ask for is benchmarks, which write and remove files. The key protects the
/// beginning of a connection; nothing is encrypted.
#[derive(Args)]
pub struct Serve {
    /// Where to listen.
    #[arg(long, default_value_t = format!("127.0.0.1:{}", serve::PORT), value_name = "ADDRESS")]
    listen: String,
    /// File with the key, as `weft cluster init` and `weft cluster key` make them.
    #[arg(long, env = "WEFT_BENCH_KEY", value_name = "FILE")]
    bench_key: PathBuf,
}

impl Serve {
    /// Serves until it is ended.
    ///
    /// # Errors
    /// Those of the key and of the address.
    pub fn run(self) -> anyhow::Result<Outcome> {
        let key = keys::read(&self.bench_key)?;
        let named = || format!("cannot listen at {}", self.listen);
        let listener = TcpListener::bind(&self.listen).with_context(named)?;
        output::put(&format!("listening at {}\n", listener.local_addr()?))?;
        let (program, arguments) = rank_program();
        serve::serve(&listener, &key, &program, &arguments)?;
        Ok(Outcome::Done)
    }
}

/// Runs a rank over standard input.
///
/// # Errors
/// When nobody is there to be told.
pub fn rank() -> anyhow::Result<Outcome> {
    // An interrupt from the terminal goes to all. The driver ends; ranks hear of it, and clean up.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)))?;
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    job::run(Link::inherited(socket), &LibraryDoors::default())?;
    Ok(Outcome::Done)
}
