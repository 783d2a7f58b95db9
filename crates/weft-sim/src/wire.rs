//! The transport of the simulation: what can happen to a message.
//!
//! A request goes through the codec of the wire, arrives late, twice or never, meets a server that is
//! down, or one that is killed before or after it has carried it out; and so for the answer. What a
//! connection guarantees stays guaranteed: a request that was given up does not arrive later.

use crate::actor::unwound;
use crate::plan::Sabotage;
use crate::process::Process;
use prost::Message as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use weft_model::{ClientId, ClusterMap, ErrorKind, FsError, Result, TargetId, Xid};
use weft_rpc::convert::error_from_wire;
use weft_rpc::registry::Registry;
use weft_rpc::{Bulk, CallInfo, Reply, Request, Transport, Wait, pb};

/// Where the manager listens.
pub const MANAGER: &str = "mgs";

/// The connections of one process.
pub struct Wire(pub Process);

impl Transport for Wire {
    fn exchange(
        &self,
        map: &ClusterMap,
        info: &CallInfo,
        request: &Request,
        mut bulk: Bulk<'_>,
        _wait: &Wait<'_>,
    ) -> Result<Reply> {
        let (from, world) = (&self.0, &self.0.world);
        let what = format!("{} to {} {:?}", request.name(), info.target, info.xid);
        from.pause(world.span(20, 400));
        if world.fault(world.plan.loss) {
            return Err(self.silence(&what, "request lost"));
        }
        let Some((server, registry)) = world.serving(address(map, info.target)?) else {
            return Err(self.silence(&what, "nobody listens"));
        };
        let mut info = CallInfo { wire: true, ..*info };
        if world.plan.sabotage == Some(Sabotage::StripXids) {
            info.xid = Xid::NONE;
        }
        let mut answer = self.deliver(&server, &registry, &info, request, &mut bulk);
        if answer.is_some() && world.fault(world.plan.twice) {
            world.note(format_args!("{what}: arrives twice"));
            answer = self.deliver(&server, &registry, &info, request, &mut bulk);
        }
        from.check();
        let Some(answer) = answer else {
            return Err(self.silence(&what, "server died"));
        };
        if world.fault(world.plan.loss) {
            return Err(self.silence(&what, "answer lost"));
        }
        from.pause(world.span(20, 400));
        world.explain(request);
        let outcome = answer.as_ref().map_or_else(|error| error.kind.text(), |_| "ok");
        world.note(format_args!("{what}: {outcome}"));
        as_received(request.number(), answer)
    }

    fn set_client(&self, _client: ClientId) {}
}

impl Wire {
    /// The connection breaks; nobody here knows what came of the request.
    fn silence(&self, what: &str, why: &str) -> FsError {
        let world = &self.0.world;
        world.note(format_args!("{what}: {why}"));
        self.0.pause(world.span(500, 50_000));
        FsError::new(ErrorKind::Disconnected, "exchange").because(why)
    }

    /// Has the server carry it out. `None`: it was killed before it could answer.
    fn deliver(
        &self,
        server: &Process,
        registry: &Arc<Registry>,
        info: &CallInfo,
        request: &Request,
        bulk: &mut Bulk<'_>,
    ) -> Option<Result<Reply>> {
        let (world, plan) = (&server.world, &server.world.plan);
        let may_die = may_be_killed(server, info.target);
        if may_die && world.fault(plan.kill_at_message) {
            world.kill(server.host, "before a request");
        }
        let mut body = Vec::new();
        request.encode(&mut body);
        let carried_out = catch_unwind(AssertUnwindSafe(|| {
            server.check();
            let request = Request::decode(request.number(), &body)?;
            registry.dispatch(info, &request, bulk.reborrow())
        }));
        let answer = match carried_out {
            Ok(answer) => answer,
            Err(cause) if unwound(&*cause) == Some(server.end()) => return None,
            Err(cause) => resume_unwind(cause),
        };
        if may_die && world.fault(plan.kill_at_message) {
            world.kill(server.host, "after a request");
        }
        server.is_alive().then_some(answer)
    }
}

/// Whether the plan lets a server be killed.
pub fn may_be_killed(server: &Process, target: TargetId) -> bool {
    target != TargetId::mdt(0) || server.world.plan.kill_mds
}

fn address(map: &ClusterMap, target: TargetId) -> Result<&str> {
    if target == TargetId::MGT {
        return Ok(MANAGER);
    }
    let node = map.node_of(target).and_then(|node| node.addresses.first());
    node.map(String::as_str).ok_or_else(|| FsError::new(ErrorKind::WrongNode, "find target"))
}

/// The answer as the other side decodes it.
fn as_received(number: u16, answer: Result<Reply>) -> Result<Reply> {
    let mut body = Vec::new();
    match answer {
        Ok(reply) => {
            reply.encode(&mut body);
            Reply::decode(number, &body)
        }
        Err(error) => {
            pb::ErrorBody::from(&error).encode_raw(&mut body);
            let decoded = pb::ErrorBody::decode(body.as_slice()).unwrap_or_default();
            Err(error_from_wire(error.kind as u16, decoded))
        }
    }
}
