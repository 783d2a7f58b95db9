//! One file per operation.

pub mod allocate_sequence;
pub mod get_map;
pub mod heartbeat;
pub mod list_clients;
pub mod node_stats;
pub mod register_client;
pub mod remove;
pub mod renew_client;
pub mod set_pool;
pub mod set_target_state;
