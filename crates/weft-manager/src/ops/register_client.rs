//! Gives a new mount its identity.

use crate::Manager;
use crate::manager::{Mounted, State};
use weft_model::{ClientId, ErrorKind, FsError, Result};
use weft_rpc::pb::manager::{Client, RegisterClient, RegisterClientReply};

/// Identities reserved in the book at a time; up to so many are skipped by a restart.
const BLOCK: u64 = 1024;
/// Clients listed at a time.
const MAX_CLIENTS: usize = 1 << 20;
/// Longest text a client may say of itself, bytes: a path.
const MAX_TEXT: usize = 4096;

/// A fresh identity, never given out before, and the map.
///
/// # Errors
/// `TooBig` for a talkative client, `Overloaded` with too many clients, and what the store says.
pub fn register_client(manager: &Manager, request: &RegisterClient) -> Result<RegisterClientReply> {
    let texts = [&request.host, &request.mountpoint, &request.version];
    if texts.iter().any(|text| text.len() > MAX_TEXT) {
        return Err(FsError::new(ErrorKind::TooBig, "register client"));
    }
    let mut state = manager.state.lock();
    if state.clients.len() >= MAX_CLIENTS {
        return Err(FsError::new(ErrorKind::Overloaded, "register client")
            .because(format_args!("{MAX_CLIENTS} clients are mounted")));
    }
    let id = fresh_identity(manager, &mut state)?;
    let client = Client {
        id: id.0,
        host: request.host.clone(),
        mountpoint: request.mountpoint.clone(),
        version: request.version.clone(),
        idle_ms: 0,
    };
    manager.book.store_client(&client)?;
    let heard = manager.env.monotonic();
    state.clients.insert(id, Mounted { client, heard });
    Ok(RegisterClientReply { client: id.0, map: Some((&state.map).into()) })
}

fn fresh_identity(manager: &Manager, state: &mut State) -> Result<ClientId> {
    if state.next_client >= state.client_limit {
        let limit = state.next_client + BLOCK;
        manager.book.store_client_limit(limit)?;
        state.client_limit = limit;
    }
    let id = ClientId(state.next_client);
    state.next_client += 1;
    Ok(id)
}
