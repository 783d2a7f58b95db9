//! Finding a target with the current map and getting an answer from it, whatever happens meanwhile.
//!
//! A target served by this process is a function call. Otherwise the request goes to the node that
//! the map names; when that fails in a way that another try can mend (the node restarts, the target
//! moves, the map is old), the router tries again until the caller's [`Patience`] ends. A modifying
//! request keeps its slot and number through all tries, so that it happens exactly once.

use crate::auth::Role;
use crate::call::{Bulk, Call, CallInfo};
use crate::channel::Identity;
use crate::choices::{Choice, Choices};
use crate::message::{Message, Reply, Request};
use crate::pb::manager;
use crate::registry::Registry;
use crate::service::Service;
use crate::slots::{Slot, SlotPool};
use crate::sockets::Sockets;
use crate::transport::{Transport, Wait};
use crate::waits::Waits;
use parking_lot::RwLock;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use weft_model::error::Retry;
use weft_model::{ClientId, ClusterMap, Env, ErrorKind, FsError, Result, TargetId, Xid};

/// First pause between tries; doubles up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_millis(2);
/// Longest pause between tries: what a client adds to the time that a restart takes.
const MAX_PAUSE: Duration = Duration::from_millis(200);
/// Longest wait for one answer before the connection is given up and made anew.
const MAX_TRY: Duration = Duration::from_secs(20);
/// What a try gets even if the caller's patience is shorter, and what the manager gets for a new map: a
/// busy server is no dead one.
const MIN_TRY: Duration = Duration::from_secs(2);

/// How long a caller is willing to wait.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// Give up after this long; `None` waits for as long as it takes (a hard mount).
    pub limit: Option<Duration>,
    /// Asked between tries: whether the caller wants no answer any more.
    pub interrupted: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Patience<'_> {
    /// Waits for as long as it takes.
    pub const FOREVER: Patience<'static> = Patience { limit: None, interrupted: None };

    /// Waits up to `limit`.
    pub const fn of(limit: Duration) -> Patience<'static> {
        Patience { limit: Some(limit), interrupted: None }
    }
}

/// The number of a request in its session, if it needs one.
pub struct Numbered<'a>(Number<'a>);

enum Number<'a> {
    None,
    /// Free again when the request has its answer.
    Own(Slot<'a>),
    /// Free again when the operation has been answered, or the request has led to nothing.
    Kept {
        xid: Xid,
        choice: Choice,
        choices: &'a dyn Choices,
        ended: Cell<bool>,
    },
}

impl Numbered<'_> {
    fn xid(&self) -> Xid {
        match &self.0 {
            Number::None => Xid::NONE,
            Number::Own(slot) => slot.xid(),
            Number::Kept { xid, .. } => *xid,
        }
    }
}

/// The way to every target.
pub struct Router {
    role: Role,
    client: AtomicU64,
    registry: Option<Arc<Registry>>,
    transport: Arc<dyn Transport>,
    env: Arc<dyn Env>,
    map: RwLock<Arc<ClusterMap>>,
    slots: SlotPool,
    choices: OnceLock<Arc<dyn Choices>>,
    waits: Waits,
}

impl Router {
    /// A router that knows the managers' addresses and has no map yet. Targets in `registry` are
    /// called directly.
    pub fn new(
        identity: Identity,
        managers: Vec<String>,
        registry: Option<Arc<Registry>>,
        env: Arc<dyn Env>,
    ) -> Router {
        let (role, client) = (identity.role, identity.client);
        let router = Router::over(Arc::new(Sockets::new(identity, managers)), role, registry, env);
        router.client.store(client.0, Ordering::Release);
        router
    }

    /// The same over another transport, without a session as yet.
    pub fn over(
        transport: Arc<dyn Transport>,
        role: Role,
        registry: Option<Arc<Registry>>,
        env: Arc<dyn Env>,
    ) -> Router {
        Router {
            role,
            client: AtomicU64::new(ClientId::NONE.0),
            registry,
            transport,
            env,
            map: RwLock::default(),
            slots: SlotPool::default(),
            choices: OnceLock::new(),
            waits: Waits::default(),
        }
    }

    /// The newest map this process has.
    pub fn map(&self) -> Arc<ClusterMap> {
        self.map.read().clone()
    }

    /// The session that requests are made in.
    pub fn client(&self) -> ClientId {
        ClientId(self.client.load(Ordering::Acquire))
    }

    /// Time and randomness.
    pub fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }

    /// From now on requests are made in this session. Open connections are dropped.
    pub fn set_client(&self, client: ClientId) {
        self.client.store(client.0, Ordering::Release);
        self.transport.set_client(client);
    }

    /// Takes over a map unless it is older than ours. One of the same epoch brings newer figures of
    /// space, which do not count as a change.
    pub fn set_map(&self, map: ClusterMap) {
        let mut current = self.map.write();
        if map.epoch >= current.epoch {
            *current = Arc::new(map);
        }
    }

    /// Asks the manager for a newer map.
    ///
    /// # Errors
    /// Those of the connection; one try.
    pub fn refresh_map(&self) -> Result<()> {
        let have_epoch = self.map().epoch.0;
        let request = manager::GetMap { have_epoch }.into_request();
        let wait = Wait { limit: MIN_TRY, interrupted: &|_| false };
        let reply = self.attempt(TargetId::MGT, Xid::NONE, &request, &mut Bulk::None, &wait)?;
        if let Some(map) = manager::GetMap::reply(reply)?.map {
            self.set_map(map.try_into()?);
        }
        Ok(())
    }

    /// Asks without bulk.
    ///
    /// # Errors
    /// The target's answer, or what prevented one when patience ends.
    pub fn ask<M: Message>(
        &self,
        target: TargetId,
        message: M,
        patience: &Patience<'_>,
    ) -> Result<M::Reply> {
        M::reply(self.call(target, &message.into_request(), Bulk::None, patience)?)
    }

    /// Asks with bulk.
    ///
    /// # Errors
    /// As [`Self::ask`]. `NoSession` comes back to the caller, who has to open the session again; see
    /// [`Self::number`].
    pub fn call(
        &self,
        target: TargetId,
        request: &Request,
        bulk: Bulk<'_>,
        patience: &Patience<'_>,
    ) -> Result<Reply> {
        self.call_as(&self.number(target, request), target, request, bulk, patience)
    }

    /// A number for a request, to be kept until it has its answer: an earlier try may have been carried
    /// out although its answer was lost, even if the next one meets `NoSession`.
    pub fn number(&self, target: TargetId, request: &Request) -> Numbered<'_> {
        if !request.is_modifying() || self.local(target).is_some() {
            return Numbered(Number::None);
        }
        let choices = self.choices.get().filter(|_| !request.is_repeatable());
        let Some(choices) = choices else {
            return Numbered(Number::Own(self.slots.take()));
        };
        let choice = Choice::number(request.number(), target);
        let kept = |xid| Number::Kept { xid, choice, choices: &**choices, ended: Cell::new(false) };
        if let Some(xid) = choices.made(choice) {
            return Numbered(kept(Xid(xid)));
        }
        match self.slots.take().keep(|xid| choices.make(choice, xid.0)) {
            Ok(xid) => Numbered(kept(xid)),
            Err(slot) => Numbered(Number::Own(slot)),
        }
    }

    /// From now on numbers are noted with `choices`, and given back by whoever ends operations there.
    /// `base` and `kept` are what an earlier process has used: see [`SlotPool::inherit`]. Only the first
    /// call counts.
    pub fn set_choices(&self, choices: Arc<dyn Choices>, base: u64, kept: &[Xid]) {
        self.slots.inherit(base, kept);
        self.choices.get_or_init(|| choices);
    }

    /// An operation that had noted this number has been answered.
    pub fn give_back(&self, xid: Xid) {
        self.slots.give_back(xid);
    }

    /// Asks with bulk, under a number that the request may have had before.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn call_as(
        &self,
        number: &Numbered<'_>,
        target: TargetId,
        request: &Request,
        mut bulk: Bulk<'_>,
        patience: &Patience<'_>,
    ) -> Result<Reply> {
        let answer = self.persist(target, number.xid(), request, &mut bulk, patience, None);
        if let (Number::Kept { xid, choice, choices, ended }, Err(error)) = (&number.0, &answer)
            && !may_have_happened(error)
            && !ended.replace(true)
        {
            choices.unmake(*choice, xid.0);
            self.slots.give_back(*xid);
        }
        answer
    }

    /// Asks several targets at once; requests that do not modify metadata only. Answers come in the
    /// order of the calls. A call that fails is tried again by itself.
    pub fn call_all(&self, calls: &mut [Call<'_>], patience: &Patience<'_>) -> Vec<Result<Reply>> {
        if let [only] = calls {
            return vec![self.call(only.target, &only.request, only.bulk.reborrow(), patience)];
        }
        if calls.iter().all(|call| self.local(call.target).is_some()) {
            return calls
                .iter_mut()
                .map(|call| self.call(call.target, &call.request, call.bulk.reborrow(), patience))
                .collect();
        }
        let infos: Vec<_> = calls.iter().map(|call| self.info(call.target, Xid::NONE)).collect();
        let since = self.env.monotonic();
        let name = calls.first().map_or("", |call| call.request.name());
        let interrupted = |target| self.is_interrupted(target, name, since, patience);
        let wait = Wait { limit: self.left(since, patience), interrupted: &interrupted };
        let first = self.transport.exchange_all(&self.map(), &infos, calls, &wait);
        first
            .into_iter()
            .zip(calls)
            .map(|(answer, call)| match answer {
                Err(error) if retriable(&error) => {
                    let mut bulk = call.bulk.reborrow();
                    self.persist(
                        call.target,
                        Xid::NONE,
                        &call.request,
                        &mut bulk,
                        patience,
                        Some(error),
                    )
                }
                other => {
                    self.waits.end(call.target, || self.env.monotonic());
                    other
                }
            })
            .collect()
    }

    /// Tries until there is an answer that another try would not change.
    fn persist(
        &self,
        target: TargetId,
        xid: Xid,
        request: &Request,
        bulk: &mut Bulk<'_>,
        patience: &Patience<'_>,
        mut failed: Option<FsError>,
    ) -> Result<Reply> {
        let (since, name) = (self.env.monotonic(), request.name());
        let interrupted = |target| self.is_interrupted(target, name, since, patience);
        let mut pause = MIN_PAUSE;
        loop {
            let error = match failed.take() {
                Some(error) => error,
                None => {
                    let limit = self.left(since, patience);
                    let wait = Wait { limit, interrupted: &interrupted };
                    match self.attempt(target, xid, request, bulk, &wait) {
                        Err(error) if retriable(&error) => error,
                        answer => {
                            self.waits.end(target, || self.env.monotonic());
                            return answer;
                        }
                    }
                }
            };
            let now = self.env.monotonic();
            if patience.limit.is_none_or(|limit| limit > MIN_TRY) {
                self.waits.note(target, name, since, now, Some(&error));
            }
            if patience.interrupted.is_some_and(|interrupted| interrupted()) {
                return Err(FsError::new(ErrorKind::Interrupted, name).because(error));
            }
            if patience.limit.is_some_and(|limit| now.saturating_sub(since) >= limit) {
                return Err(FsError::new(ErrorKind::TimedOut, name)
                    .on(format_args!("target={target}"))
                    .because(error));
            }
            if error.kind.retry() != Retry::Same && target != TargetId::MGT {
                // Without the manager the map stays as it is, and the known node is tried again.
                if let Err(error) = self.refresh_map() {
                    tracing::debug!(%error, "cannot refresh the cluster map");
                }
            }
            self.env.sleep(pause);
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn attempt(
        &self,
        target: TargetId,
        xid: Xid,
        request: &Request,
        bulk: &mut Bulk<'_>,
        wait: &Wait<'_>,
    ) -> Result<Reply> {
        let info = self.info(target, xid);
        if let Some(service) = self.local(target) {
            return service.serve(&info, request, bulk.reborrow());
        }
        self.transport.exchange(&self.map(), &info, request, bulk.reborrow(), wait)
    }

    /// What a try gets of a caller's patience.
    fn left(&self, since: Duration, patience: &Patience<'_>) -> Duration {
        let waited = self.env.monotonic().saturating_sub(since);
        let left = |limit: Duration| limit.saturating_sub(waited).clamp(MIN_TRY, MAX_TRY);
        patience.limit.map_or(MAX_TRY, left)
    }

    /// Whether a caller who has heard nothing for a while wants no answer any more. Before that no
    /// signal counts: programs do not expect calls on files to end early, and most answers come soon.
    fn is_interrupted(
        &self,
        target: TargetId,
        name: &str,
        since: Duration,
        patience: &Patience<'_>,
    ) -> bool {
        let now = self.env.monotonic();
        self.waits.note(target, name, since, now, None)
            && patience.interrupted.is_some_and(|interrupted| interrupted())
    }

    /// The target, if this process serves it.
    fn local(&self, target: TargetId) -> Option<Arc<dyn Service>> {
        self.registry.as_ref().and_then(|local| local.get(target))
    }

    fn info(&self, target: TargetId, xid: Xid) -> CallInfo {
        CallInfo {
            role: self.role,
            client: self.client(),
            xid,
            epoch: self.map.read().epoch,
            target,
            wire: false,
        }
    }
}

/// Whether a request that ended with this error may still have been carried out, now or by a later try.
fn may_have_happened(error: &FsError) -> bool {
    let open = [ErrorKind::Interrupted, ErrorKind::TimedOut, ErrorKind::NoSession];
    open.contains(&error.kind) || retriable(error)
}

fn retriable(error: &FsError) -> bool {
    matches!(error.kind.retry(), Retry::Same | Retry::RefreshMap | Retry::Reconnect)
}
