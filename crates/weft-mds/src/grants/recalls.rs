//! Recalls on their way to one session.

use super::Holder;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::Duration;
use weft_rpc::pb::mds;

/// Longest wait within one request.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Recalls that may be unconfirmed. What is beyond is not told: its term ends by itself.
const MAX_PENDING: usize = 65_536;

/// Recalls not yet confirmed.
pub(super) struct Queue {
    id: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    pending: VecDeque<mds::Recall>,
    /// The last one made.
    made: u64,
    /// Confirmed up to here.
    done: u64,
    ended: bool,
}

impl Queue {
    pub(super) fn new(id: u64) -> Queue {
        Queue { id, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Adds a recall and answers its number; one that is never confirmed if there are too many.
    pub(super) fn push(&self, holder: &Holder) -> u64 {
        let &Holder { fid, is_dir, delegation, .. } = holder;
        let mut state = self.state.lock();
        if state.pending.len() >= MAX_PENDING {
            return u64::MAX;
        }
        state.made += 1;
        let number = state.made;
        state.pending.push_back(mds::Recall { number, fid: fid.0, is_dir, delegation });
        self.changed.notify_all();
        number
    }

    /// Whether a recall was confirmed, or need not be any more.
    pub(super) fn is_done(&self, number: u64) -> bool {
        let state = self.state.lock();
        state.ended || state.done >= number
    }

    /// The session has ended.
    pub(super) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_all();
    }

    /// Notes what is confirmed, then waits for more.
    pub(super) fn take(&self, request: &mds::AwaitRecalls) -> mds::AwaitRecallsReply {
        let mut state = self.state.lock();
        if request.queue == self.id {
            state.done = state.done.max(request.done.min(state.made));
        }
        let done = state.done;
        while state.pending.front().is_some_and(|recall| recall.number <= done) {
            state.pending.pop_front();
        }
        let wait = Duration::from_millis(request.wait_ms.into()).min(MAX_WAIT);
        if !wait.is_zero() {
            let idle = |state: &mut State| state.pending.is_empty() && !state.ended;
            self.changed.wait_while_for(&mut state, idle, wait);
        }
        mds::AwaitRecallsReply { queue: self.id, recalls: state.pending.iter().copied().collect() }
    }
}
