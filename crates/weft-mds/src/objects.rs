//! What a metadata target asks of the OSTs: sizes, cutting, destroying, and taking over small files. Never
//! on the path of data.

use crate::record::Inode;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weft_model::layout::ObjectRef;
use weft_model::{ErrorKind, Fid, FsError, Layout, ObjectId, Result, TargetId, checksum};
use weft_rpc::pb::oss;
use weft_rpc::router::{Patience, Router};
use weft_rpc::{Bulk, Call, Message, Reply};

/// How long an OST may take before the request that needs it is sent back to the client to come
/// again.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take where nobody waits, and other work does.
const BACKGROUND: Duration = Duration::from_secs(2);

/// The way to the objects.
pub struct Objects {
    router: Arc<Router>,
    /// The target stops: no OST that is gone is waited for any more.
    stopping: AtomicBool,
}

impl Objects {
    /// Asks through `router`.
    pub const fn new(router: Arc<Router>) -> Objects {
        Objects { router, stopping: AtomicBool::new(false) }
    }

    /// From now on an OST that does not answer soon is given up.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Asks several OSTs at once.
    fn ask_all(&self, calls: &mut [Call<'_>]) -> Vec<Result<Reply>> {
        let stopping = || self.is_stopping();
        let patience = Patience { limit: Some(PATIENCE), interrupted: Some(&stopping) };
        let answers = self.router.call_all(calls, &patience).into_iter();
        answers.map(|answer| answer.map_err(come_again)).collect()
    }

    /// Asks one OST in the background.
    fn ask<M: Message>(&self, ost: TargetId, message: M) -> Result<M::Reply> {
        let stopping = || self.is_stopping();
        let patience = Patience { limit: Some(BACKGROUND), interrupted: Some(&stopping) };
        self.router.ask(ost, message, &patience).map_err(come_again)
    }

    /// The router.
    pub const fn router(&self) -> &Arc<Router> {
        &self.router
    }

    /// The size of a file that its objects prove, at least what the inode says.
    ///
    /// # Errors
    /// When an OST does not answer.
    pub fn size(&self, fid: Fid, inode: &Inode) -> Result<u64> {
        let layout: Layout = inode.layout.clone().unwrap_or_default().try_into()?;
        let by_target = group(layout.objects(fid));
        let mut calls: Vec<Call<'_>> = by_target
            .iter()
            .map(|(target, objects)| Call {
                target: *target,
                request: oss::Stat { objects: wire(objects) }.into_request(),
                bulk: Bulk::None,
            })
            .collect();
        let mut size = inode.size;
        let answers = self.ask_all(&mut calls);
        for ((_, objects), answer) in by_target.iter().zip(answers) {
            let Reply::Stat(reply) = answer? else {
                return Err(FsError::new(ErrorKind::Protocol, "stat objects"));
            };
            for (object, stat) in objects.iter().zip(&reply.stats) {
                size = size.max(layout.size_from_object(object.object.index, stat.size));
            }
        }
        Ok(size)
    }

    /// Cuts every object of a file to what a file of `size` bytes has in it.
    ///
    /// # Errors
    /// When an OST does not answer; some objects may have been cut.
    pub fn truncate(&self, fid: Fid, layout: &Layout, size: u64) -> Result<()> {
        let mut calls: Vec<Call<'_>> = layout
            .objects(fid)
            .map(|object| {
                let cut = oss::Truncate {
                    object: Some(object.object.into()),
                    size: layout.object_size(object.object.index, size),
                    only_shrink: true,
                };
                Call { target: object.target, request: cut.into_request(), bulk: Bulk::None }
            })
            .collect();
        self.ask_all(&mut calls).into_iter().try_for_each(|a| a.map(drop))
    }

    /// Writes the first bytes of a file.
    ///
    /// # Errors
    /// When an OST does not answer, `NoSpace`; some may have been written.
    pub fn write(&self, fid: Fid, layout: &Layout, data: &[u8], sync: bool) -> Result<()> {
        let pieces = layout.split(fid, 0, data.len() as u64)?;
        let mut calls: Vec<Call<'_>> = pieces
            .iter()
            .map(|piece| {
                let data = &data[piece.file_offset as usize..][..piece.len as usize];
                let write = oss::Write {
                    object: Some(piece.object.into()),
                    offset: piece.object_offset,
                    sums: checksum::compute(piece.object_offset, data),
                    sync,
                    not_after: None,
                };
                let bulk = Bulk::Send(data);
                Call { target: piece.target, request: write.into_request(), bulk }
            })
            .collect();
        self.ask_all(&mut calls).into_iter().try_for_each(|a| a.map(drop))
    }

    /// The next objects of an OST behind a cursor.
    ///
    /// # Errors
    /// `Invalid` for a cursor it does not know; when it does not answer.
    pub fn list(&self, ost: TargetId, cursor: &str, limit: u32) -> Result<oss::ListObjectsReply> {
        let request = oss::ListObjects { cursor: cursor.to_string(), limit };
        self.ask(ost, request)
    }

    /// Attributes of objects of an OST, in their order.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn stat(&self, ost: TargetId, objects: &[ObjectId]) -> Result<Vec<oss::ObjectStat>> {
        let objects = objects.iter().map(|&object| object.into()).collect();
        Ok(self.ask(ost, oss::Stat { objects })?.stats)
    }

    /// Removes objects of an OST.
    ///
    /// # Errors
    /// When it does not answer; some may be gone.
    pub fn destroy_at(&self, ost: TargetId, objects: &[ObjectId]) -> Result<()> {
        let objects = objects.iter().map(|&object| object.into()).collect();
        self.ask(ost, oss::Destroy { objects }).map(drop)
    }

    /// Removes every object of these files, with one request for each OST. Answers for each file whether
    /// all OSTs have answered.
    pub fn destroy(&self, files: &[(Fid, Layout)]) -> Vec<Result<()>> {
        let map = self.router.map();
        let objects = files.iter().flat_map(|(fid, layout)| layout.objects(*fid));
        // What was on a target that an operator has removed went with it.
        let by_target = group(objects.filter(|object| map.target(object.target).is_some()));
        let mut calls: Vec<Call<'_>> = by_target
            .iter()
            .map(|(target, objects)| Call {
                target: *target,
                request: oss::Destroy { objects: wire(objects) }.into_request(),
                bulk: Bulk::None,
            })
            .collect();
        let answers = self.ask_all(&mut calls);
        let targets = by_target.iter().map(|(target, _)| *target);
        let failed: HashMap<TargetId, FsError> =
            targets.zip(answers).filter_map(|(target, a)| Some((target, a.err()?))).collect();
        let outcome = |(fid, layout): &(Fid, Layout)| {
            let mut errors = layout.objects(*fid).filter_map(|object| failed.get(&object.target));
            errors.next().map_or(Ok(()), |error| Err(error.again()))
        };
        files.iter().map(outcome).collect()
    }
}

/// It was not the client who has interrupted it, and another start of the target will do it.
fn come_again(error: FsError) -> FsError {
    let kind = if error.kind == ErrorKind::Interrupted { ErrorKind::NotReady } else { error.kind };
    FsError { kind, ..error }
}

fn wire(objects: &[ObjectRef]) -> Vec<oss::Object> {
    objects.iter().map(|object| object.object.into()).collect()
}

fn group(objects: impl Iterator<Item = ObjectRef>) -> Vec<(TargetId, Vec<ObjectRef>)> {
    let mut groups: Vec<(TargetId, Vec<ObjectRef>)> = Vec::new();
    for object in objects {
        match groups.iter_mut().find(|(target, _)| *target == object.target) {
            Some((_, members)) => members.push(object),
            None => groups.push((object.target, vec![object])),
        }
    }
    groups
}
