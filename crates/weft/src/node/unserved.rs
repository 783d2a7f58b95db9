//! What a process without the manager answers in its place.

use std::sync::Arc;
use weft_model::{ErrorKind, FsError, Result, TargetId};
use weft_rpc::pb::NodeStatsReply;
use weft_rpc::{Bulk, CallInfo, Metrics, Reply, Request, Service};

/// Answers what concerns the process, and sends everything else away.
pub struct ManagerElsewhere {
    node: String,
    metrics: Arc<Metrics>,
}

impl ManagerElsewhere {
    /// For the process of a node.
    pub fn new(node: &str, metrics: &Arc<Metrics>) -> ManagerElsewhere {
        ManagerElsewhere { node: node.to_string(), metrics: metrics.clone() }
    }
}

impl Service for ManagerElsewhere {
    fn serve(&self, _: &CallInfo, request: &Request, _: Bulk<'_>) -> Result<Reply> {
        match request {
            Request::NodeStats(_) => Ok(Reply::NodeStats(NodeStatsReply {
                node: self.node.clone(),
                metrics: self.metrics.messages(),
            })),
            _ => Err(FsError::new(ErrorKind::NotFound, request.name())
                .on(format_args!("target={} node={}", TargetId::MGT, self.node))
                .because("the manager is on another node; give its address")),
        }
    }
}
