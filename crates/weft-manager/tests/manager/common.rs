//! What the manager's tests share: a clock that is moved by hand, and a caller.

use std::sync::Arc;
use std::time::Duration;
use weft_manager::{Manager, Settings};
use weft_model::{ClientId, Env, Epoch, Result, TargetId, Timespec, Xid};
use weft_rpc::pb::manager::{Heartbeat, ServedTarget};
use weft_rpc::{Bulk, CallInfo, Message, Role, Service};
use weft_store::MemKv;

/// A clock that is moved by hand; sleeping moves it, too.
#[derive(Default)]
pub struct Clock(parking_lot::Mutex<Duration>);

impl Clock {
    pub fn advance(&self, seconds: f64) {
        *self.0.lock() += Duration::from_secs_f64(seconds);
    }
}

impl Env for Clock {
    fn now(&self) -> Timespec {
        Timespec::default()
    }
    fn monotonic(&self) -> Duration {
        *self.0.lock()
    }
    fn sleep(&self, duration: Duration) {
        *self.0.lock() += duration;
    }
    fn random(&self) -> u64 {
        4
    }
}

pub fn open(kv: &Arc<MemKv>, clock: &Arc<Clock>) -> Manager {
    let settings = Settings { cluster: "c".into(), ..Settings::default() };
    Manager::open(kv.clone(), clock.clone(), settings).unwrap()
}

pub fn info(role: Role, client: u64) -> CallInfo {
    CallInfo {
        role,
        client: ClientId(client),
        xid: Xid::NONE,
        epoch: Epoch(0),
        target: TargetId::MGT,
        wire: true,
    }
}

pub fn ask<M: Message>(manager: &Manager, message: M) -> Result<M::Reply> {
    M::reply(manager.serve(&info(Role::Server, 0), &message.into_request(), Bulk::None)?)
}

pub fn beat(node: &str, targets: &[TargetId]) -> Heartbeat {
    let served =
        |id: &TargetId| ServedTarget { id: id.to_wire(), uuid: format!("uuid-{id}"), space: None };
    Heartbeat {
        node: node.into(),
        addresses: vec![format!("{node}:1")],
        targets: targets.iter().map(served).collect(),
        have_epoch: 0,
        stopping: false,
    }
}
