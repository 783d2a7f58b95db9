//! Hands out the map.

use crate::Manager;
use weft_model::Epoch;
use weft_rpc::pb::manager::{GetMap, GetMapReply};

/// The current map, or nothing when the asker has it already.
pub fn get_map(manager: &Manager, request: &GetMap) -> GetMapReply {
    GetMapReply { map: manager.state.lock().map_for(Epoch(request.have_epoch)) }
}
