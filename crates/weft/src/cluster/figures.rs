//! What a server process tells of its targets, in a form to calculate with.

use std::collections::BTreeMap;
use weft_rpc::pb::Metric;

/// Figures of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetFigures {
    /// Its operations.
    pub ops: BTreeMap<String, OpFigures>,
    /// Bytes of file data in and out.
    pub bytes: f64,
    /// Requests that failed by no fault of the asker's: the disk, or damaged data.
    pub faults: f64,
    /// Damaged places found.
    pub bad_blocks: f64,
    /// Sessions of clients (MDT).
    pub sessions: Option<f64>,
}

/// Figures of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OpFigures {
    /// Requests so far.
    pub count: f64,
    /// Median time in seconds, an upper bound.
    pub p50: f64,
    /// Time in seconds that one request of a hundred exceeds, an upper bound.
    pub p99: f64,
}

/// Sorts the figures of a process by target.
pub fn by_target(metrics: &[Metric]) -> BTreeMap<String, TargetFigures> {
    let mut targets: BTreeMap<String, TargetFigures> = BTreeMap::new();
    for metric in metrics {
        let Some(target) = label(metric, "target") else { continue };
        let figures = targets.entry(target.to_string()).or_default();
        let op = label(metric, "op").unwrap_or_default();
        match metric.name.as_str() {
            "weft_request_duration_seconds_count" => figures.op(op).count = metric.value,
            "weft_request_duration_seconds" => match label(metric, "quantile") {
                Some("0.5") => figures.op(op).p50 = metric.value,
                Some("0.99") => figures.op(op).p99 = metric.value,
                _ => {}
            },
            "weft_received_bytes_total" | "weft_sent_bytes_total" => figures.bytes += metric.value,
            "weft_request_errors_total"
                if matches!(label(metric, "class"), Some("io" | "damage")) =>
            {
                figures.faults += metric.value;
            }
            "weft_bad_blocks_total" => figures.bad_blocks = metric.value,
            "weft_sessions" => figures.sessions = Some(metric.value),
            _ => {}
        }
    }
    targets
}

impl TargetFigures {
    fn op(&mut self, name: &str) -> &mut OpFigures {
        self.ops.entry(name.to_string()).or_default()
    }

    /// Requests so far.
    pub fn requests(&self) -> f64 {
        self.ops.values().map(|op| op.count).sum()
    }

    /// The operation that was asked for most since `before`.
    pub fn busiest_since(&self, before: &TargetFigures) -> Option<(&str, OpFigures)> {
        let since = |name: &str, op: &OpFigures| {
            op.count - before.ops.get(name).map_or(0.0, |before| before.count)
        };
        let counted = self.ops.iter().map(|(name, op)| (since(name, op), name.as_str(), *op));
        let busiest = counted.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((busiest.1, busiest.2))
    }
}

fn label<'a>(metric: &'a Metric, name: &str) -> Option<&'a str> {
    let mut pairs = metric.labels.chunks_exact(2);
    pairs.find(|pair| pair[0] == name).map(|pair| pair[1].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str, labels: &[&str], value: f64) -> Metric {
        let labels = labels.iter().map(ToString::to_string).collect();
        Metric { name: name.into(), labels, value }
    }

    #[test]
    fn figures_are_sorted_by_target_and_operation() {
        let op = ["target", "OST0000", "op", "Write"];
        let quantile = ["target", "OST0000", "op", "Write", "quantile", "0.99"];
        let figures = by_target(&[
            metric("weft_request_duration_seconds_count", &op, 7.0),
            metric("weft_request_duration_seconds", &quantile, 0.25),
            metric("weft_sent_bytes_total", &op, 10.0),
            metric("weft_received_bytes_total", &op, 5.0),
            metric("weft_clients", &[], 1.0),
        ]);
        let ost = &figures["OST0000"];
        assert_eq!((figures.len(), ost.requests(), ost.bytes), (1, 7.0, 15.0));
        let (name, busiest) = ost.busiest_since(&TargetFigures::default()).unwrap();
        assert_eq!((name, busiest.p99), ("Write", 0.25));
    }
}
