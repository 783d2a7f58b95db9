//! What stores numbered objects: files of the kernel, files through the client library.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_client::namespace::open::CreateArgs;
use weft_client::{Client, Ctx, OpenFile, OpenFlags};
use weft_model::layout::{ComponentSpec, LayoutSpec};
use weft_model::{Fid, FsError};

/// Stores numbered objects. All methods may be called by several threads.
pub trait Objects: Send + Sync {
    /// Writes a record; the object appears with its first one.
    ///
    /// # Errors
    /// Those of the store. (So for all of these.)
    fn write(&self, object: u32, data: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `buffer`.
    ///
    /// # Errors
    /// As above; `UnexpectedEof` beyond the end.
    fn read(&self, object: u32, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Brings an object to stable storage.
    ///
    /// # Errors
    /// As above.
    fn sync(&self, object: u32) -> io::Result<()>;

    /// Removes everything. Dropping does so, too, but tells of no error.
    ///
    /// # Errors
    /// As above.
    fn remove(&self) -> io::Result<()>;
}

/// Files of a directory of its own, by system calls.
pub struct Files {
    dir: PathBuf,
    open: Mutex<HashMap<u32, Arc<fs::File>>>,
}

impl Files {
    /// Makes the directory `survey.PID` in `dir`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn make(dir: &std::path::Path) -> io::Result<Files> {
        let dir = dir.join(format!("survey.{}", std::process::id()));
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", dir.display()));
        fs::create_dir(&dir).map_err(named)?;
        Ok(Files { dir, open: Mutex::default() })
    }

    fn file(&self, object: u32) -> io::Result<Arc<fs::File>> {
        let mut open = self.open.lock();
        if let Some(file) = open.get(&object) {
            return Ok(file.clone());
        }
        let mut options = fs::OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = Arc::new(file.open(self.dir.join(object.to_string()))?);
        open.insert(object, file.clone());
        Ok(file)
    }
}

impl Objects for Files {
    fn write(&self, object: u32, data: &[u8], offset: u64) -> io::Result<()> {
        self.file(object)?.write_all_at(data, offset)
    }

    fn read(&self, object: u32, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file(object)?.read_exact_at(buffer, offset)
    }

    fn sync(&self, object: u32) -> io::Result<()> {
        self.file(object)?.sync_all()
    }

    fn remove(&self) -> io::Result<()> {
        self.open.lock().clear();
        if self.dir.exists() { fs::remove_dir_all(&self.dir) } else { Ok(()) }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // After a failure; otherwise there is nothing left.
        let _ = self.remove();
    }
}

/// Files of a directory of its own, through the client library.
pub struct Library {
    client: Arc<Client>,
    name: String,
    dir: Fid,
    /// All data on this OST only.
    ost: Option<u16>,
    open: Mutex<HashMap<u32, Arc<OpenFile>>>,
    removed: AtomicBool,
}

impl Library {
    /// Makes the directory `name` at the root. With `ost`, its files lie on that OST alone.
    ///
    /// # Errors
    /// Those of the MDT.
    pub fn make(client: Arc<Client>, name: &str, ost: Option<u16>) -> io::Result<Library> {
        let dir = client.mkdir(&Ctx::root(), client.root(), name.as_bytes(), 0o755);
        let dir = dir.map_err(told)?.fid;
        let (open, removed) = (Mutex::default(), AtomicBool::new(false));
        Ok(Library { client, name: name.into(), dir, ost, open, removed })
    }

    /// The open file of an object.
    pub(super) fn file(&self, object: u32) -> io::Result<Arc<OpenFile>> {
        let mut open = self.open.lock();
        if let Some(file) = open.get(&object) {
            return Ok(file.clone());
        }
        let only = |index| {
            let targets = vec![index];
            let component = ComponentSpec { stripe_count: 1, targets, ..ComponentSpec::default() };
            LayoutSpec { components: vec![component] }
        };
        let layout = self.ost.map(only);
        let args = CreateArgs {
            mode: 0o644,
            flags: OpenFlags::READ | OpenFlags::WRITE,
            exclusive: true,
            layout: layout.as_ref(),
        };
        let name = object.to_string();
        let made = self.client.create(&Ctx::root(), self.dir, name.as_bytes(), &args);
        let file = Arc::new(made.map_err(told)?.file);
        open.insert(object, file.clone());
        Ok(file)
    }
}

impl Objects for Library {
    fn write(&self, object: u32, data: &[u8], offset: u64) -> io::Result<()> {
        let file = self.file(object)?;
        match self.client.write(&Ctx::root(), &file, offset, data).map_err(told)? {
            written if written == data.len() => Ok(()),
            _ => Err(ErrorKind::WriteZero.into()),
        }
    }

    fn read(&self, object: u32, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let file = self.file(object)?;
        match self.client.read(&Ctx::root(), &file, offset, buffer).map_err(told)? {
            read if read == buffer.len() => Ok(()),
            _ => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    fn sync(&self, object: u32) -> io::Result<()> {
        let file = self.file(object)?;
        self.client.fsync(&Ctx::root(), &file, false).map_err(told)
    }

    fn remove(&self) -> io::Result<()> {
        let (ctx, open) = (Ctx::root(), std::mem::take(&mut *self.open.lock()));
        for (object, file) in open {
            self.client.close(&ctx, &file, None).map_err(told)?;
            let name = object.to_string();
            self.client.unlink(&ctx, self.dir, name.as_bytes()).map_err(told)?;
        }
        if self.removed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let root = self.client.root();
        self.client.rmdir(&ctx, root, self.name.as_bytes()).map_err(told)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // After a failure; otherwise there is nothing left.
        let _ = self.remove();
    }
}

pub(super) fn told(error: FsError) -> io::Error {
    io::Error::other(error.to_string())
}
