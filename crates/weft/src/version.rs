//! Which program this is.

/// The commit it was built from: 12 digits, `-dirty` behind them where something was not committed; or
/// `unknown`.
pub const COMMIT: &str = env!("WEFT_COMMIT");

/// Version and commit.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("WEFT_COMMIT"), ")");
