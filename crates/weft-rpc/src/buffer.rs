//! Recycled page-aligned buffers for bulk data, bounded in total.
//!
//! A fresh page of memory costs more than the copy into it, so buffers are kept; and because every
//! buffer comes from here, a thousand busy connections cannot take more memory than the bound.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_model::{ErrorKind, FsError, Result};

const PAGE: usize = 4096;

/// A pool of buffers.
#[derive(Debug)]
pub struct BufferPool {
    state: Mutex<State>,
    returned: Condvar,
    limit_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Box<[Page]>>,
    in_use_bytes: usize,
    idle_bytes: usize,
}

#[derive(Clone, Debug)]
#[repr(C, align(4096))]
struct Page([u8; PAGE]);

/// A buffer on loan; goes back when dropped.
#[derive(Debug)]
pub struct Buffer {
    pages: Box<[Page]>,
    len: usize,
    pool: Arc<BufferPool>,
}

impl BufferPool {
    /// A pool that lends at most `limit_bytes` at a time.
    pub fn new(limit_bytes: usize) -> Arc<BufferPool> {
        Arc::new(BufferPool { state: Mutex::default(), returned: Condvar::new(), limit_bytes })
    }

    /// Lends a buffer of `len` bytes, waiting up to `patience` for others to come back. Contents are
    /// whatever the last user left.
    ///
    /// # Errors
    /// `Overloaded` after the wait; `TooBig` when `len` can never be had.
    pub fn take(self: &Arc<Self>, len: usize, patience: Duration) -> Result<Buffer> {
        let pages = len.div_ceil(PAGE).max(1);
        let bytes = pages * PAGE;
        if bytes > self.limit_bytes {
            return Err(FsError::new(ErrorKind::TooBig, "take buffer"));
        }
        let deadline = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.in_use_bytes + bytes > self.limit_bytes {
            if self.returned.wait_until(&mut state, deadline).timed_out() {
                return Err(FsError::new(ErrorKind::Overloaded, "take buffer"));
            }
        }
        state.in_use_bytes += bytes;
        let fitting = state.idle.iter().rposition(|idle| idle.len() == pages);
        let found = fitting.map(|at| state.idle.swap_remove(at));
        if found.is_some() {
            state.idle_bytes -= bytes;
        }
        drop(state);
        let pages = found.unwrap_or_else(|| vec![Page([0; PAGE]); pages].into_boxed_slice());
        Ok(Buffer { pages, len, pool: self.clone() })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let pages = std::mem::take(&mut self.pages);
        let bytes = pages.len() * PAGE;
        let mut state = self.pool.state.lock();
        state.in_use_bytes -= bytes;
        // Half the bound may lie idle; what is over goes back to the system.
        if state.idle_bytes + bytes <= self.pool.limit_bytes / 2 {
            state.idle_bytes += bytes;
            state.idle.push(pages);
        }
        drop(state);
        self.pool.returned.notify_one();
    }
}

impl std::ops::Deref for Buffer {
    type Target = [u8];

    #[allow(unsafe_code)]
    fn deref(&self) -> &[u8] {
        // SAFETY: `Page` is plain bytes without padding, and `len` never exceeds the pages.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast(), self.len) }
    }
}

impl std::ops::DerefMut for Buffer {
    #[allow(unsafe_code)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycles_and_bounds() {
        let pool = BufferPool::new(4 * PAGE);
        let mut first = pool.take(5000, Duration::ZERO).unwrap();
        first[4999] = 7;
        assert_eq!((first.len(), first.as_ptr() as usize % PAGE), (5000, 0));
        let second = pool.take(8192, Duration::ZERO).unwrap();
        let full = pool.take(1, Duration::from_millis(5)).unwrap_err();
        assert_eq!(full.kind, ErrorKind::Overloaded);
        let address = first.as_ptr();
        drop(first);
        assert_eq!(pool.take(8000, Duration::ZERO).unwrap().as_ptr(), address);
        drop(second);
        assert_eq!(pool.take(5 * PAGE, Duration::ZERO).unwrap_err().kind, ErrorKind::TooBig);
    }
}
