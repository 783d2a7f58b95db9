//! A mount is alive, or leaves.

use crate::Manager;
use crate::manager::Mounted;
use weft_model::{ClientId, ErrorKind, FsError, Result};
use weft_rpc::pb::{Empty, manager};
use weft_rpc::{CallInfo, Role};

/// Notes that a client is alive, or takes it off the list. One that has been off the list for being
/// silent comes back to it: its sessions are the metadata servers' concern.
///
/// # Errors
/// `Denied` when a client speaks for another; `NoSession` for an identity never given out: the
/// client has to register.
pub fn renew_client(
    manager: &Manager,
    info: &CallInfo,
    request: &manager::RenewClient,
) -> Result<Empty> {
    let id = ClientId(request.client);
    let fail = |kind| FsError::new(kind, "renew client").on(format_args!("client={}", id.0));
    if info.role == Role::Client && info.client != ClientId::NONE && info.client != id {
        return Err(fail(ErrorKind::Denied).because("a client speaks for itself only"));
    }
    let now = manager.env.monotonic();
    let mut state = manager.state.lock();
    if id == ClientId::NONE || id.0 >= state.next_client {
        return Err(fail(ErrorKind::NoSession).because("this identity was never given out"));
    }
    if request.leaving {
        manager.book.remove_clients(&[id])?;
        state.clients.remove(&id);
    } else if let Some(mounted) = state.clients.get_mut(&id) {
        mounted.heard = now;
    } else {
        let client = manager::Client { id: id.0, ..Default::default() };
        manager.book.store_client(&client)?;
        state.clients.insert(id, Mounted { client, heard: now });
    }
    Ok(Empty {})
}
