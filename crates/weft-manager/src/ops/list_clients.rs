//! Lists mounted clients.

use crate::Manager;
use weft_rpc::pb::manager::{Client, ListClientsReply};

/// All clients heard of within the client timeout, by identity.
pub fn list_clients(manager: &Manager) -> ListClientsReply {
    let now = manager.env.monotonic();
    let state = manager.state.lock();
    let clients = state.clients.values().map(|mounted| Client {
        idle_ms: now.saturating_sub(mounted.heard).as_millis() as u64,
        ..mounted.client.clone()
    });
    ListClientsReply { clients: clients.collect() }
}
