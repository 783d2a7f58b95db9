//! Figures as Prometheus text and as messages.

use super::FigureKind;
use super::op::Distribution;
use crate::pb;
use std::fmt::Write as _;

/// Pairs of label and value.
pub(super) type Labels = Vec<(&'static str, String)>;

/// What is shown for one combination of labels.
pub(super) enum Shown {
    /// A number.
    Number(f64),
    /// A histogram.
    Distribution(Distribution),
}

/// Figures of one name.
pub(super) struct Family {
    name: &'static str,
    help: &'static str,
    kind: &'static str,
    pub(super) samples: Vec<(Labels, Shown)>,
}

impl Family {
    pub(super) fn new(name: &'static str, help: &'static str, kind: FigureKind) -> Family {
        let kind = match kind {
            FigureKind::Gauge => "gauge",
            FigureKind::Counter => "counter",
        };
        Family { name, help, kind, samples: Vec::new() }
    }

    pub(super) fn histogram(name: &'static str, help: &'static str) -> Family {
        Family { name, help, kind: "histogram", samples: Vec::new() }
    }

    pub(super) fn add(&mut self, labels: Labels, value: f64) {
        self.samples.push((labels, Shown::Number(value)));
    }
}

/// Prometheus' text format, version 0.0.4. Families without samples are left out.
pub(super) fn text(families: &[Family]) -> String {
    let mut out = String::new();
    for family in families.iter().filter(|family| !family.samples.is_empty()) {
        let (name, help, kind) = (family.name, family.help, family.kind);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", escape(help, false));
        for (labels, shown) in &family.samples {
            match shown {
                Shown::Number(value) => line(&mut out, name, "", labels, None, *value),
                Shown::Distribution(distribution) => {
                    distribution_lines(&mut out, name, labels, distribution);
                }
            }
        }
    }
    out
}

fn distribution_lines(out: &mut String, name: &str, labels: &Labels, distribution: &Distribution) {
    for &(bound, calls) in &distribution.cumulative {
        line(out, name, "_bucket", labels, Some(bound), calls as f64);
    }
    line(out, name, "_sum", labels, None, distribution.sum);
    line(out, name, "_count", labels, None, distribution.count() as f64);
}

fn line(out: &mut String, name: &str, suffix: &str, labels: &Labels, le: Option<f64>, value: f64) {
    out.push_str(name);
    out.push_str(suffix);
    let mut pairs: Vec<String> = labels
        .iter()
        .map(|(label, value)| format!("{label}=\"{}\"", escape(value, true)))
        .collect();
    if let Some(bound) = le {
        pairs.push(format!("le=\"{}\"", number(bound)));
    }
    if !pairs.is_empty() {
        let _ = write!(out, "{{{}}}", pairs.join(","));
    }
    let _ = writeln!(out, " {}", number(value));
}

/// Numbers as Prometheus reads them; whole ones without a point.
fn number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_string();
    }
    value.to_string()
}

/// Escapes a help text, or a label's value where quotes count, too.
fn escape(text: &str, quotes: bool) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\n', "\\n");
    if quotes { escaped.replace('"', "\\\"") } else { escaped }
}

/// As messages.
pub(super) fn messages(families: &[Family]) -> Vec<pb::Metric> {
    let mut out = Vec::new();
    for family in families {
        for (labels, shown) in &family.samples {
            match shown {
                Shown::Number(value) => out.push(message(family.name, labels, None, *value)),
                Shown::Distribution(distribution) => {
                    let name = |suffix: &str| format!("{}{suffix}", family.name);
                    let count = distribution.count() as f64;
                    out.push(message(&name("_count"), labels, None, count));
                    out.push(message(&name("_sum"), labels, None, distribution.sum));
                    for part in [0.5, 0.99] {
                        let bound = distribution.quantile(part);
                        out.push(message(family.name, labels, Some(part), bound));
                    }
                }
            }
        }
    }
    out
}

fn message(name: &str, labels: &Labels, quantile: Option<f64>, value: f64) -> pb::Metric {
    let mut flat: Vec<String> =
        labels.iter().flat_map(|(label, value)| [label.to_string(), value.clone()]).collect();
    if let Some(part) = quantile {
        flat.extend(["quantile".to_string(), part.to_string()]);
    }
    pb::Metric { name: name.to_string(), labels: flat, value }
}
