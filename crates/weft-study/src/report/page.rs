//! What stands before and after the figures.

use super::html::{Table, escape};
use crate::plot::number;
use crate::results::{Results, Size};
use crate::studies::Study;
use weft_eval::text::date;

/// What was asked, and under which conditions.
pub fn head(study: &Study, results: &Results) -> String {
    let mut out = format!(
        "<p>A study of <code>weft eval</code> after: {}</p>\n<h2>What was asked</h2>\n<p>{}</p>\n\
         <h2>What was done</h2>\n<p>{}</p>\n",
        escape(study.source),
        escape(study.asked),
        escape(study.done)
    );
    let mut table = Table::new("", &["Condition".to_string(), "Here".to_string()]);
    let mut row = |name: &str, value: String| table.row(&[name.to_string(), value]);
    let machine = &results.machine;
    row("Program", results.program.clone());
    row(
        "Size of the study",
        match results.size {
            Size::Quick => "quick: chosen to end in a few minutes".into(),
            Size::Full => "full".into(),
        },
    );
    row("Measurements of each point", results.repeats.to_string());
    row(
        "Machine",
        format!("{}, {} processors, {} GiB", machine.cpu, machine.cores, machine.memory >> 30),
    );
    row("Kernel", machine.kernel.clone());
    for (name, value) in &results.settings {
        row(name, value.clone());
    }
    row("Began", utc(results.started));
    let seconds: f64 = results.points.iter().map(|outcome| outcome.seconds).sum();
    row(
        "Points measured, minutes",
        format!("{}, {}", results.points.len(), number(seconds / 60.0)),
    );
    let loads = || results.points.iter().map(|outcome| outcome.load_before);
    let (low, high) = (loads().fold(f64::INFINITY, f64::min), loads().fold(0.0, f64::max));
    row("Load of the machine before points", format!("{} to {}", number(low), number(high)));
    out += &table.end();
    if high > f64::from(machine.cores) {
        out += "<p class=\"warn\">The load was above the number of processors: figures that need the \
                processor are too low and vary. Clients, servers and everything else on the machine share \
                its processors.</p>\n";
    }
    out
}

/// What the report has and this run has not.
pub fn not_run(study: &Study, results: &Results) -> String {
    let mut out = String::from("<h2>Not run, and why</h2>\n");
    let mut table = Table::new("", &["What".to_string(), "Why".to_string()]);
    for (what, why) in study.not_run {
        table.row(&[what.to_string(), why.to_string()]);
    }
    let points = (study.points)(results.size);
    let missing = points.iter().filter(|point| results.points.iter().all(|o| o.point != **point));
    for point in missing {
        let what = format!("{}: {}", point.part, crate::point::describe(&point.params));
        table.row(&[what, "this run did not get to it".into()]);
    }
    for outcome in &results.points {
        if let Some(why) = &outcome.failed {
            let point = &outcome.point;
            let what = format!("{}: {}", point.part, crate::point::describe(&point.params));
            table.row(&[what, format!("failed: {why}")]);
        }
    }
    out += &table.end();
    out
}

/// How to do it again.
pub fn commands(results: &Results) -> String {
    let mut out = String::from(
        "<h2>Commands</h2>\n<details><summary>Every command of every point</summary>\n<pre>",
    );
    for outcome in &results.points {
        let point = &outcome.point;
        out += &format!(
            "# {}: {}\n",
            escape(&point.part),
            escape(&crate::point::describe(&point.params))
        );
        for command in &outcome.measured.commands {
            out += &format!("{}\n", escape(command));
        }
    }
    out += "</pre></details>\n";
    let mut notes: Vec<&String> = results.points.iter().flat_map(|o| &o.measured.notes).collect();
    notes.sort();
    notes.dedup();
    if !notes.is_empty() {
        let items: String =
            notes.iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
        out += &format!("<h2>Notes of the tools</h2>\n<ul>\n{items}</ul>\n");
    }
    out
}

/// A time as `2026-11-22 04:05 UTC`.
fn utc(seconds: u64) -> String {
    let (year, month, day) = date(seconds / 86_400);
    let minutes = seconds % 86_400 / 60;
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        assert_eq!(super::utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(super::utc(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(super::utc(1_795_320_300), "2026-11-22 04:05 UTC");
    }
}
