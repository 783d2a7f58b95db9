//! A target that is open, and its end.

use super::config::TargetConfig;
use anyhow::{Context, bail};
use std::sync::Arc;
use weft_manager::Served;
use weft_model::map::Space;
use weft_model::throttle::Speed;
use weft_model::{ErrorKind, FsError, Result, TargetId, TargetKind};
use weft_store::{Kv, LastStop, ObjectStore, OpenParams, Target};

/// An open target. The process has it alone.
pub struct OpenTarget {
    target: Option<Arc<Target>>,
    /// A speed that it is not to exceed.
    pub throttle: Option<Speed>,
}

impl OpenTarget {
    /// Opens the target in the configured directory, which must be of this kind and cluster.
    ///
    /// # Errors
    /// As [`Target::open`].
    pub fn open(
        config: &TargetConfig,
        kind: TargetKind,
        cluster: Option<&str>,
    ) -> anyhow::Result<OpenTarget> {
        let cluster = cluster.map(str::parse).transpose().map_err(anyhow::Error::msg)?;
        let expected = config.index.map(|index| TargetId { kind, index });
        let params = OpenParams { cluster, target: expected, ..OpenParams::default() };
        let target = Target::open(&config.dir, &params)?;
        let id = target.superblock().target;
        if id.kind != kind {
            bail!("dir={} holds {id}; it is configured under the wrong role", config.dir.display());
        }
        if target.last_stop() != LastStop::Clean {
            tracing::warn!(target_id = %id, dir = %config.dir.display(),
                "target was not closed in order; it has been looked after");
        }
        Ok(OpenTarget { target: Some(Arc::new(target)), throttle: config.throttle })
    }

    /// Its name.
    pub fn id(&self) -> TargetId {
        self.target().superblock().target
    }

    /// The cluster it belongs to.
    pub fn cluster(&self) -> String {
        self.target().superblock().cluster.to_string()
    }

    /// Its key-value store.
    pub fn kv(&self) -> Arc<dyn Kv> {
        self.target().kv().clone()
    }

    /// Its objects.
    ///
    /// # Errors
    /// When it is no OST.
    pub fn objects(&self) -> anyhow::Result<Arc<dyn ObjectStore>> {
        self.target().objects().with_context(|| format!("target={} has no objects", self.id()))
    }

    /// Tells its space for as long as it is open.
    pub fn space(&self) -> impl Fn() -> Result<Space> + Send + Sync + use<> {
        let target = Arc::downgrade(self.target());
        move || {
            let closed = || FsError::new(ErrorKind::NotReady, "statfs");
            let space = target.upgrade().ok_or_else(closed)?.space()?;
            Ok(Space {
                total: space.total,
                free: space.available,
                inodes: space.inodes,
                inodes_free: space.inodes_free,
                device: space.device,
            })
        }
    }

    /// Says whether so many bytes more may be stored, for as long as it is open.
    pub fn admit(&self) -> impl Fn(u64) -> Result<()> + Send + Sync + use<> {
        let target = Arc::downgrade(self.target());
        move |bytes| {
            let closed = || FsError::new(ErrorKind::NotReady, "reserve space");
            target.upgrade().ok_or_else(closed)?.admit(bytes)
        }
    }

    /// What the manager is told of it.
    pub fn served(&self) -> Served {
        let uuid = self.target().superblock().uuid.to_string();
        Served { id: self.id(), uuid, space: Box::new(self.space()) }
    }

    fn target(&self) -> &Arc<Target> {
        // It is there until drop.
        self.target.as_ref().unwrap_or_else(|| unreachable!())
    }
}

/// Puts everything on stable storage and records that it was closed in order. By then the target is
/// not served any more; requests still under way are waited for.
impl Drop for OpenTarget {
    fn drop(&mut self) {
        let Some(target) = self.target.take() else { return };
        let id = target.superblock().target;
        if !super::wait_for(|| Arc::strong_count(&target) == 1) {
            tracing::warn!(target_id = %id, "target is still in use and counts as crashed");
            return;
        }
        match Arc::into_inner(target).map(Target::close) {
            Some(Err(error)) => tracing::error!(target_id = %id, %error, "target not closed"),
            _ => tracing::debug!(target_id = %id, "target closed"),
        }
    }
}
