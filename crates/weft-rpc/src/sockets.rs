//! The transport of real clusters: pools of connections over TCP and Unix sockets.

use crate::call::{Bulk, Call, CallInfo};
use crate::channel::Identity;
use crate::message::{Reply, Request};
use crate::pool::ChannelPool;
use crate::transport::{Transport, Wait};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use weft_model::{ClientId, ClusterMap, ErrorKind, FsError, NodeId, Result, TargetId};

/// Connections to the managers and to every node that was asked.
pub struct Sockets {
    identity: RwLock<Arc<Identity>>,
    managers: Arc<ChannelPool>,
    pools: Mutex<HashMap<NodeId, Arc<ChannelPool>>>,
}

impl Sockets {
    /// Connects as `identity`, to the manager at one of the addresses `managers`.
    pub fn new(identity: Identity, managers: Vec<String>) -> Sockets {
        Sockets {
            identity: RwLock::new(Arc::new(identity)),
            managers: Arc::new(ChannelPool::new(managers)),
            pools: Mutex::default(),
        }
    }

    /// The connections to the node of a target. A node that listens elsewhere by now gets new ones,
    /// and those to nodes that are gone are closed.
    fn pool(&self, map: &ClusterMap, target: TargetId) -> Result<Arc<ChannelPool>> {
        if target == TargetId::MGT {
            return Ok(self.managers.clone());
        }
        let node = map.node_of(target).ok_or_else(|| {
            FsError::new(ErrorKind::WrongNode, "find target")
                .on(format_args!("target={target}"))
                .because("the cluster map does not have it")
        })?;
        let mut pools = self.pools.lock();
        if let Some(pool) = pools.get(&node.id)
            && pool.addresses() == node.addresses
        {
            return Ok(pool.clone());
        }
        pools.retain(|&id, pool| map.node(id).is_some_and(|n| n.addresses == pool.addresses()));
        let pool = Arc::new(ChannelPool::new(node.addresses.clone()));
        pools.insert(node.id, pool.clone());
        Ok(pool)
    }
}

/// What a transfer does when nothing comes: waits on until `deadline`, unless interrupted.
fn stalled(wait: &Wait<'_>, target: TargetId, deadline: Instant) -> impl FnMut() -> Result<()> {
    move || {
        let fail = |kind| FsError::new(kind, "wait for answer").on(format_args!("target={target}"));
        if (wait.interrupted)(target) {
            return Err(fail(ErrorKind::Interrupted));
        }
        if Instant::now() >= deadline { Err(fail(ErrorKind::TimedOut)) } else { Ok(()) }
    }
}

impl Transport for Sockets {
    fn exchange(
        &self,
        map: &ClusterMap,
        info: &CallInfo,
        request: &Request,
        mut bulk: Bulk<'_>,
        wait: &Wait<'_>,
    ) -> Result<Reply> {
        let mut stalled = stalled(wait, info.target, Instant::now() + wait.limit);
        let identity = self.identity.read().clone();
        let pool = self.pool(map, info.target)?;
        let mut borrowed = pool.borrow(&mut stalled)?;
        let channel = borrowed.channel(&identity)?;
        let answer = channel
            .send(info, request, &bulk, &mut stalled)
            .and_then(|()| channel.receive(request.number(), &mut bulk, &mut stalled));
        if answer.is_err() {
            borrowed.discard();
        }
        answer?
    }

    /// Sends everything, then collects the answers.
    fn exchange_all(
        &self,
        map: &ClusterMap,
        infos: &[CallInfo],
        calls: &mut [Call<'_>],
        wait: &Wait<'_>,
    ) -> Vec<Result<Reply>> {
        let deadline = Instant::now() + wait.limit;
        let identity = self.identity.read().clone();
        let pools: Vec<_> = infos.iter().map(|info| self.pool(map, info.target)).collect();
        let mut sent = Vec::with_capacity(calls.len());
        for ((call, info), pool) in calls.iter_mut().zip(infos).zip(&pools) {
            sent.push(pool.as_deref().map_err(FsError::again).and_then(|pool| {
                let mut stalled = stalled(wait, info.target, deadline);
                let mut borrowed = pool.borrow(&mut stalled)?;
                let channel = borrowed.channel(&identity)?;
                if let Err(error) = channel.send(info, &call.request, &call.bulk, &mut stalled) {
                    borrowed.discard();
                    return Err(error);
                }
                Ok(borrowed)
            }));
        }
        sent.into_iter()
            .zip(calls)
            .map(|(sent, call)| {
                let mut borrowed = sent?;
                let mut stalled = stalled(wait, call.target, deadline);
                let answer = borrowed.channel(&identity).and_then(|channel| {
                    channel.receive(call.request.number(), &mut call.bulk, &mut stalled)
                });
                if answer.is_err() {
                    borrowed.discard();
                }
                answer?
            })
            .collect()
    }

    /// Open connections are dropped: they were greeted as somebody else.
    fn set_client(&self, client: ClientId) {
        let mut identity = self.identity.write();
        *identity = Arc::new(Identity { client, ..identity.as_ref().clone() });
        drop(identity);
        self.pools.lock().clear();
    }
}
