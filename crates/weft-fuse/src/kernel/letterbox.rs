//! Deferred replies to requests that came through a ring.
//!
//! The place of such a request in its ring is free again only when the request is answered, and
//! only its worker can do that. So the worker waits at a letterbox for the reply.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::errno::Result;

/// Where one reply is put, once.
#[derive(Default)]
pub(crate) struct Letterbox {
    content: Mutex<Content>,
    changed: Condvar,
}

#[derive(Default)]
enum Content {
    #[default]
    Empty,
    Reply(Result<()>),
    Closed,
}

impl Letterbox {
    /// Puts the reply in.
    pub(crate) fn put(&self, reply: Result<()>) {
        self.set(Content::Reply(reply));
    }

    fn set(&self, content: Content) {
        *self.content.lock() = content;
        self.changed.notify_one();
    }

    /// Waits for the reply; `None` if nobody is to be answered any more.
    fn wait(&self) -> Option<Result<()>> {
        let mut content = self.content.lock();
        self.changed.wait_while(&mut content, |content| matches!(content, Content::Empty));
        match *content {
            Content::Reply(reply) => Some(reply),
            Content::Empty | Content::Closed => None,
        }
    }
}

/// The letterboxes of a queue at which somebody waits or is about to.
pub(crate) struct Letterboxes {
    max_waiting: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    open: HashMap<u64, Arc<Letterbox>>,
}

impl Letterboxes {
    /// For at most `max_waiting` requests that may wait for long. Locks are all there is to wait for;
    /// those beyond are refused, so that unlocking always finds a place in the queue.
    pub(crate) fn new(max_waiting: usize) -> Letterboxes {
        Letterboxes { max_waiting, state: Mutex::default() }
    }

    /// Opens one for a request; `None` if it may `wait` and too many do, or if the connection has
    /// ended.
    pub(crate) fn open(&self, unique: u64, wait: bool) -> Option<Arc<Letterbox>> {
        let mut state = self.state.lock();
        if state.closed || (wait && state.open.len() >= self.max_waiting) {
            return None;
        }
        Some(state.open.entry(unique).or_default().clone())
    }

    /// Waits for the reply to a request for which a letterbox is open, and closes it; `None` if
    /// the connection has ended meanwhile.
    pub(crate) fn wait(&self, unique: u64) -> Option<Result<()>> {
        let letterbox = self.state.lock().open.get(&unique)?.clone();
        let reply = letterbox.wait();
        self.state.lock().open.remove(&unique);
        reply
    }

    /// The connection has ended: nobody waits any more.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.open.values().for_each(|letterbox| letterbox.set(Content::Closed));
    }
}

#[cfg(test)]
mod tests {
    use super::super::errno::Errno;
    use super::*;

    #[test]
    fn a_reply_is_found_whichever_comes_first() {
        let boxes = Letterboxes::new(1);
        boxes.open(2, true).unwrap().put(Err(Errno::EINTR));
        assert_eq!(boxes.wait(2), Some(Err(Errno::EINTR)));
        let letterbox = boxes.open(4, true).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| boxes.wait(4));
            letterbox.put(Ok(()));
            assert_eq!(waiting.join().unwrap(), Some(Ok(())));
        });
        assert!(boxes.state.lock().open.is_empty());
    }

    #[test]
    fn waiting_is_bounded_and_ends_with_the_connection() {
        let boxes = Letterboxes::new(10);
        for unique in 0..10 {
            assert!(boxes.open(unique, true).is_some());
        }
        assert!(boxes.open(u64::MAX, true).is_none());
        assert!(boxes.open(u64::MAX, false).is_some());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| boxes.wait(7));
            boxes.close();
            assert_eq!(waiting.join().unwrap(), None);
        });
        assert!(boxes.open(u64::MAX, false).is_none());
    }
}
