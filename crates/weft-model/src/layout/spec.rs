//! What a user asks for: the layout of a file or the one a directory hands down. Targets not yet chosen.

use super::{EOF, Pattern};
use serde::{Deserialize, Serialize};

/// Unset means "derive it from the targets".
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LayoutSpec {
    /// Components in order of their ends; empty for the default of the file system.
    pub components: Vec<ComponentSpec>,
}

/// What is asked of one component.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ComponentSpec {
    /// File offset after the last; [`EOF`] for none.
    pub end: u64,
    /// Protection.
    pub pattern: Pattern,
    /// Bytes per stripe unit; 0 for the default.
    pub stripe_unit: u64,
    /// Number of targets; 0 for the default, -1 for all there are.
    pub stripe_count: i32,
    /// Index of the first OST; `None` to let the system choose.
    pub start_index: Option<u16>,
    /// Exactly these OSTs in this order; empty to let the system choose.
    pub targets: Vec<u16>,
    /// Only OSTs of this pool; empty for all.
    pub pool: String,
    /// Objects per group; 0 for one level.
    pub group_width: u32,
    /// Stripes per visit of a group; 0 for one level.
    pub group_depth: u32,
}

impl Default for ComponentSpec {
    fn default() -> Self {
        ComponentSpec {
            end: EOF,
            pattern: Pattern::Stripe,
            stripe_unit: 0,
            stripe_count: 0,
            start_index: None,
            targets: Vec::new(),
            pool: String::new(),
            group_width: 0,
            group_depth: 0,
        }
    }
}
