//! The targets that this process serves, and the map epoch it knows.

use crate::auth::Role;
use crate::call::{Bulk, CallInfo};
use crate::message::{Reply, Request};
use crate::metrics::Metrics;
use crate::service::Service;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_model::{ClientId, Epoch, ErrorKind, FsError, Result, TargetId};

/// Services by target.
#[derive(Default)]
pub struct Registry {
    services: RwLock<HashMap<TargetId, Arc<dyn Service>>>,
    epoch: AtomicU64,
    metrics: Arc<Metrics>,
}

impl Registry {
    /// Starts serving a target. From here on every call of it is measured, wherever it comes from.
    pub fn add(&self, target: TargetId, service: Arc<dyn Service>) {
        self.services.write().insert(target, self.metrics.measure(target, service));
    }

    /// What the targets of this process have done.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Stops serving a target.
    pub fn remove(&self, target: TargetId) {
        self.services.write().remove(&target);
    }

    /// The service of a target.
    pub fn get(&self, target: TargetId) -> Option<Arc<dyn Service>> {
        self.services.read().get(&target).cloned()
    }

    /// Notes the epoch of the newest map this process has; it never goes back.
    pub fn set_epoch(&self, epoch: Epoch) {
        self.epoch.fetch_max(epoch.0, Ordering::Relaxed);
    }

    /// Answers a request that came from outside.
    ///
    /// # Errors
    /// `Denied` when the role may not ask this, `StaleMap` when the asker's map is older than ours,
    /// `WrongNode` when the target is not served here, and those of the service.
    pub fn dispatch(&self, info: &CallInfo, request: &Request, bulk: Bulk<'_>) -> Result<Reply> {
        let served = self.admit(info, request).inspect_err(|error| self.metrics.refused(error))?;
        served.serve(info, request, bulk)
    }

    /// The service that a request from outside may go to.
    fn admit(&self, info: &CallInfo, request: &Request) -> Result<Arc<dyn Service>> {
        if !request.allowed_to(info.role) {
            return Err(FsError::new(ErrorKind::Denied, request.name())
                .because(format_args!("the role {} may not ask this", info.role.name())));
        }
        if info.target.kind != request.role() {
            return Err(FsError::new(ErrorKind::Protocol, request.name())
                .on(format_args!("target={}", info.target))
                .because("this request is for another kind of target"));
        }
        let served = self.get(info.target).ok_or_else(|| {
            FsError::new(ErrorKind::WrongNode, request.name())
                .on(format_args!("target={}", info.target))
        })?;
        // Whoever asks the manager is fetching the map; there its age does not matter.
        if info.target != TargetId::MGT && info.epoch.0 < self.epoch.load(Ordering::Relaxed) {
            return Err(FsError::new(ErrorKind::StaleMap, request.name()));
        }
        Ok(served)
    }

    /// Tells every service that a client's last connection is gone.
    pub fn disconnected(&self, client: ClientId) {
        let services: Vec<_> = self.services.read().values().cloned().collect();
        services.iter().for_each(|service| service.disconnected(client));
    }
}

impl Request {
    /// Which roles may send the request.
    pub const fn allowed_to(&self, role: Role) -> bool {
        use Request::*;
        match self {
            Heartbeat(_) | AllocateSequence(_) | Truncate(_) | Destroy(_) => {
                matches!(role, Role::Server)
            }
            SetTargetState(_) | SetPool(_) | Remove(_) | Scrub(_) | ScrubTarget(_)
            | CheckObjects(_) | ListObjects(_) => {
                matches!(role, Role::Admin | Role::Server)
            }
            _ => true,
        }
    }
}
