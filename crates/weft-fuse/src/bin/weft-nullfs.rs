//! Mounts the null file system: the ceiling of a mount on this machine.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use weft_fuse::kernel::{Config, Features, MountOptions, Session, Terms, Threads, Transport};
use weft_fuse::null::{NullFs, NullOptions};

/// Mounts an in-memory file system that stores no data, until it is unmounted.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Directory to mount on.
    mountpoint: PathBuf,
    /// Threads kept waiting for requests.
    #[arg(long, default_value_t = Threads::default().spare)]
    threads: usize,
    /// Most threads.
    #[arg(long, default_value_t = Threads::default().max)]
    max_threads: usize,
    /// A channel of its own for each thread.
    #[arg(long)]
    clone_channel: bool,
    /// How requests get here: auto, dev or uring.
    #[arg(long, default_value_t)]
    transport: Transport,
    /// How long the kernel may cache names and attributes, in milliseconds.
    #[arg(long, default_value_t = 1000)]
    ttl_ms: u64,
    /// How long the kernel may cache that a name does not exist, in milliseconds.
    #[arg(long, default_value_t = 0)]
    negative_ttl_ms: u64,
    /// Largest write and read request, in KiB.
    #[arg(long, default_value_t = 1024)]
    max_write_kib: u32,
    /// Use the page cache instead of direct I/O.
    #[arg(long)]
    cached: bool,
    /// Keep other users out: what a plain user must do unless /etc/fuse.conf allows otherwise.
    #[arg(long)]
    private: bool,
    /// Delay writes in the page cache; implies --cached.
    #[arg(long)]
    writeback: bool,
}

fn main() -> std::io::Result<()> {
    tracing_subscriber::fmt().with_env_filter(filter()).with_writer(std::io::stderr).init();
    let args = Args::parse();
    let max_write = args.max_write_kib << 10;
    let mut terms = Terms { max_write, ..Terms::default() };
    if args.writeback {
        terms.features |= Features::WRITEBACK_CACHE;
    }
    let threads = Threads {
        spare: args.threads,
        max: args.max_threads,
        clone_channel: args.clone_channel,
        resident: false,
    };
    let fs = NullFs::new(NullOptions {
        ttl: Duration::from_millis(args.ttl_ms),
        negative_ttl: Duration::from_millis(args.negative_ttl_ms),
        direct_io: !(args.cached || args.writeback),
    });
    let options = MountOptions {
        source: "null".into(),
        max_read: max_write,
        allow_other: !args.private,
        ..MountOptions::default()
    };
    let config = Config { terms, threads, transport: args.transport };
    let session = Session::mount(fs, &args.mountpoint, &options, config)?;
    session.wait();
    Ok(())
}

/// Log filter out of `RUST_LOG`, warnings by default.
fn filter() -> tracing_subscriber::EnvFilter {
    tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into())
}
