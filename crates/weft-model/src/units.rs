//! Sizes and times as people write them: `4MiB`, `1g`, `30s`, `500ms`.

use std::time::Duration;

/// Reads a size in bytes. Suffixes `K M G T P E`, with or without `B` or `iB`, are powers of 1024,
/// as `lfs` and `ior` have them. Case does not matter.
///
/// # Errors
/// A sentence for the user when the text is no size or exceeds 64 bits.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let bad =
        || format!("not a size: {text:?}; expected a number with an optional K, M, G, T, P or E");
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let number: u64 = trimmed[..digits].parse().map_err(|_| bad())?;
    let suffix = trimmed[digits..].trim().to_ascii_lowercase();
    let unit = suffix.strip_suffix("ib").or_else(|| suffix.strip_suffix('b')).unwrap_or(&suffix);
    let shift = match unit {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "p" => 50,
        "e" => 60,
        _ => return Err(bad()),
    };
    number.checked_mul(1u64 << shift).ok_or_else(bad)
}

/// Writes a size exactly if it is a whole number of a binary unit, else in bytes: `4MiB`, `47008`.
pub fn format_size(bytes: u64) -> String {
    for (shift, unit) in
        [(60, "EiB"), (50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")]
    {
        if bytes != 0 && bytes.is_multiple_of(1u64 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// Writes a size in three or four characters, as `df -h` does: `1.5G`, `223M`.
pub fn human_size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["", "K", "M", "G", "T", "P"] {
        if value < 1024.0 {
            return match unit {
                "" => format!("{bytes}"),
                _ if value < 10.0 => format!("{value:.1}{unit}"),
                _ => format!("{value:.0}{unit}"),
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1}E")
}

/// Reads a duration: a number with `us`, `ms`, `s`, `m` or `h`; a bare number is seconds.
///
/// # Errors
/// A sentence for the user.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("not a duration: {text:?}; expected a number with us, ms, s, m or h");
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let number: u64 = trimmed[..split].parse().map_err(|_| bad())?;
    match trimmed[split..].trim() {
        "us" => Ok(Duration::from_micros(number)),
        "ms" => Ok(Duration::from_millis(number)),
        "" | "s" => Ok(Duration::from_secs(number)),
        "m" | "min" => number.checked_mul(60).map(Duration::from_secs).ok_or_else(bad),
        "h" => number.checked_mul(3600).map(Duration::from_secs).ok_or_else(bad),
        _ => Err(bad()),
    }
}

/// Writes a duration so that it is read back, down to a microsecond: `30s`, `5ms`, `100us`.
pub fn format_duration(duration: Duration) -> String {
    let micros = duration.as_micros();
    match micros {
        _ if micros.is_multiple_of(1_000_000) => format!("{}s", micros / 1_000_000),
        _ if micros.is_multiple_of(1000) => format!("{}ms", micros / 1000),
        _ => format!("{micros}us"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("0", 0), ("4MiB", 4 << 20), ("1g", 1 << 30), ("64K", 65536), ("47008", 47008)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "x", "4Q", "-1", "20E"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!(format_size(4 << 20), "4MiB");
        assert_eq!(format_size(47008), "47008");
        assert_eq!(human_size(1536), "1.5K");
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse_duration("5ms"), Ok(Duration::from_millis(5)));
        for text in ["0s", "30s", "1500ms", "100us"] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), text);
        }
        assert_eq!(parse_duration("2"), Ok(Duration::from_secs(2)));
        assert!(parse_duration("soon").is_err());
    }
}
