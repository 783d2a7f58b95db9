//! Asking a cluster as an operator: without a session, and never for long.

use super::Contact;
use crate::keys;
use anyhow::Context;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::Duration;
use weft_model::{ClientId, ClusterMap, Env, Result, TargetId};
use weft_rpc::SystemEnv;
use weft_rpc::channel::Identity;
use weft_rpc::pb::{NodeStats, NodeStatsReply};
use weft_rpc::router::Patience;
use weft_rpc::{ClusterKey, Message, Role, Router};

/// Longest wait for the manager.
const MANAGER_PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for one server, which may be down.
const SERVER_PATIENCE: Duration = Duration::from_secs(2);
/// Longest wait for one part of a scrub.
const SCRUB_PATIENCE: Duration = Duration::from_secs(60);

/// A cluster, seen by an operator.
pub struct Admin {
    router: Router,
    key: Option<ClusterKey>,
    env: Arc<dyn Env>,
}

impl Admin {
    /// Fetches the map.
    ///
    /// # Errors
    /// When the manager does not answer, or does not accept the key.
    pub fn connect(contact: &Contact) -> anyhow::Result<Admin> {
        let key = contact.key.as_deref().map(keys::read).transpose()?;
        let env: Arc<dyn Env> = Arc::new(SystemEnv::new());
        let router = router(contact.managers.clone(), key.clone(), env.clone());
        let admin = Admin { router, key, env };
        admin
            .refresh()
            .with_context(|| format!("no cluster at manager={}", contact.managers.join(",")))?;
        Ok(admin)
    }

    /// Fetches the map anew, with figures of space.
    ///
    /// # Errors
    /// When the manager does not answer.
    pub fn refresh(&self) -> Result<()> {
        let reply = self.ask_manager(weft_rpc::pb::manager::GetMap { have_epoch: 0 })?;
        if let Some(map) = reply.map {
            self.router.set_map(map.try_into()?);
        }
        Ok(())
    }

    /// The map.
    pub fn map(&self) -> Arc<ClusterMap> {
        self.router.map()
    }

    /// Asks the manager.
    ///
    /// # Errors
    /// Its answer, or why there is none.
    pub fn ask_manager<M: Message>(&self, message: M) -> Result<M::Reply> {
        self.router.ask(TargetId::MGT, message, &Patience::of(MANAGER_PATIENCE))
    }

    /// Asks a target to look through part of its data.
    ///
    /// # Errors
    /// Its answer, or why there is none.
    pub fn ask_long<M: Message>(&self, target: TargetId, message: M) -> Result<M::Reply> {
        self.router.ask(target, message, &Patience::of(SCRUB_PATIENCE))
    }

    /// Asks a target something that is answered at once.
    ///
    /// # Errors
    /// Its answer, or why there is none.
    pub fn ask<M: Message>(&self, target: TargetId, message: M) -> Result<M::Reply> {
        self.router.ask(target, message, &Patience::of(SERVER_PATIENCE))
    }

    /// Asks something of each at the same time; answers come in their order.
    pub fn ask_each<A: Sync, T: Send>(&self, asked: &[A], ask: impl Fn(&A) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let ask = &ask;
            let threads: Vec<_> = asked.iter().map(|one| scope.spawn(move || ask(one))).collect();
            let join = |thread: ScopedJoinHandle<'_, T>| match thread.join() {
                Ok(answer) => answer,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            threads.into_iter().map(join).collect()
        })
    }

    /// Every figure of the server process that listens at `addresses`.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn node_stats(&self, addresses: &[String]) -> Result<NodeStatsReply> {
        // Each process answers this in the manager's name, so it is found by address.
        let router = router(addresses.to_vec(), self.key.clone(), self.env.clone());
        router.ask(TargetId::MGT, NodeStats {}, &Patience::of(Duration::ZERO))
    }
}

fn router(managers: Vec<String>, key: Option<ClusterKey>, env: Arc<dyn Env>) -> Router {
    let name = format!("weft command (process {})", std::process::id());
    let identity = Identity { role: Role::Admin, client: ClientId::NONE, name, key };
    Router::new(identity, managers, None, env)
}
