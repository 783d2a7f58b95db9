//! The seam between a transport and a server.

use crate::call::{Bulk, CallInfo};
use crate::message::{Reply, Request};
use weft_model::{ClientId, Result};

/// Answers requests to one target. Called from many threads at once; a call runs to its end on the
/// thread that makes it and must not wait without a deadline.
pub trait Service: Send + Sync {
    /// Answers one request. The request stays with the caller, who may have to send it again.
    ///
    /// # Errors
    /// Whatever the request's documentation says; goes to the asker as it is.
    fn serve(&self, info: &CallInfo, request: &Request, bulk: Bulk<'_>) -> Result<Reply>;

    /// Says that the last connection of a client is gone. It may come back within its lease.
    fn disconnected(&self, _client: ClientId) {}
}
