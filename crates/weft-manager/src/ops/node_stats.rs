//! Shows the figures of the process.

use crate::Manager;
use weft_rpc::pb::NodeStatsReply;

/// Every figure of the process that the manager runs in; none when it was not given them.
pub fn node_stats(manager: &Manager) -> NodeStatsReply {
    let metrics = manager.settings.metrics.as_ref();
    NodeStatsReply {
        node: manager.settings.node.clone(),
        metrics: metrics.map(|metrics| metrics.messages()).unwrap_or_default(),
    }
}
