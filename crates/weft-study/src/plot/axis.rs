//! Round numbers for axes.

/// Tick marks from zero to the first round number that `max` fits below.
pub fn ticks(max: f64) -> Vec<f64> {
    if !max.is_finite() || max <= 0.0 {
        return vec![0.0, 1.0];
    }
    let rough = max / 5.0;
    let magnitude = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * magnitude)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough);
    let count = (max / step).ceil() as usize;
    (0..=count).map(|i| i as f64 * step).collect()
}

/// The ticks as text, all with the same decimals.
pub fn labels(ticks: &[f64]) -> Vec<String> {
    let whole = |digits: i32| {
        let scale = 10f64.powi(digits);
        ticks.iter().all(|tick| ((tick * scale).round() / scale - tick).abs() <= tick.abs() * 1e-9)
    };
    let digits = (0..6).find(|&digits| whole(digits)).unwrap_or(6) as usize;
    ticks.iter().map(|&tick| grouped(&format!("{tick:.digits$}"))).collect()
}

/// A number above a bar, where there is little room: two digits that count.
pub fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 9.95 || v == 0.0 => grouped(&format!("{value:.0}")),
        v if v >= 0.0995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A number in a table: three digits that count, thousands set apart.
pub fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.0995 {
        return format!("{value:.3}");
    }
    let digits = match value.abs() {
        v if v >= 99.95 || v == v.trunc() => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    grouped(&format!("{value:.digits$}"))
}

/// Thousands set apart.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let groups: Vec<String> = whole
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| String::from_utf8_lossy(group).into_owned())
        .collect();
    let fraction = if rest.is_empty() { String::new() } else { format!(".{rest}") };
    format!("{sign}{}{fraction}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_top() {
        assert_eq!(ticks(4.6), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(ticks(1000.0), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(ticks(0.0), [0.0, 1.0]);
        assert_eq!(ticks(f64::NAN), [0.0, 1.0]);
        for max in [0.013, 7.0, 99.0, 12345.6, 1e9] {
            let ticks = ticks(max);
            assert!((3..=8).contains(&ticks.len()) && *ticks.last().unwrap() >= max, "{max}");
        }
    }

    #[test]
    fn ticks_have_the_same_decimals() {
        assert_eq!(labels(&[0.0, 0.5, 1.0]), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(&[0.0, 2500.0]), ["0", "2,500"]);
        assert_eq!(labels(&[0.0, 0.25, 0.5]), ["0.00", "0.25", "0.50"]);
        assert_eq!([0.0, 0.021, 2.1, 432.1].map(short), ["0", "0.02", "2.1", "432"]);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.0123, "0.012"),
            (0.954, "0.95"),
            (12.34, "12.3"),
            (128.0, "128"),
            (1234567.8, "1,234,568"),
            (-1500.0, "-1,500"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
