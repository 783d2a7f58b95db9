//! Pieces of text that several tools print.

use crate::record::Record;

/// A size as the tools write it: `1 MiB`, `47008 bytes`, `251.9 GiB`.
pub fn size(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB")] {
        let whole = 1u64 << shift;
        if bytes >= whole {
            return match bytes.is_multiple_of(whole) {
                true => format!("{} {unit}", bytes >> shift),
                false => format!("{:.2} {unit}", bytes as f64 / whole as f64),
            };
        }
    }
    format!("{bytes} bytes")
}

/// Seconds since 1970 as UTC: `2026-11-22 04:05:06 UTC`.
pub fn clock(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month from 1 and day from 1, so many days after 1970-01-01 (Howard Hinnant's `civil_from_days`).
pub const fn date(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// What every tool says at the end: caches, fsync, processor time, noise, and what else must be known.
pub fn conditions(record: &Record) -> String {
    let mut lines = Vec::new();
    for place in &record.places {
        lines.push(format!(
            "place: {} is {} ({}), {}",
            place.path, place.fs, place.source, place.options
        ));
    }
    let machine = &record.machine;
    let [one, five, fifteen] = record.load_before;
    lines.push(format!(
        "machine: {}, {} x {}, {}; {}; load before {one:.2} {five:.2} {fifteen:.2}",
        machine.host,
        machine.cores,
        machine.cpu,
        size(machine.memory),
        machine.kernel,
    ));
    lines.push(format!("ranks: {} {}", record.ranks.count, record.ranks.kind));
    lines.push(format!("caches: {}", record.caches.note));
    if !record.fsync.note.is_empty() {
        lines.push(format!("fsync: {}", record.fsync.note));
    }
    for phase in &record.phases {
        let parts = [("GiB", phase.cpu_per_gib), ("1,000 operations", phase.cpu_per_1000)];
        let told: Vec<String> = parts
            .into_iter()
            .filter_map(|(unit, cpu)| cpu.map(|[load, served]| (unit, load, served)))
            .filter(|(_, load, served)| load + served > 0.0)
            .map(|(unit, load, served)| format!("{load:.3} + {served:.3} per {unit}"))
            .collect();
        if !told.is_empty() {
            let told = told.join(", ");
            lines.push(format!("CPU seconds (ranks + servers), {}: {told}", phase.phase));
        }
    }
    lines.push(noise(record));
    lines.extend(record.notes.iter().map(|note| format!("note: {note}")));
    lines.into_iter().map(|line| line + "\n").collect()
}

fn noise(record: &Record) -> String {
    let noise = &record.noise;
    let Some(spread) = noise.spread else {
        return "spread: not known, as there was one iteration".into();
    };
    let (spread, limit) = (spread * 100.0, noise.threshold * 100.0);
    let more = match noise.repeated {
        0 => String::new(),
        n => format!("; {n} iteration(s) were added because of it"),
    };
    format!("spread: {spread:.1}% between iterations (noisy from {limit:.0}%){more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_clocks() {
        assert_eq!(size(262_144), "262144 bytes");
        assert_eq!(size(16 << 20), "16 MiB");
        assert_eq!(size((3 << 30) + (1 << 29)), "3.50 GiB");
        assert_eq!(clock(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(clock(1_709_210_096), "2024-02-29 12:34:56 UTC");
        assert_eq!(clock(1_798_761_599), "2026-12-31 23:59:59 UTC");
    }
}
