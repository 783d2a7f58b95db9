//! A mount: identity, sessions, open files, and the thread that keeps them alive.

use crate::ahead::Queue;
use crate::behind::Behind;
use crate::config::ClientConfig;
use crate::ctx::Ctx;
use crate::grants::{Asked, Grants};
use crate::inode::InodeTable;
use crate::journal::{Journal, Legacy};
use crate::keepalive::Keeper;
use crate::lease::Clocks;
use crate::metrics::{Metrics, Op};
use crate::namespace::kept::Kept;
use crate::recalls::Listening;
use crate::room::Room;
use crate::session::Sessions;
use crate::unanswered::Unanswered;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use weft_model::{ClientId, ClusterMap, Env, ErrorKind, Fid, FsError, Result, TargetId};
use weft_rpc::channel::Identity;
use weft_rpc::pb::{manager, mds};
use weft_rpc::registry::Registry;
use weft_rpc::router::Patience;
use weft_rpc::{Role, Router};

/// Longest wait for servers while leaving; what is left behind ends with the session's lease.
const FAREWELL: Duration = Duration::from_secs(3);
/// Longest wait for servers to take what was written.
const LAST_WRITES: Duration = Duration::from_secs(60);

/// A mounted file system. All methods may be called from any number of threads.
pub struct Client {
    pub(crate) config: ClientConfig,
    pub(crate) router: Router,
    pub(crate) sessions: Sessions,
    pub(crate) inodes: InodeTable,
    pub(crate) metrics: Metrics,
    pub(crate) grants: Grants,
    pub(crate) kept: Kept,
    pub(crate) listening: Listening,
    pub(crate) behind: Behind,
    pub(crate) ahead: Queue,
    pub(crate) clocks: Clocks,
    pub(crate) room: Room,
    pub(crate) unanswered: Unanswered,
    /// Outlives this process.
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// Waiters for locks that are told when they are free.
    pub(crate) told_of_locks: AtomicUsize,
    root: OnceLock<Fid>,
    next_handle: AtomicU64,
    keeper: Mutex<Option<Keeper>>,
}

impl Client {
    /// Registers with the manager, opens a session with every MDT, and finds the root. Targets in
    /// `registry` are called directly.
    ///
    /// # Errors
    /// Those of the manager and the MDTs, `NotFound` for a volume or subtree that does not exist,
    /// `TimedOut` under a soft policy.
    pub fn mount(
        config: ClientConfig,
        registry: Option<Arc<Registry>>,
        env: Arc<dyn Env>,
    ) -> Result<Arc<Client>> {
        let router = Client::connect(&config, registry, env);
        Client::assemble(config, router, None).come(None)
    }

    /// The way to the servers, without an identity as yet.
    pub(crate) fn connect(
        config: &ClientConfig,
        registry: Option<Arc<Registry>>,
        env: Arc<dyn Env>,
    ) -> Router {
        let identity = Identity {
            role: Role::Client,
            client: ClientId::NONE,
            name: format!("{}:{}", config.host, config.mountpoint),
            key: config.key.clone(),
        };
        Router::new(identity, config.managers.clone(), registry, env)
    }

    /// The same over a router made elsewhere, and without a thread: whoever mounts calls
    /// [`Client::keep_alive`] all the time.
    ///
    /// # Errors
    /// As [`Client::mount`].
    pub fn mount_over(config: ClientConfig, router: Router) -> Result<Arc<Client>> {
        Client::assemble(config, router, None).join(None)
    }

    /// A client that nobody knows yet.
    pub(crate) fn assemble(
        config: ClientConfig,
        router: Router,
        journal: Option<Arc<dyn Journal>>,
    ) -> Arc<Client> {
        Arc::new(Client {
            config,
            router,
            sessions: Sessions::default(),
            inodes: InodeTable::default(),
            metrics: Metrics::default(),
            grants: Grants::default(),
            kept: Kept::default(),
            listening: Listening::default(),
            behind: Behind::default(),
            ahead: Queue::default(),
            clocks: Clocks::default(),
            room: Room::default(),
            unanswered: Unanswered::default(),
            journal,
            told_of_locks: AtomicUsize::new(0),
            root: OnceLock::new(),
            next_handle: AtomicU64::new(1),
            keeper: Mutex::new(None),
        })
    }

    /// As a new client, or with what an earlier process has left.
    fn join(self: Arc<Client>, legacy: Option<&Legacy>) -> Result<Arc<Client>> {
        let root = match legacy {
            None => self.join_anew()?,
            Some(legacy) => {
                self.inherit(legacy)?;
                legacy.root
            }
        };
        self.root.get_or_init(|| root);
        Ok(self)
    }

    fn join_anew(&self) -> Result<Fid> {
        self.register()?;
        let ctx = Ctx::root();
        for mdt in self.map().mdts().map(|mdt| mdt.id).collect::<Vec<TargetId>>() {
            self.open_session(mdt, &self.patience(&ctx))?;
        }
        self.find_root(&ctx)
    }

    /// The same, and stays.
    pub(crate) fn come(self: Arc<Client>, legacy: Option<&Legacy>) -> Result<Arc<Client>> {
        let client = self.join(legacy)?;
        *client.keeper.lock() = Some(Keeper::start(&client)?);
        Ok(client)
    }

    fn register(&self) -> Result<()> {
        let request = manager::RegisterClient {
            host: self.config.host.clone(),
            mountpoint: self.config.mountpoint.clone(),
            version: env!("CARGO_PKG_VERSION").to_string(),
        };
        let patience = self.patience(&Ctx::root());
        let reply = self.router.ask(TargetId::MGT, request, &patience)?;
        self.router.set_client(ClientId(reply.client));
        let map = reply.map.ok_or_else(|| {
            FsError::new(ErrorKind::Protocol, "register").because("the reply has no cluster map")
        })?;
        self.router.set_map(map.try_into()?);
        Ok(())
    }

    fn find_root(&self, ctx: &Ctx<'_>) -> Result<Fid> {
        let map = self.map();
        let top = match self.config.volume.as_str() {
            "" => map.volumes.first().map_or(Fid::ROOT, |volume| volume.root),
            name => {
                let found = map.volumes.iter().find(|volume| volume.name == name);
                let missing = || FsError::new(ErrorKind::NotFound, "mount");
                found.ok_or_else(|| missing().on(format_args!("volume={name}")))?.root
            }
        };
        Ok(self.walk_from(ctx, top, &self.config.subtree)?.fid)
    }

    /// The root directory of this mount.
    pub fn root(&self) -> Fid {
        self.root.get().copied().unwrap_or(Fid::ROOT)
    }

    /// This mount's identity.
    pub fn id(&self) -> ClientId {
        self.router.client()
    }

    /// The newest cluster map known here.
    pub fn map(&self) -> Arc<ClusterMap> {
        self.router.map()
    }

    /// Counters of this mount.
    pub const fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Whether this client takes grants.
    pub const fn caches(&self) -> bool {
        self.config.caches
    }

    /// How long a grant counts from now on. Zero from the moment it is recalled.
    pub fn grant_left(&self, grant: &crate::Grant) -> Duration {
        self.grants.left(grant, self.env().monotonic())
    }

    /// Before a request whose answer may grant something.
    pub(crate) fn asking(&self) -> Asked {
        self.grants.ask(self.env().monotonic())
    }

    /// Reports what is unreported, closes what is open, ends the sessions. Servers that do not answer
    /// within seconds are left to their leases. The first failure is returned, the rest is still done.
    ///
    /// # Errors
    /// Those of the targets.
    pub fn unmount(&self) -> Result<()> {
        // The guard must be gone before the keeper is joined: its thread may be asking for it.
        let keeper = self.keeper.lock().take();
        drop(keeper);
        self.listening.stop();
        self.behind.jobs.stop();
        self.ahead.jobs.stop();
        let at_rest = || self.behind.jobs.is_at_rest().then_some(());
        let mut outcome = self.acquire(&Patience::of(FAREWELL), at_rest);
        let last = self.env().monotonic() + LAST_WRITES;
        for inode in self.inodes.select(|inode| !inode.buffer().is_clean()) {
            let left = last.saturating_sub(self.env().monotonic());
            outcome = outcome.and(self.write_back(&inode, false, &Patience::of(left)));
        }
        let patience = Patience::of(FAREWELL);
        for (inode, handle) in self.inodes.all_handles() {
            outcome = outcome.and(self.close_handle(&inode, handle, None, &patience));
        }
        for mdt in self.sessions.opened() {
            outcome =
                outcome.and(self.router.ask(mdt, mds::CloseSession {}, &patience).map(|_| ()));
        }
        let leave = manager::RenewClient { client: self.id().0, leaving: true };
        outcome = outcome.and(self.router.ask(TargetId::MGT, leave, &patience).map(|_| ()));
        outcome
    }

    /// The way to every target, for tools that ask one directly.
    pub fn router(&self) -> &Router {
        &self.router
    }

    pub(crate) fn env(&self) -> &dyn Env {
        &**self.router.env()
    }

    pub(crate) fn patience<'a>(&self, ctx: &Ctx<'a>) -> Patience<'a> {
        ctx.patience(self.config.policy)
    }

    pub(crate) fn next_handle(&self) -> u64 {
        self.next_handle.fetch_add(1, Ordering::Relaxed)
    }

    /// Handles up to this one have been used.
    pub(crate) fn skip_handles(&self, last: u64) {
        self.next_handle.store(last + 1, Ordering::Relaxed);
    }

    pub(crate) fn timed<T>(&self, op: Op, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.metrics.time(self.env(), op, work)
    }
}
