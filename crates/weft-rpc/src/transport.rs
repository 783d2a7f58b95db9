//! The seam between the router and what carries requests to targets that this process does not serve.

use crate::call::{Bulk, Call, CallInfo};
use crate::message::{Reply, Request};
use std::time::Duration;
use weft_model::{ClientId, ClusterMap, Result, TargetId};

/// How long one try may take.
pub struct Wait<'a> {
    /// Give up after this long.
    pub limit: Duration,
    /// Asked a few times a second while nothing comes from the target: whether the caller wants no
    /// answer any more.
    pub interrupted: &'a dyn Fn(TargetId) -> bool,
}

/// Carries requests to the nodes that the map names: sockets, or the simulation.
pub trait Transport: Send + Sync {
    /// One try of one request.
    ///
    /// # Errors
    /// The target's answer; `Disconnected`, `TimedOut`, `Interrupted` and the like when there is none,
    /// and then nobody knows whether the request was carried out.
    fn exchange(
        &self,
        map: &ClusterMap,
        info: &CallInfo,
        request: &Request,
        bulk: Bulk<'_>,
        wait: &Wait<'_>,
    ) -> Result<Reply>;

    /// One try of several requests at once; `info` is that of the call with the same place. Answers
    /// come in the order of the calls.
    fn exchange_all(
        &self,
        map: &ClusterMap,
        infos: &[CallInfo],
        calls: &mut [Call<'_>],
        wait: &Wait<'_>,
    ) -> Vec<Result<Reply>> {
        let each = infos.iter().zip(calls);
        each.map(|(info, call)| self.exchange(map, info, &call.request, call.bulk.reborrow(), wait))
            .collect()
    }

    /// From now on requests are made in this session.
    fn set_client(&self, client: ClientId);
}
