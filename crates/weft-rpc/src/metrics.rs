//! What the targets of this process do and how long they take, counted by plain atomics.
//!
//! Every call of a target is measured where the [`crate::registry::Registry`] keeps it, so calls over
//! a connection and calls within the process count alike. Measuring costs about 100 ns: half of it
//! are two looks at the clock, the rest a few relaxed additions.
//!
//! Figures are shown as Prometheus text ([`Metrics::text`]) and as messages ([`Metrics::messages`]).

mod clients;
mod op;
mod render;

use crate::call::{Bulk, CallInfo};
use crate::message::{Reply, Request};
use crate::pb;
use crate::service::Service;
use clients::ClientTable;
use op::{ErrorClass, ErrorCounts, TargetMetrics};
use parking_lot::{Mutex, RwLock};
use render::Family;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use weft_model::{ClientId, FsError, Result, TargetId};

/// Whether a figure may go down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureKind {
    /// It may: sizes, numbers of sessions.
    Gauge,
    /// It may not, except at a restart. The name ends in `_total`.
    Counter,
}

/// A figure that somebody else keeps and that is read when figures are shown.
pub struct Figure {
    /// Name, `weft_WHAT_UNIT`.
    pub name: &'static str,
    /// One line that says what it is.
    pub help: &'static str,
    /// Whether it may go down.
    pub kind: FigureKind,
    /// Pairs of label and value.
    pub labels: Vec<(&'static str, String)>,
    /// Reads it; `None` when what it told about is gone: the figure then goes, too.
    pub read: Box<dyn Fn() -> Option<f64> + Send + Sync>,
}

/// The figures of one process.
pub struct Metrics {
    start: Instant,
    targets: RwLock<BTreeMap<TargetId, Arc<TargetMetrics>>>,
    refused: ErrorCounts,
    clients: ClientTable,
    figures: Mutex<Vec<Figure>>,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            start: Instant::now(),
            targets: RwLock::default(),
            refused: ErrorCounts::default(),
            clients: ClientTable::default(),
            figures: Mutex::default(),
        }
    }
}

impl Metrics {
    /// Adds a figure that is read when figures are shown.
    pub fn register(&self, figure: Figure) {
        self.figures.lock().push(figure);
    }

    /// A service that does what `service` does and counts it for `target`. Counts go on where an
    /// earlier service of the target left them.
    pub fn measure(
        self: &Arc<Self>,
        target: TargetId,
        service: Arc<dyn Service>,
    ) -> Arc<dyn Service> {
        let counts = self.targets.write().entry(target).or_default().clone();
        Arc::new(Measured { metrics: self.clone(), counts, service })
    }

    /// Counts a request that was refused before it reached a target.
    pub fn refused(&self, error: &FsError) {
        self.refused.add(ErrorClass::of(error.kind));
    }

    /// Everything in Prometheus' text format, version 0.0.4.
    pub fn text(&self) -> String {
        render::text(&self.families())
    }

    /// Everything as messages. Of a latency there are sum, count and upper bounds of the median and
    /// the 99th percentile instead of buckets.
    pub fn messages(&self) -> Vec<pb::Metric> {
        render::messages(&self.families())
    }

    fn families(&self) -> Vec<Family> {
        let targets: Vec<_> =
            self.targets.read().iter().map(|(&id, counts)| (id, counts.clone())).collect();
        let mut families = op::families(&targets);
        families.push(self.refused.family());
        families.extend(self.clients.families());
        families.extend(self.figure_families());
        families
    }

    fn figure_families(&self) -> Vec<Family> {
        let mut families: BTreeMap<&'static str, Family> = BTreeMap::new();
        self.figures.lock().retain(|figure| {
            let Some(value) = (figure.read)() else { return false };
            families
                .entry(figure.name)
                .or_insert_with(|| Family::new(figure.name, figure.help, figure.kind))
                .add(figure.labels.clone(), value);
            true
        });
        families.into_values().collect()
    }
}

/// A service whose calls are counted.
struct Measured {
    metrics: Arc<Metrics>,
    counts: Arc<TargetMetrics>,
    service: Arc<dyn Service>,
}

impl Service for Measured {
    fn serve(&self, info: &CallInfo, request: &Request, bulk: Bulk<'_>) -> Result<Reply> {
        let received = bulk.sent_len() as u64;
        let start = Instant::now();
        let answer = self.service.serve(info, request, bulk);
        let end = Instant::now();
        let op = self.counts.op(request);
        op.latency.add(end.duration_since(start));
        let sent = match &answer {
            Ok(reply) => reply.bulk_len() as u64,
            Err(error) => {
                op.errors.add(ErrorClass::of(error.kind));
                0
            }
        };
        op.bytes.add(received, sent);
        if info.client != ClientId::NONE {
            let now = end.duration_since(self.metrics.start).as_secs();
            self.metrics.clients.add(info.client, now, received, sent);
        }
        answer
    }

    fn disconnected(&self, client: ClientId) {
        self.service.disconnected(client);
    }
}

#[cfg(test)]
mod tests;
