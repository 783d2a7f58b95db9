//! posix_fadvise(2): what a reader is going to do.

use crate::ahead::Advice;
use crate::client::Client;
use crate::ctx::Ctx;
use crate::inode::OpenFile;
use std::ops::Range;
use weft_model::Result;

impl Client {
    /// Follows what a reader says of what it will do with a range of a file; as posix_fadvise(2). `Sequential`
    /// and `Random` count for the handle, until it says otherwise.
    ///
    /// # Errors
    /// `BadHandle` when not open for reading, and, for `WillNeed`, those of the MDT.
    pub fn advise(
        &self,
        ctx: &Ctx<'_>,
        file: &OpenFile,
        advice: Advice,
        range: Range<u64>,
    ) -> Result<()> {
        file.check_readable("advise")?;
        match advice {
            Advice::Normal | Advice::Sequential | Advice::Random => {
                file.inode.ahead().advise(file.handle, advice);
            }
            Advice::DontNeed => file.inode.ahead().chunks.drop_range(&range),
            Advice::WillNeed => {
                self.current_attr(file.fid(), &self.patience(ctx))?;
                let mut ahead = file.inode.ahead();
                let covered = ahead.covered(|grant| self.grant_left(grant));
                let end = covered.map_or(0, |(size, _)| size.min(range.end));
                let starts = (range.start / self.chunk()..).map(|number| number * self.chunk());
                let cut = |at: u64| at.max(range.start)..(at + self.chunk()).min(end);
                let wanted = starts.take_while(|&start| start < end).map(cut).collect();
                self.queue_ahead(&file.inode, &mut ahead, wanted);
            }
        }
        Ok(())
    }
}
