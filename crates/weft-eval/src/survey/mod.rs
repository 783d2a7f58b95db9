//! As obdfilter-survey: what targets do with objects, by objects x threads x record size, and the same
//! work at every layer between the disk and the application. And the same for an MDT: requests for names,
//! without the client library.
//!
//! A layer is anything that stores numbered objects ([`Objects`]). Threads of this process share the
//! objects of each target; each moves its own part of one object, record by record.

mod layers;
mod objects;
mod requests;
mod sweep;
mod table;
mod wire;

pub use layers::{Layer, Workload, run as run_layers};
pub use objects::{Files, Library, Objects};
pub use requests::run as run_requests;
pub use sweep::{Sweep, Target, run};
pub use table::{layers_table, requests_row, row};
pub use wire::Wire;
