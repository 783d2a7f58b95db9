//! Choices that a successor of this process has to make again in the same way.
//!
//! An operation that is carried out again by another process, because the first one died before it had
//! answered, must send the same requests: under the same number, for the same handle, to the same place.
//! Whoever outlives processes notes what was chosen ([`Choices`]); the router and the client ask it first.

use weft_model::TargetId;

/// What is chosen. An operation may choose the same several times; order tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice(pub u64);

impl Choice {
    /// Number of a handle.
    pub const HANDLE: Choice = Choice(1 << 56);
    /// Where an append goes, bytes.
    pub const PLACE: Choice = Choice(2 << 56);
    const NUMBER: u64 = 3;

    /// The [`Xid`](weft_model::Xid) of a request with message number `request` to `target`.
    pub fn number(request: u16, target: TargetId) -> Choice {
        Choice(Choice::NUMBER << 56 | u64::from(request) << 32 | u64::from(target.to_wire()))
    }

    /// Whether it is the number of a request.
    pub const fn is_number(self) -> bool {
        self.0 >> 56 == Choice::NUMBER
    }
}

/// The choices of operations under way. Each method is about the operation that the calling thread
/// carries out; on threads that carry out none, nothing is noted.
pub trait Choices: Send + Sync {
    /// What an earlier process chose at this point. Each note is told once.
    fn made(&self, choice: Choice) -> Option<u64>;
    /// Notes a choice until the operation has been answered. False: it is not noted, since there is no
    /// operation or no room.
    fn make(&self, choice: Choice, value: u64) -> bool;
    /// The choice has led to nothing.
    fn unmake(&self, choice: Choice, value: u64);
}
