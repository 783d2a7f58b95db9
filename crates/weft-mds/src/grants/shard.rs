//! A part of the table of grants.

use super::TERM;
use std::collections::HashMap;
use std::time::Duration;
use weft_model::{ClientId, Fid};

/// For this long after a recall an inode is granted to nobody.
const CONTENDED: Duration = Duration::from_secs(2);
/// Inodes in a shard; with more, nothing new is granted. About 100 bytes each.
const MAX_INODES: usize = 16_384;

/// Grants by inode, of this term and the one before.
pub(super) struct Shard {
    young: HashMap<Fid, Holders>,
    old: HashMap<Fid, Holders>,
    /// When `young` was begun.
    turned: Duration,
    /// Changes under way.
    changing: HashMap<Fid, u32>,
    /// Inodes that had to be recalled, and until when they are granted to nobody.
    contended: HashMap<Fid, Duration>,
    /// Write delegations.
    delegated: HashMap<Fid, Delegation>,
}

#[derive(Clone, Copy)]
struct Delegation {
    holder: ClientId,
    /// It was called back.
    recalled: bool,
}

/// Mostly it is one.
struct Holders {
    first: ClientId,
    others: Vec<ClientId>,
}

impl Holders {
    fn add(&mut self, client: ClientId) {
        if !self.iter().any(|holder| holder == client) {
            self.others.push(client);
        }
    }

    fn iter(&self) -> impl Iterator<Item = ClientId> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }
}

impl Shard {
    pub(super) fn new(now: Duration) -> Shard {
        Shard {
            young: HashMap::new(),
            old: HashMap::new(),
            turned: now,
            changing: HashMap::new(),
            contended: HashMap::new(),
            delegated: HashMap::new(),
        }
    }

    /// Forgets what is older than a term.
    fn turn(&mut self, now: Duration) {
        let age = now.saturating_sub(self.turned);
        // A grant made just before a turn is forgotten at the next but one: two terms later at least.
        if age <= 2 * TERM {
            return;
        }
        self.old = std::mem::take(&mut self.young);
        if age > 4 * TERM {
            self.old.clear();
        }
        self.contended.retain(|_, until| *until > now);
        self.turned = now;
    }

    /// Notes a grant, unless the inode is being changed by a plan that the caller cannot have seen.
    pub(super) fn grant(&mut self, fid: Fid, to: ClientId, planned: bool, now: Duration) -> bool {
        self.turn(now);
        let full = self.young.len() + self.contended.len() >= MAX_INODES;
        let contended = self.contended.get(&fid).is_some_and(|&until| until > now);
        if full || contended || !planned && self.changing.contains_key(&fid) {
            return false;
        }
        let holders = self.young.entry(fid);
        holders.or_insert_with(|| Holders { first: to, others: Vec::new() }).add(to);
        true
    }

    /// Notes a change, and answers who beside the changer holds a grant. These make the inode contended.
    pub(super) fn begin_change(
        &mut self,
        fid: Fid,
        changer: ClientId,
        now: Duration,
    ) -> impl Iterator<Item = ClientId> {
        *self.changing.entry(fid).or_insert(0) += 1;
        self.turn(now);
        let holders = [&self.young, &self.old].into_iter().filter_map(|grants| grants.get(&fid));
        let mut held: Vec<ClientId> = holders.flat_map(Holders::iter).collect();
        held.retain(|&holder| holder != changer);
        held.sort_unstable();
        held.dedup();
        if !held.is_empty() {
            self.avoid(fid, now);
        }
        held.into_iter()
    }

    /// For a while from now on the inode is granted to nobody.
    fn avoid(&mut self, fid: Fid, now: Duration) {
        self.contended.insert(fid, now + CONTENDED);
    }

    /// Delegates a file. Whether it was.
    pub(super) fn delegate(&mut self, fid: Fid, to: ClientId, now: Duration) -> bool {
        if let Some(known) = self.delegated.get(&fid) {
            return known.holder == to && !known.recalled;
        }
        let contended = self.contended.get(&fid).is_some_and(|&until| until > now);
        let free = !contended && self.delegated.len() < MAX_INODES;
        if free {
            self.delegated.insert(fid, Delegation { holder: to, recalled: false });
        }
        free
    }

    /// To whom a file is delegated.
    pub(super) fn delegated(&self, fid: Fid) -> Option<ClientId> {
        self.delegated.get(&fid).map(|known| known.holder)
    }

    /// It is called back, and not delegated to anybody for a while.
    pub(super) fn recall_delegation(&mut self, fid: Fid, now: Duration) {
        if let Some(known) = self.delegated.get_mut(&fid) {
            known.recalled = true;
        }
        self.avoid(fid, now);
    }

    /// It is not delegated to that session any more.
    pub(super) fn return_delegation(&mut self, fid: Fid, client: ClientId) {
        if self.delegated(fid) == Some(client) {
            self.delegated.remove(&fid);
        }
    }

    /// Nothing is delegated to that session any more.
    pub(super) fn forget_delegations(&mut self, client: ClientId) {
        self.delegated.retain(|_, known| known.holder != client);
    }

    /// A change is visible to readers, or was dropped.
    pub(super) fn end_change(&mut self, fid: Fid) {
        if let Some(count) = self.changing.get_mut(&fid) {
            *count -= 1;
            if *count == 0 {
                self.changing.remove(&fid);
            }
        }
    }

    /// A grant was given back, or its term has ended.
    pub(super) fn release(&mut self, fid: Fid, client: ClientId) {
        for grants in [&mut self.young, &mut self.old] {
            let Some(mut holders) = grants.remove(&fid) else { continue };
            let mut left: Vec<ClientId> = holders.iter().filter(|&one| one != client).collect();
            if let Some(first) = left.pop() {
                (holders.first, holders.others) = (first, left);
                grants.insert(fid, holders);
            }
        }
    }
}
