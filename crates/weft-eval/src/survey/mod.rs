//! As obdfilter-survey: what targets do with objects, by objects x threads x record size, and the same
//! work at every layer between the disk and the application.
//!
//! A layer is anything that stores numbered objects ([`Objects`]). Threads of this process share the
//! objects of each target; each moves its own part of one object, record by record.

mod layers;
mod objects;
mod sweep;
mod table;
mod wire;

pub use layers::{Layer, Workload, run as run_layers};
pub use objects::{Files, Library, Objects};
pub use sweep::{Sweep, Target, run};
pub use table::{layers_table, row};
pub use wire::Wire;
