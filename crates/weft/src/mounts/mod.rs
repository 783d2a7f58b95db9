//! Mounts: made, noted where commands find them, and ended.

mod book;
pub mod holder;
mod live;
mod options;
mod table;

pub use book::{Record, all as recorded, own as recorded_own, state_dir};
pub use live::{LiveMount, Source};
pub use options::MountOptions;
pub use table::{answers_within, find_mounted, resolve, unmount, wait_until_answering};
