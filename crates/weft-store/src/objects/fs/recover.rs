//! What the next start does about writes that a crash has cut short.

use super::Core;
use super::marks::REGION;
use crate::files::LastStop;
use weft_model::{ObjectId, Result};

impl Core {
    /// Makes the checksums of all blocks that may have been changing fit their data, whatever it
    /// is: of such blocks nobody was promised anything. All others are left to be checked.
    ///
    /// Doing it twice, or being killed within and doing it again, is the same as doing it once.
    pub(super) fn recover(&self, last_stop: LastStop) -> Result<()> {
        if last_stop == LastStop::Clean {
            return self.marks.clear_all();
        }
        if last_stop == LastStop::PowerLoss {
            // Before they are opened for anything else.
            self.marks.graves()?.into_iter().try_for_each(|id| self.remove_files(id))?;
        }
        let mut changed = 0;
        let intents = self.intents.left_over();
        for intent in &intents {
            changed += self.settle(intent.id, intent.offset, intent.len);
        }
        let mut regions = 0;
        if last_stop == LastStop::PowerLoss {
            for (id, region) in self.marks.all()? {
                changed += self.settle(id, u64::from(region) * REGION, REGION);
                regions += 1;
            }
            self.repeat_cuts()?;
        }
        // Whatever the last process has written becomes durable, so no mark is needed any more.
        self.sync_file_system()?;
        self.intents.clear();
        self.marks.clear_all()?;
        let intents = intents.len();
        tracing::info!(?last_stop, intents, regions, blocks = changed, "objects recovered");
        Ok(())
    }

    /// Cuts again what the file system may have forgotten.
    fn repeat_cuts(&self) -> Result<()> {
        for (id, size) in self.marks.cuts()? {
            let cut = self.table.update(id, false, |_, object| match object.size > size {
                true => object.truncate(size),
                false => Ok(()),
            });
            if let Err(error) = cut {
                tracing::error!(%error, object = %id, size, "object not cut again");
            }
        }
        Ok(())
    }

    /// A range that cannot be read stays as it is: its reads will fail, the target need not.
    fn settle(&self, id: ObjectId, offset: u64, len: u64) -> u64 {
        let end = offset.saturating_add(len);
        let settled = self.table.update(id, false, |_, object| object.settle(offset, end));
        match settled {
            Ok(changed) => changed.unwrap_or(0),
            Err(error) => {
                tracing::error!(%error, object = %id, offset, "object not recovered");
                0
            }
        }
    }
}
