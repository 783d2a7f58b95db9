//! fallocate(2): reserving, zeroing, punching holes. One request per object, whatever the length.

use super::store::MAX_LATE;
use crate::client::Client;
use crate::ctx::Ctx;
use crate::inode::OpenFile;
use crate::metrics::Op;
use std::ops::Range;
use weft_model::layout::ObjectRef;
use weft_model::{ErrorKind, FsError, Layout, Result};
use weft_rpc::pb::oss;
use weft_rpc::router::Patience;
use weft_rpc::{Bulk, Call, Message, Request};

/// What to do with a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocateMode {
    /// Reserve space.
    Reserve {
        /// Do not extend the file.
        keep_size: bool,
    },
    /// Reserve space and make it read as zeros.
    Zero {
        /// Do not extend the file.
        keep_size: bool,
    },
    /// Give space back; reads as zeros. Never extends.
    Punch,
}

impl AllocateMode {
    /// From the mode of fallocate(2).
    ///
    /// # Errors
    /// `NotSupported` for collapsing, inserting, and combinations that Linux does not have.
    pub fn from_linux(mode: u32) -> Result<AllocateMode> {
        const KEEP_SIZE: u32 = 1;
        const PUNCH_HOLE: u32 = 2;
        const ZERO_RANGE: u32 = 16;
        let keep_size = mode & KEEP_SIZE != 0;
        match mode & !KEEP_SIZE {
            0 => Ok(AllocateMode::Reserve { keep_size }),
            ZERO_RANGE => Ok(AllocateMode::Zero { keep_size }),
            PUNCH_HOLE if keep_size => Ok(AllocateMode::Punch),
            _ => Err(FsError::new(ErrorKind::NotSupported, "fallocate")
                .on(format_args!("mode={mode:#x}"))),
        }
    }

    const fn extends(self) -> bool {
        matches!(
            self,
            AllocateMode::Reserve { keep_size: false } | AllocateMode::Zero { keep_size: false }
        )
    }

    fn request(
        self,
        found: ObjectRef,
        offset: u64,
        len: u64,
        not_after: Option<oss::Moment>,
    ) -> Request {
        let object = Some(found.object.into());
        let reserve = |keep_size, zero| {
            oss::Allocate { object, offset, len, keep_size, zero, not_after }.into_request()
        };
        match self {
            AllocateMode::Punch => oss::Punch { object, offset, len, not_after }.into_request(),
            AllocateMode::Reserve { keep_size } => reserve(keep_size, false),
            AllocateMode::Zero { keep_size } => reserve(keep_size, true),
        }
    }
}

impl Client {
    /// Reserves, zeroes or punches `[offset, offset + len)`.
    ///
    /// # Errors
    /// `BadHandle`, `Invalid` for no length, `FileTooBig`, `NoSpace`, `NotSupported` by the file
    /// system below an OST, and those of the targets. After an error part of it may be done.
    pub fn allocate(
        &self,
        ctx: &Ctx<'_>,
        file: &OpenFile,
        mode: AllocateMode,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        self.timed(Op::Allocate, || {
            file.check_writable("fallocate")?;
            if len == 0 {
                return Err(FsError::new(ErrorKind::Invalid, "fallocate"));
            }
            let layout = file.layout();
            let end = range_end(&layout, mode, offset, len)?;
            self.drop_set_id(ctx, &file.inode)?;
            let patience = self.patience(ctx);
            let _shared = self.acquire(&patience, || file.inode.io.try_read())?;
            self.write_back(&file.inode, false, &patience)?;
            self.move_out(&file.inode, &patience)?;
            let _changing = file.inode.changing(offset..end);
            let size_epoch = file.inode.state().size_epoch;
            let mut outcome = self.try_to_allocate(file, mode, offset..end, &patience);
            for _ in 0..MAX_LATE {
                match outcome {
                    Err(error) if error.kind == ErrorKind::Fenced => {
                        outcome = self.try_to_allocate(file, mode, offset..end, &patience);
                    }
                    _ => break,
                }
            }
            let mut state = file.inode.state();
            let grown = if mode.extends() && outcome.is_ok() { end } else { 0 };
            state.unreported.record_change(grown, self.env().now(), size_epoch);
            state.unreported.record_blocks_changed();
            drop(state);
            outcome
        })
    }
}

impl Client {
    /// All objects at once. `Fenced`: an OST was restarted or the session's time was over.
    fn try_to_allocate(
        &self,
        file: &OpenFile,
        mode: AllocateMode,
        range: Range<u64>,
        patience: &Patience<'_>,
    ) -> Result<()> {
        let layout = file.layout();
        let until = self.session_time(file.fid(), patience)?;
        let mut calls = Vec::new();
        for found in layout.objects_below(file.fid(), range.end) {
            // A range of a file is one range of each object it touches.
            let at = |offset| layout.object_size(found.object.index, offset);
            let (from, to) = (at(range.start), at(range.end));
            if from < to {
                let not_after = self.moment_for(found.target, until, patience)?;
                let request = mode.request(found, from, to - from, not_after);
                calls.push(Call { target: found.target, request, bulk: Bulk::None });
            }
        }
        let mut outcome = Ok(());
        let answers = self.call_many(&mut calls, patience);
        for (call, answer) in calls.iter().zip(answers) {
            if matches!(&answer, Err(error) if error.kind == ErrorKind::Fenced) {
                self.forget_clock(call.target);
            }
            outcome = outcome.and(answer.map(|_| ()));
        }
        outcome
    }
}

/// End of the range; what lies beyond the largest size cannot be reserved and need not be punched.
fn range_end(layout: &Layout, mode: AllocateMode, offset: u64, len: u64) -> Result<u64> {
    let end = offset.saturating_add(len);
    match mode {
        AllocateMode::Punch => Ok(end.min(layout.max_size())),
        _ if end > layout.max_size() => Err(FsError::new(ErrorKind::FileTooBig, "fallocate")),
        _ => Ok(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_modes() {
        let reserve = AllocateMode::Reserve { keep_size: false };
        assert_eq!(AllocateMode::from_linux(0).unwrap(), reserve);
        assert_eq!(AllocateMode::from_linux(3).unwrap(), AllocateMode::Punch);
        for collapse_insert_bare_punch in [8, 32, 2] {
            let error = AllocateMode::from_linux(collapse_insert_bare_punch).unwrap_err();
            assert_eq!(error.kind, ErrorKind::NotSupported);
        }
    }
}
