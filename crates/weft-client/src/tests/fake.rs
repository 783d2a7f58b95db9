//! A manager, an MDT and OSTs in a few maps: enough to answer the library, and to misbehave.

use crate::{Client, ClientConfig, CreateArgs, Ctx, OpenFile, OpenFlags};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weft_model::layout::{Component, EOF, Geometry, Pattern};
use weft_model::map::{SequenceRange, Target, TargetState};
use weft_model::{
    Attr, ClusterMap, Env, Epoch, ErrorKind, Fid, FileType, Layout, NodeId, ObjectId, Result,
    TargetId, Timespec, checksum,
};
use weft_rpc::pb::{self, manager, mds, oss};
use weft_rpc::registry::Registry;
use weft_rpc::{Bulk, CallInfo, Reply, Request, Service};

/// Bytes of a stripe unit of every file.
pub const UNIT: usize = 4096;

/// The real clocks.
pub struct Clock(Instant);

impl Env for Clock {
    fn now(&self) -> Timespec {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Timespec::from_nanos(since.as_nanos() as i128)
    }
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
    fn random(&self) -> u64 {
        4
    }
}

/// What the fake servers hold, and how they misbehave.
#[derive(Default)]
pub struct World {
    pub files: BTreeMap<Vec<u8>, Fid>,
    pub attrs: HashMap<Fid, (Attr, u64)>,
    pub objects: HashMap<ObjectId, Vec<u8>>,
    /// Names of requests, in order, without renewals.
    pub log: Vec<&'static str>,
    /// The session is known.
    pub session: bool,
    pub instance: u64,
    /// What OpenSession says of `known`.
    pub known: bool,
    pub reclaimed: Vec<mds::Reclaim>,
    pub written_elsewhere: bool,
    /// Lookups are answered so until groups come along.
    pub need_groups: bool,
    /// So many reads return damaged data.
    pub damaged_reads: u32,
    /// Index of an object that cannot be written.
    pub full_object: Option<u32>,
    /// So many creations are carried out and not answered.
    pub lost_answers: u32,
    /// Closed by their handle alone.
    pub closed_handles: Vec<u64>,
    /// So many lock requests are refused before one is granted.
    pub busy_locks: u32,
    /// Reports as they came.
    pub reports: Vec<mds::Written>,
    pub append_end: u64,
    /// Time that a read of data takes.
    pub read_delay: Duration,
    /// Milliseconds that are granted with attributes.
    pub grant_ms: u32,
}

/// All servers of a cluster with `osts` OSTs.
pub struct Fake {
    pub world: Mutex<World>,
    osts: u16,
}

impl Fake {
    pub fn start(osts: u16) -> (Arc<Fake>, Arc<Client>) {
        Fake::start_for(osts, ClientConfig::default())
    }

    /// The same for a client that is configured so.
    pub fn start_for(osts: u16, config: ClientConfig) -> (Arc<Fake>, Arc<Client>) {
        let fake = Arc::new(Fake { world: Mutex::default(), osts });
        fake.world.lock().instance = 1;
        let registry = Arc::new(Registry::default());
        registry.add(TargetId::MGT, fake.clone());
        registry.add(TargetId::mdt(0), fake.clone());
        (0..osts).for_each(|index| registry.add(TargetId::ost(index), fake.clone()));
        let env = Arc::new(Clock(Instant::now()));
        let client = Client::mount(config, Some(registry), env).unwrap();
        (fake, client)
    }

    fn map(&self) -> ClusterMap {
        let target = |id| Target {
            id,
            uuid: String::new(),
            node: NodeId(1),
            state: TargetState::Up,
            space: Default::default(),
        };
        let osts = (0..self.osts).map(|index| target(TargetId::ost(index)));
        ClusterMap {
            epoch: Epoch(1),
            targets: std::iter::once(target(TargetId::mdt(0))).chain(osts).collect(),
            sequences: vec![SequenceRange { first: 1, last: 9, mdt: 0 }],
            ..ClusterMap::default()
        }
    }

    fn layout(&self) -> pb::Layout {
        let component = Component {
            id: 0,
            start: 0,
            end: EOF,
            pattern: Pattern::Stripe,
            geometry: Geometry::plain(UNIT as u64),
            targets: (0..self.osts).collect(),
        };
        (&Layout { version: 1, components: vec![component] }).into()
    }

    fn entry(&self, world: &World, fid: Fid) -> Result<mds::Entry> {
        let (attr, size_epoch) = world.attrs.get(&fid).ok_or(ErrorKind::Stale)?;
        Ok(mds::Entry {
            attr: Some(attr.into()),
            written_elsewhere: world.written_elsewhere,
            layout: Some(self.layout()),
            size_epoch: *size_epoch,
            grant_ms: world.grant_ms,
            ..mds::Entry::default()
        })
    }

    fn create(&self, world: &mut World, request: &mds::Create) -> Result<mds::CreateReply> {
        let next = Fid::new(2, world.attrs.len() as u64 + 1);
        let created = !world.files.contains_key(&request.name);
        let fid = *world.files.entry(request.name.clone()).or_insert(next);
        let mode = request.mode;
        world.attrs.entry(fid).or_insert_with(|| (attr(fid, FileType::Regular, mode), 0));
        Ok(mds::CreateReply { entry: Some(self.entry(world, fid)?), created })
    }

    fn metadata(&self, world: &mut World, request: &Request) -> Result<Reply> {
        use Request as Q;
        Ok(match request {
            Q::Lookup(r) => {
                let told = r.cred.as_ref().is_some_and(|cred| cred.groups_known);
                if world.need_groups && !told {
                    return Err(ErrorKind::NeedGroups.into());
                }
                let fid = *world.files.get(&r.name).ok_or(ErrorKind::NotFound)?;
                let entry = Some(self.entry(world, fid)?);
                Reply::Lookup(mds::LookupReply { entry, absence_grant_ms: 0 })
            }
            Q::GetAttr(r) if Fid(r.fid) == Fid::ROOT => Reply::GetAttr(mds::Entry {
                attr: Some((&attr(Fid::ROOT, FileType::Directory, 0o755)).into()),
                ..Default::default()
            }),
            Q::GetAttr(r) => Reply::GetAttr(self.entry(world, Fid(r.fid))?),
            Q::Create(r) => {
                let made = self.create(world, r)?;
                if world.lost_answers > 0 {
                    world.lost_answers -= 1;
                    return Err(ErrorKind::Interrupted.into());
                }
                Reply::Create(made)
            }
            Q::Open(r) => Reply::Open(self.entry(world, Fid(r.fid))?),
            Q::SetAttr(r) => {
                report(world, Fid(r.fid), &r.written);
                let (attr, epoch) = world.attrs.get_mut(&Fid(r.fid)).ok_or(ErrorKind::Stale)?;
                if let Some(size) = r.size {
                    (attr.size, *epoch) = (size, *epoch + 1);
                }
                let layout: Layout = self.layout().try_into()?;
                for (id, data) in world.objects.iter_mut().filter(|_| r.size.is_some()) {
                    data.truncate(layout.object_size(id.index, r.size.unwrap_or(0)) as usize);
                }
                Reply::SetAttr(self.entry(world, Fid(r.fid))?)
            }
            Q::Close(r) if r.fid == 0 => {
                world.closed_handles.push(r.handle);
                Reply::Close(pb::Empty {})
            }
            Q::Close(r) => {
                report(world, Fid(r.fid), &r.written);
                Reply::Close(pb::Empty {})
            }
            Q::UpdateWritten(r) => {
                report(world, Fid(r.fid), &r.written);
                Reply::UpdateWritten(pb::Empty {})
            }
            Q::Fsync(r) => {
                report(world, Fid(r.fid), &r.written);
                Reply::Fsync(pb::Empty {})
            }
            Q::Append(r) if world.written_elsewhere && r.glimpsed_for == 0 => {
                Reply::Append(mds::AppendReply { glimpse_for: 1, ..Default::default() })
            }
            Q::Append(r) => {
                let offset = world.append_end.max(r.observed);
                world.append_end = offset + r.len;
                Reply::Append(mds::AppendReply { offset, ..Default::default() })
            }
            Q::Lock(r) => {
                let granted = r.kind == 2 || world.busy_locks == 0;
                world.busy_locks = world.busy_locks.saturating_sub(1);
                Reply::Lock(mds::LockReply { granted })
            }
            Q::AwaitLock(_) => Reply::AwaitLock(mds::AwaitLockReply { free: true }),
            Q::CancelLock(_) => Reply::CancelLock(pb::Empty {}),
            Q::RenewSession(_) => Reply::RenewSession(pb::Empty {}),
            Q::CloseSession(_) => Reply::CloseSession(pb::Empty {}),
            _ => return Err(ErrorKind::NotImplemented.into()),
        })
    }

    fn session(&self, world: &mut World, request: &Request) -> Option<Reply> {
        match request {
            Request::OpenSession(_) => {
                world.session = true;
                let (instance, known) = (world.instance, world.known);
                let reply = mds::OpenSessionReply {
                    instance,
                    lease_ms: 60_000,
                    recovering: false,
                    known,
                    delegation_ms: 5000,
                };
                Some(Reply::OpenSession(reply))
            }
            Request::Reclaim(r) => {
                world.reclaimed.push(r.clone());
                Some(Reply::Reclaim(pb::Empty {}))
            }
            _ => None,
        }
    }

    fn manage(&self, request: &Request) -> Result<Reply> {
        match request {
            Request::RegisterClient(_) => {
                let map = Some((&self.map()).into());
                Ok(Reply::RegisterClient(manager::RegisterClientReply { client: 7, map }))
            }
            Request::RenewClient(_) => Ok(Reply::RenewClient(pb::Empty {})),
            _ => Err(ErrorKind::NotImplemented.into()),
        }
    }
}

impl Service for Fake {
    fn serve(&self, info: &CallInfo, request: &Request, bulk: Bulk<'_>) -> Result<Reply> {
        let mut world = self.world.lock();
        if !matches!(request, Request::RenewSession(_) | Request::RenewClient(_)) {
            world.log.push(request.name());
        }
        match info.target {
            TargetId::MGT => self.manage(request),
            target if target == TargetId::mdt(0) => {
                if let Some(reply) = self.session(&mut world, request) {
                    return Ok(reply);
                }
                if !world.session {
                    return Err(ErrorKind::NoSession.into());
                }
                self.metadata(&mut world, request)
            }
            _ => store(&mut world, request, bulk),
        }
    }
}

fn attr(fid: Fid, kind: FileType, mode: u32) -> Attr {
    let zero = Timespec::default();
    Attr {
        fid,
        kind,
        mode,
        nlink: 1,
        uid: 0,
        gid: 0,
        size: 0,
        blocks: 0,
        rdev: 0,
        atime: zero,
        mtime: zero,
        ctime: zero,
        btime: zero,
        change: 0,
    }
}

fn report(world: &mut World, fid: Fid, written: &Option<mds::Written>) {
    let (Some(written), Some((attr, epoch))) = (written, world.attrs.get_mut(&fid)) else { return };
    world.reports.push(written.clone());
    if written.size_epoch == *epoch {
        attr.size = attr.size.max(written.end);
    }
    if written.kill_suidgid {
        attr.mode &= 0o777;
    }
}

fn store(world: &mut World, request: &Request, bulk: Bulk<'_>) -> Result<Reply> {
    match (request, bulk) {
        (Request::Write(r), Bulk::Send(data)) => {
            let id: ObjectId = r.object.unwrap().into();
            if world.full_object == Some(id.index) {
                return Err(ErrorKind::NoSpace.into());
            }
            checksum::verify(r.offset, data, &r.sums).map_err(|_| ErrorKind::Checksum)?;
            let object = world.objects.entry(id).or_default();
            let end = r.offset as usize + data.len();
            object.resize(object.len().max(end), 0);
            object[r.offset as usize..end].copy_from_slice(data);
            Ok(Reply::Write(oss::WriteReply { blocks: object.len().div_ceil(512) as u64, free: 0 }))
        }
        (Request::Read(r), Bulk::Receive(buffer)) => {
            std::thread::sleep(world.read_delay);
            let id: ObjectId = r.object.unwrap().into();
            let object = world.objects.get(&id).map_or(&[][..], Vec::as_slice);
            let from = (r.offset as usize).min(object.len());
            let data = &object[from..object.len().min(from + r.len as usize)];
            let sums = checksum::compute(r.offset, data);
            buffer[..data.len()].copy_from_slice(data);
            if world.damaged_reads > 0 && !data.is_empty() {
                buffer[0] ^= 1;
                world.damaged_reads -= 1;
            }
            Ok(Reply::Read(oss::ReadReply { len: data.len() as u32, sums }))
        }
        (Request::Stat(r), _) => {
            let stat = |object: &oss::Object| {
                let found = world.objects.get(&(*object).into());
                let size = found.map_or(0, |data| data.len() as u64);
                let blocks = size.div_ceil(512);
                oss::ObjectStat { exists: found.is_some(), size, blocks, mtime: None }
            };
            Ok(Reply::Stat(oss::StatReply { stats: r.objects.iter().map(stat).collect() }))
        }
        (Request::Seek(r), _) => {
            // Bytes that are zero are holes.
            let object = world.objects.get(&r.object.unwrap().into());
            let data = object.map_or(&[][..], Vec::as_slice);
            let found = (r.offset as usize..data.len()).find(|&at| (data[at] == 0) == r.hole);
            let end = (r.hole && r.offset < data.len() as u64).then_some(data.len());
            let offset = found.or(end).map(|at| at as u64);
            Ok(Reply::Seek(oss::SeekReply { offset }))
        }
        (Request::Sync(_), _) => Ok(Reply::Sync(pb::Empty {})),
        _ => Err(ErrorKind::NotImplemented.into()),
    }
}

/// Creates a file open for reading and writing.
pub fn create(client: &Client, name: &str) -> OpenFile {
    create_with(client, name, OpenFlags::READ | OpenFlags::WRITE, 0o644)
}

/// Creates a file opened in a certain way.
pub fn create_with(client: &Client, name: &str, flags: OpenFlags, mode: u32) -> OpenFile {
    let args = CreateArgs { mode, flags, ..CreateArgs::default() };
    client.create(&Ctx::root(), client.root(), name.as_bytes(), &args).unwrap().file
}
