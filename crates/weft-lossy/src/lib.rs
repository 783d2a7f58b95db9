//! A file system for tests that forgets in a power cut what was not synced.
//!
//! **Purpose.** Real servers run on real mounts of it; [`Lossy::cut_power`] takes what a local disk may
//! take. Everything is in memory: a [`Disk`] is a value with two states, what programs see and what is
//! stable, and [`Disk::after_power_cut`] makes a new one out of a seed.
//!
//! **Callers.** The power tests of `weft`. Nothing that is shipped.
//!
//! **What is stable.** Contents of a file with its `fsync`, `fdatasync` or a write under `O_SYNC`;
//! everything with `syncfs`, which the kernel does not forward to FUSE: programs that use it are
//! preloaded with [`syncfs_shim`]. Of all else a cut leaves, as [`Mode`] says:
//!
//! | | [`Mode::Ordered`]: ext4, `data=ordered` | [`Mode::Posix`]: no more than POSIX says |
//! |---|---|---|
//! | names, cuts, holes | one journal for all: a prefix of it; any `fsync` commits all of it, `fdatasync` where the file's size or extents changed | one for each directory and each file: a prefix of each; a directory's with its own `fsync` only |
//! | size of a grown file | anything in between, never beyond data that has arrived | anything in between, zeros where data has not arrived |
//! | pages written | each old, new, or torn at 512 bytes | the same |
//! | pages written just now | not there: nothing writes back within [`WRITE_BACK_AFTER`] | the same |
//!
//! A rename is one change, whatever the mode. Now and then a page is written back while the power is on,
//! so that later writes to it can be lost and earlier ones not.
//!
//! **To be heeded.** A process that serves a mount must not map files on it: its page fault would wait for
//! itself, and whoever looks at the process with `ps` would wait, too.
//!
//! **Absent by design.** Links other than hard ones, extended attributes, locks (the kernel keeps them for
//! a mount), permissions, access times, reclaiming inodes: a disk lives for seconds.
//!
//! **Start here.** [`disk`], then [`cut`](Disk::after_power_cut).

mod content;
mod cut;
mod disk;
mod fs;
mod mount;
mod shim;

pub use cut::WRITE_BACK_AFTER;
pub use disk::{Disk, Mode};
pub use mount::Lossy;
pub use shim::syncfs_shim;
