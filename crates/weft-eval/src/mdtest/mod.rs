//! To come in the next commit.
use serde::{Deserialize, Serialize};
/// .
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Config {}
/// .
pub mod rank {
    use super::Config;
    use crate::ranks::job::Member;
    /// .
    /// # Errors
    /// .
    pub fn run(_: &Member<'_>, _: &Config) -> std::io::Result<()> {
        Ok(())
    }
    /// .
    pub fn clean(_: &Member<'_>, _: &Config) {}
}
