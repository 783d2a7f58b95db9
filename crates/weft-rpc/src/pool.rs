//! The connections of one process to one node.
//!
//! **No ghosts.** A connection that broke may have left a request behind that the server still carries out.
//! Greeting the server anew on the same channel ends that (see [`crate::server`]), and until it has, no
//! request goes out on any other channel: so nothing is overtaken by what was sent before it.

use crate::channel::{Channel, Identity};
use crate::stream::Stalled;
use parking_lot::{Condvar, Mutex};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weft_model::{ErrorKind, FsError, Result};

/// Connections to one node; as many requests can be under way there.
const MAX_CHANNELS: usize = 64;
/// Between two questions whether to wait on for one that is free.
const POLL: Duration = Duration::from_millis(250);

/// The channels to one node. A request borrows one; the most recently used goes first.
#[derive(Debug)]
pub struct ChannelPool {
    addresses: Vec<String>,
    idle: Mutex<Idle>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct Idle {
    slots: Vec<Slot>,
    /// Their connections broke with a request under way.
    broken: Vec<Slot>,
    /// Broken ones that somebody is connecting anew.
    mending: usize,
    made: usize,
}

/// One channel's number, count of connections, and the connection if there is one.
#[derive(Debug)]
struct Slot {
    number: u32,
    channel: Option<Channel>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Sound,
    Broken,
    /// Broken, and lent to whoever has to connect it anew.
    Mending,
}

/// A channel on loan; goes back when dropped.
#[derive(Debug)]
pub struct Borrowed<'a> {
    pool: &'a ChannelPool,
    slot: Option<Slot>,
}

/// Grows with every connection made by this process, across all pools; together with the start
/// time of the process it never goes back.
static GENERATION: AtomicU64 = AtomicU64::new(0);

fn next_generation() -> u64 {
    incarnation();
    GENERATION.fetch_add(1, Ordering::Relaxed)
}

/// Of this process: greater than those of all processes before it, as far as the clock can tell.
pub(crate) fn incarnation() -> u64 {
    static START: OnceLock<u64> = OnceLock::new();
    *START.get_or_init(|| {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let start = since_epoch.map_or(1, |time| time.as_nanos() as u64);
        GENERATION.store(start, Ordering::Relaxed);
        start
    })
}

impl ChannelPool {
    /// A pool for a node; connections are made when needed.
    pub fn new(addresses: Vec<String>) -> ChannelPool {
        ChannelPool { addresses, idle: Mutex::default(), returned: Condvar::new() }
    }

    /// The node's addresses.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// Borrows a channel. When all are in use, or one that broke is being connected anew, it waits and
    /// asks `stalled` now and then.
    ///
    /// # Errors
    /// That of `stalled`.
    pub fn borrow(&self, stalled: &mut Stalled<'_>) -> Result<Borrowed<'_>> {
        let mut idle = self.idle.lock();
        loop {
            if let Some(slot) = idle.lend() {
                return Ok(Borrowed { pool: self, slot: Some(slot) });
            }
            if self.returned.wait_for(&mut idle, POLL).timed_out() {
                stalled()?;
            }
        }
    }
}

impl Idle {
    /// A slot that may be used now.
    fn lend(&mut self) -> Option<Slot> {
        if let Some(slot) = self.broken.pop() {
            self.mending += 1;
            return Some(Slot { state: State::Mending, ..slot });
        }
        if self.mending > 0 {
            return None;
        }
        let new = self.slots.is_empty() && self.made < MAX_CHANNELS;
        if new {
            self.made += 1;
            let number = self.made as u32 - 1;
            return Some(Slot { number, channel: None, state: State::Sound });
        }
        self.slots.pop()
    }

    fn take_back(&mut self, slot: Slot) {
        match slot.state {
            State::Sound => self.slots.push(slot),
            State::Broken => self.broken.push(slot),
            State::Mending => {
                self.mending -= 1;
                self.broken.push(slot);
            }
        }
    }
}

impl Borrowed<'_> {
    /// The connection, made anew if there is none. The addresses are tried in turn.
    ///
    /// # Errors
    /// The last address's error.
    pub fn channel(&mut self, identity: &Identity) -> Result<&mut Channel> {
        // The slot is there until drop.
        let slot = self.slot.as_mut().unwrap_or_else(|| unreachable!());
        if slot.channel.is_none() {
            let mut last = FsError::new(ErrorKind::Disconnected, "connect").because("no address");
            for address in &self.pool.addresses {
                match Channel::open(address, identity, slot.number, next_generation()) {
                    Ok(channel) => {
                        slot.channel = Some(channel);
                        if slot.state == State::Mending {
                            self.pool.idle.lock().mending -= 1;
                            self.pool.returned.notify_all();
                        }
                        slot.state = State::Sound;
                        break;
                    }
                    Err(error) => last = error,
                }
            }
            if slot.channel.is_none() {
                return Err(last);
            }
        }
        Ok(slot.channel.as_mut().unwrap_or_else(|| unreachable!()))
    }

    /// Closes the connection: it is in an unknown state.
    pub fn discard(&mut self) {
        if let Some(slot) = &mut self.slot
            && slot.channel.take().is_some()
        {
            slot.state = State::Broken;
        }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.pool.idle.lock().take_back(slot);
            self.pool.returned.notify_all();
        }
    }
}
