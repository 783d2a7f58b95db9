//! The bytes of a file: pages that are shared until they are written to.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// A page.
pub type Page = [u8; PAGE as usize];

/// Bytes with holes. Copying it copies no page; bytes behind the end are zeros.
#[derive(Clone, Default)]
pub struct Content {
    pub size: u64,
    pub pages: BTreeMap<u64, Arc<Page>>,
}

impl Content {
    /// Reads what there is from `offset` on.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> usize {
        let len = self.size.saturating_sub(offset).min(out.len() as u64) as usize;
        for (page, from, to, at) in pieces(offset, len) {
            match self.pages.get(&page) {
                Some(bytes) => out[at..at + to - from].copy_from_slice(&bytes[from..to]),
                None => out[at..at + to - from].fill(0),
            }
        }
        len
    }

    /// Writes at `offset`.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for (page, from, to, at) in pieces(offset, data.len()) {
            self.page_mut(page)[from..to].copy_from_slice(&data[at..at + to - from]);
        }
        self.size = self.size.max(offset + data.len() as u64);
    }

    /// A page to be changed, made if it is a hole.
    pub fn page_mut(&mut self, page: u64) -> &mut Page {
        Arc::make_mut(self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE as usize])))
    }

    /// Cuts or extends.
    pub fn resize(&mut self, size: u64) {
        if size < self.size {
            self.punch(size, u64::MAX);
        }
        self.size = size;
    }

    /// Makes `[from, to)` a hole, as far as whole pages go, and zeros otherwise.
    pub fn punch(&mut self, from: u64, to: u64) {
        let touched: Vec<u64> = self.pages.range(from / PAGE..).map(|(&page, _)| page).collect();
        for page in touched.into_iter().take_while(|page| page * PAGE < to) {
            let start = from.saturating_sub(page * PAGE) as usize;
            let end = (to - page * PAGE).min(PAGE) as usize;
            if start == 0 && end == PAGE as usize {
                self.pages.remove(&page);
            } else {
                self.page_mut(page)[start..end].fill(0);
            }
        }
    }

    /// Gives every page of `[from, to)` space.
    pub fn allocate(&mut self, from: u64, to: u64) {
        for page in from / PAGE..to.div_ceil(PAGE) {
            self.page_mut(page);
        }
    }

    /// The next offset that is data, or a hole; none behind the end.
    pub fn seek(&self, offset: u64, data: bool) -> Option<u64> {
        let mut at = (offset < self.size).then_some(offset)?;
        while at < self.size && self.pages.contains_key(&(at / PAGE)) != data {
            at = (at / PAGE + 1) * PAGE;
        }
        if data { (at < self.size).then_some(at) } else { Some(at.min(self.size)) }
    }
}

/// The pages of a range: number, first and last byte in it, and where that is in the range.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let end = offset + len as u64;
    (offset / PAGE..end.div_ceil(PAGE)).filter(move |_| len > 0).map(move |page| {
        let from = offset.max(page * PAGE);
        let to = end.min((page + 1) * PAGE);
        let (start, stop) = ((from - page * PAGE) as usize, (to - page * PAGE) as usize);
        (page, start, stop, (from - offset) as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_zeros_and_are_found() {
        let mut content = Content::default();
        content.write(2 * PAGE - 1, &[7; 3]);
        content.resize(4 * PAGE + 5);
        let mut out = vec![9; 5 * PAGE as usize];
        assert_eq!(content.read(0, &mut out), 4 * PAGE as usize + 5);
        assert_eq!(out.iter().filter(|&&byte| byte == 7).count(), 3);
        assert_eq!(content.seek(0, true), Some(PAGE));
        assert_eq!(content.seek(PAGE, false), Some(3 * PAGE));
        assert_eq!(content.seek(3 * PAGE, true), None);
        assert_eq!(content.seek(4 * PAGE + 4, false), Some(4 * PAGE + 4));
        content.punch(PAGE, 2 * PAGE + 1);
        assert_eq!(content.seek(0, true), Some(2 * PAGE));
        content.read(2 * PAGE, &mut out[..2]);
        assert_eq!(out[..2], [0, 7]);
        content.resize(2 * PAGE + 1);
        content.resize(3 * PAGE);
        assert_eq!(content.read(2 * PAGE, &mut out[..2]), 2);
        assert_eq!(out[..2], [0, 0]);
    }
}
