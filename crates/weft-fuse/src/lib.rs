//! The kernel mount: Weft as a directory that any program can use.
//!
//! # Purpose and callers
//! [`kernel`] binds the FUSE protocol of the Linux kernel (7.31 to 7.45) without libfuse: a file
//! system implements [`kernel::FileSystem`], [`kernel::Session::mount`] mounts and serves it.
//! [`null`] is a file system in memory that stores no data: the ceiling of a mount on a machine
//! (binary `weft-nullfs`) and the subject of the mount tests. The kernel module depends on no
//! other crate of Weft.
//!
//! # Invariants
//! - Every request with a reply gets exactly one: from the return value of its operation, after a
//!   panic (`EIO`), for malformed or unknown requests (`EINVAL`, `ENOSYS`), and from a
//!   [`kernel::Deferred`] even if that is dropped.
//! - A request runs to its end on the thread that read it; data of writes is not copied on the
//!   way to the file system, data of reads not on the way from it.
//! - Requests come from `/dev/fuse` or through io_uring ([`kernel::Transport`]).
//! - There is a thread waiting for requests as long as fewer than `Threads::max` operations block;
//!   with io_uring as long as fewer than 512 of callers on one CPU do.
//! - Bytes from the kernel are decoded without `unsafe` and without panics.
//! - Nothing here calls into the mount it serves, which could wait for itself.
//!
//! # Absent by design
//! Splice and requests above 1 MiB by default (measured: no gain), `bmap` and CUSE, DAX, security
//! contexts, id-mapped mounts, unrestricted `ioctl`, `NOTIFY_RETRIEVE`; queues of io_uring by NUMA
//! node, and taking over a mount that uses io_uring from a process that has died.
//!
//! # Where to start reading
//! `kernel/fs.rs` (the trait) and `kernel/types.rs`, then a request's way: `kernel/workers.rs`,
//! `kernel/message.rs`, `kernel/dispatch.rs`; `kernel/rings.rs` is io_uring's; `null.rs` is the smallest whole file system.

pub mod door;
pub mod journal;
pub mod kernel;
pub mod null;
