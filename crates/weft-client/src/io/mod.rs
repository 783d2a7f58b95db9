//! The data of files: from here straight to the OSTs, or, of small files, to the MDT ([`inline`]).
//!
//! A transfer is split by the layout into pieces, one per contiguous range of an object, which go out
//! together. Checksums are computed once when writing and verified when reading; the data itself is
//! never copied here.

pub mod advise;
mod ahead;
pub mod allocate;
pub mod append;
pub(crate) mod behind;
pub mod copy;
pub mod glimpse;
pub(crate) mod inline;
pub mod read;
pub mod report;
pub mod seek;
pub(crate) mod store;
pub mod sync;
pub mod write;
