//! Figures over several iterations.

use serde::{Deserialize, Serialize};

/// Over several iterations.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// How many.
    pub count: u32,
    /// The largest.
    pub max: f64,
    /// The smallest.
    pub min: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The middle one; the mean of the two in the middle for an even number.
    pub median: f64,
    /// Standard deviation of all (divided by the number of iterations), as IOR and mdtest print it.
    pub stddev: f64,
}

impl Stats {
    /// Of some figures; all zero without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Stats {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Stats::default();
        };
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let square = |value: &f64| (value - mean) * (value - mean);
        let stddev = (values.iter().map(square).sum::<f64>() / count as f64).sqrt();
        let median = f64::midpoint(values[(count - 1) / 2], values[count / 2]);
        Stats { count: count as u32, max, min, mean, median, stddev }
    }

    /// (max - min) / mean; none of a single figure, which has none.
    pub fn spread(&self) -> Option<f64> {
        (self.count > 1 && self.mean > 0.0).then(|| (self.max - self.min) / self.mean)
    }
}

/// The geometric mean; none without figures or with one that is not positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| *value <= 0.0) {
        return None;
    }
    Some((values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_tools_work_them_out() {
        let stats = Stats::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((stats.min, stats.max, stats.mean, stats.stddev), (2.0, 9.0, 5.0, 2.0));
        assert_eq!((stats.median, stats.spread()), (4.5, Some(1.4)));
        assert_eq!(Stats::of([3.0]).spread(), None);
        assert_eq!(Stats::of([]), Stats::default());
    }

    #[test]
    fn geometric_means() {
        assert!((geometric_mean(&[2.0, 8.0]).unwrap() - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[2.0, 0.0]), None);
        assert_eq!(geometric_mean(&[]), None);
    }
}
