//! From a request's bytes to a call of the [`FileSystem`] and to the bytes of its reply.

mod data;
mod misc;
mod namespace;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use zerocopy::{Immutable, IntoBytes};

use super::abi::{BatchForgetIn, ForgetIn, ForgetOne, InterruptIn, op};
use super::deferred::{Deferred, Way};
use super::device::Device;
use super::errno::{Errno, Result};
use super::fs::FileSystem;
use super::interrupt::{Interrupts, Slot};
use super::letterbox::Letterboxes;
use super::message::{Args, Message};
use super::negotiate::Terms;
use super::request::Request;
use super::types::LockKind;

/// What is to be sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A reply with that many bytes of the output buffer.
    Reply(usize),
    /// An error reply.
    Error(Errno),
    /// Nothing: the operation has no reply.
    Silent,
    /// Nothing yet: a [`Deferred`] sends it.
    Deferred,
}

impl From<Result<usize>> for Outcome {
    fn from(result: Result<usize>) -> Outcome {
        result.map_or_else(Outcome::Error, Outcome::Reply)
    }
}

/// A file system and what it has agreed on with the kernel.
pub(crate) struct Server<F> {
    pub fs: F,
    pub terms: Terms,
    pub interrupts: Arc<Interrupts>,
}

/// Where a request came from, which is where its reply must go.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// The device it was read from.
    Device(&'a Arc<Device>),
    /// A ring, whose worker waits for deferred replies at a letterbox.
    Ring(&'a Letterboxes),
}

/// One request on its way to the file system.
struct Call<'a, F> {
    server: &'a Server<F>,
    origin: Origin<'a>,
    request: Request<'a>,
    node: u64,
    args: Args<'a>,
    out: &'a mut [u8],
}

impl<F: FileSystem> Server<F> {
    /// Serves one request on the worker that `slot` belongs to, writing the body of its reply to
    /// `out`. A panic of the file system becomes `EIO`.
    pub(crate) fn serve(
        &self,
        message: Message<'_>,
        origin: Origin<'_>,
        slot: &Slot,
        out: &mut [u8],
    ) -> Outcome {
        let Message { header, args, extensions } = message;
        let request = Request::new(&header, extensions, Some(slot));
        let call = Call { server: self, origin, request, node: header.nodeid, args, out };
        // What a panic leaves half done is the file system's own state, guarded by its own locks.
        catch_unwind(AssertUnwindSafe(|| call.run(header.opcode))).unwrap_or_else(|_| {
            tracing::error!(opcode = header.opcode, node = header.nodeid, "operation panicked");
            match header.opcode {
                op::FORGET | op::BATCH_FORGET => Outcome::Silent,
                op::SETLK | op::SETLKW => Outcome::Deferred,
                _ => Outcome::Error(Errno::EIO),
            }
        })
    }
}

impl<F: FileSystem> Call<'_, F> {
    fn run(mut self, opcode: u32) -> Outcome {
        match opcode {
            op::FORGET | op::BATCH_FORGET => {
                // These have no reply, not even to malformed ones.
                let _ = self.forget(opcode);
                Outcome::Silent
            }
            op::INTERRUPT => self.interrupt(),
            op::SETLK | op::SETLKW => {
                self.setlk(opcode == op::SETLKW).map_or_else(Outcome::Error, |()| Outcome::Deferred)
            }
            // No data is ever asked of the kernel, so no answer of its can be expected.
            op::NOTIFY_REPLY => Outcome::Silent,
            op::DESTROY => Outcome::Reply(0),
            _ => self
                .namespace(opcode)
                .or_else(|| self.data(opcode))
                .or_else(|| self.misc(opcode))
                .unwrap_or(Err(Errno::ENOSYS))
                .into(),
        }
    }

    /// Writes a structure to the output and answers its size.
    fn put<T: IntoBytes + Immutable>(&mut self, value: T) -> Result<usize> {
        self.put_bytes(value.as_bytes())
    }

    fn put_bytes(&mut self, bytes: &[u8]) -> Result<usize> {
        self.out.get_mut(..bytes.len()).ok_or(Errno::EIO)?.copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn forget(&mut self, opcode: u32) -> Result<()> {
        let fs = &self.server.fs;
        if opcode == op::FORGET {
            fs.forget(self.node, self.args.take::<ForgetIn>()?.nlookup);
        } else {
            let count = self.args.take::<BatchForgetIn>()?.count;
            let args = &mut self.args;
            let one = |_| args.take::<ForgetOne>().ok().map(|one| (one.nodeid, one.nlookup));
            fs.batch_forget(&mut (0..count).map_while(one));
        }
        Ok(())
    }

    fn interrupt(&mut self) -> Outcome {
        match self.args.take::<InterruptIn>() {
            Ok(args) if self.server.interrupts.interrupt(args.unique) => Outcome::Silent,
            // Not known: the kernel repeats it until the request is answered.
            _ => Outcome::Error(Errno::EAGAIN),
        }
    }

    fn setlk(&mut self, wait: bool) -> Result<()> {
        let lock = self.lock()?;
        // Unlocking asks for it too, but never waits.
        let wait = wait && lock.kind != LockKind::Unlock;
        let way = match self.origin {
            Origin::Device(device) => Way::Device(device.clone()),
            Origin::Ring(letterboxes) => {
                Way::Letterbox(letterboxes.open(self.request.unique, wait).ok_or(Errno::ENOLCK)?)
            }
        };
        let reply = Deferred::new(&self.request, way, self.server.interrupts.clone());
        self.server.fs.setlk(&self.request, self.node, &lock, wait, reply);
        Ok(())
    }
}
