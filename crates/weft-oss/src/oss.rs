//! One object storage target as a service: picks the operation, names errors.

use crate::admission::Admission;
use crate::damage::DamageLog;
use crate::ops;
use crate::space::CachedSpace;
use std::sync::{Arc, Weak};
use std::time::Duration;
use weft_model::map::Space;
use weft_model::{Env, ErrorKind, FsError, Result, TargetId};
use weft_rpc::metrics::{Figure, FigureKind, Metrics};
use weft_rpc::pb::oss::Moment;
use weft_rpc::{Bulk, CallInfo, Reply, Request, Service};
use weft_store::ObjectStore;

/// Bounds of an [`Oss`].
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes of file data being read and written at a time.
    pub in_flight_bytes: u64,
    /// Longest wait for room among them.
    pub admission_patience: Duration,
    /// Bytes per second that a scrub reads, so that others get at the disk; 0 for no limit.
    pub scrub_bytes_per_second: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            in_flight_bytes: 256 << 20,
            admission_patience: Duration::from_secs(10),
            scrub_bytes_per_second: 200 << 20,
        }
    }
}

/// Serves one OST.
pub struct Oss {
    pub(crate) target: TargetId,
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) settings: Settings,
    pub(crate) admission: Admission,
    pub(crate) damage: DamageLog,
    space: CachedSpace,
    /// Another value at every start.
    run: u64,
}

impl Oss {
    /// A service for the OST `target`, whose data is in `objects`.
    pub fn new(
        target: TargetId,
        objects: Arc<dyn ObjectStore>,
        env: Arc<dyn Env>,
        settings: Settings,
    ) -> Oss {
        let run = env.random() | 1;
        Oss {
            target,
            objects,
            env,
            settings,
            admission: Admission::new(settings.in_flight_bytes, settings.admission_patience),
            damage: DamageLog::default(),
            space: CachedSpace::default(),
            run,
        }
    }

    /// The time on the target's clock.
    pub(crate) fn moment(&self) -> Moment {
        Moment { run: self.run, ms: self.env.monotonic().as_millis() as u64 }
    }

    /// Checks that a moment named by a client has not passed. Its session may be over afterwards, and
    /// what it wrote then be another's.
    pub(crate) fn check_moment(&self, not_after: Option<&Moment>) -> Result<()> {
        let now = self.moment();
        match not_after {
            Some(moment) if moment.run != now.run || moment.ms < now.ms => {
                Err(FsError::new(ErrorKind::Fenced, "change object")
                    .because("the time of the client that asked for it is over"))
            }
            _ => Ok(()),
        }
    }

    /// Space of the target, at most a second old. For heartbeats and figures.
    ///
    /// # Errors
    /// What the file system says.
    pub fn space(&self) -> Result<Space> {
        self.space.get(&*self.objects, self.env.monotonic())
    }

    /// Shows the target's figures among those of the process, for as long as the service exists.
    pub fn register_figures(self: &Arc<Self>, metrics: &Metrics) {
        let add = |name, help, kind, read: fn(&Oss) -> Option<f64>| {
            let oss: Weak<Oss> = Arc::downgrade(self);
            metrics.register(Figure {
                name,
                help,
                kind,
                labels: vec![("target", self.target.to_string())],
                read: Box::new(move || oss.upgrade().map(|oss| read(&oss).unwrap_or(f64::NAN))),
            });
        };
        use FigureKind::{Counter, Gauge};
        add("weft_target_total_bytes", "Size of a target.", Gauge, |oss| {
            oss.space().ok().map(|space| space.total as f64)
        });
        add("weft_target_free_bytes", "Bytes a target has room for.", Gauge, |oss| {
            oss.space().ok().map(|space| space.free as f64)
        });
        add("weft_target_free_inodes", "Objects a target has room for.", Gauge, |oss| {
            oss.space().ok().map(|space| space.inodes_free as f64)
        });
        add("weft_in_flight_bytes", "File data being read and written now.", Gauge, |oss| {
            Some(oss.admission.in_flight() as f64)
        });
        add("weft_bad_blocks_total", "Damaged places found in stored data.", Counter, |oss| {
            Some(oss.damage.found() as f64)
        });
    }

    fn carry_out(&self, info: &CallInfo, request: &Request, bulk: Bulk<'_>) -> Result<Reply> {
        match request {
            Request::Write(write) => ops::write::write(self, info, write, bulk).map(Reply::Write),
            Request::Read(read) => ops::read::read(self, read, bulk).map(Reply::Read),
            Request::Sync(sync) => ops::sync::sync(self, sync).map(Reply::Sync),
            Request::Stat(stat) => ops::stat::stat(self, stat).map(Reply::Stat),
            Request::Truncate(cut) => ops::truncate::truncate(self, cut).map(Reply::Truncate),
            Request::Punch(punch) => ops::punch::punch(self, punch).map(Reply::Punch),
            Request::Allocate(more) => ops::allocate::allocate(self, more).map(Reply::Allocate),
            Request::Seek(seek) => ops::seek::seek(self, seek).map(Reply::Seek),
            Request::Destroy(gone) => ops::destroy::destroy(self, gone).map(Reply::Destroy),
            Request::OstStatfs(_) => ops::statfs::statfs(self).map(Reply::OstStatfs),
            Request::Scrub(scrub) => ops::scrub::scrub(self, scrub).map(Reply::Scrub),
            Request::Clock(_) => Ok(Reply::Clock(self.moment())),
            Request::ListObjects(list) => ops::list::list(self, list).map(Reply::ListObjects),
            _ => Err(FsError::new(ErrorKind::Protocol, request.name())
                .because("this request is for another kind of target")),
        }
    }

    /// The error as the asker gets it: with the target's name in front of what it concerns.
    fn named(&self, request: &Request, mut error: FsError) -> FsError {
        if error.op.is_empty() {
            error.op = request.name();
        }
        error.subject = match error.subject.as_str() {
            "" => format!("target={}", self.target),
            subject => format!("target={} {subject}", self.target),
        };
        if error.kind == ErrorKind::Checksum && !matches!(request, Request::Write(_)) {
            self.damage.note(&error.subject, &error.detail);
        }
        error
    }
}

impl Service for Oss {
    fn serve(&self, info: &CallInfo, request: &Request, bulk: Bulk<'_>) -> Result<Reply> {
        self.carry_out(info, request, bulk).map_err(|error| self.named(request, error))
    }
}
