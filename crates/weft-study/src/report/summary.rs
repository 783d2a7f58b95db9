//! The best of each part in a few lines, worked out from the results.

use super::html::Table;
use crate::plot::number;
use crate::point::describe;
use crate::results::{Outcome, Results};
use crate::studies::Study;

/// The highest figures (for times the longest) and their share of what the devices allow.
pub fn section(study: &Study, results: &Results) -> String {
    let columns = ["Part", "Figure", "Highest", "Unit", "At", "Of the limit", "Lowest", "At"];
    let mut table = Table::new("", &columns.map(String::from));
    for part in (study.parts)() {
        for name in names(results, part.name) {
            let of =
                |outcome: &Outcome| outcome.figure(&name).map_or(f64::NAN, |figure| figure.median);
            let with = || results.part(part.name).filter(|outcome| outcome.figure(&name).is_some());
            let highest = with().max_by(|a, b| of(a).total_cmp(&of(b)));
            let lowest = with().min_by(|a, b| of(a).total_cmp(&of(b)));
            let (Some(highest), Some(lowest)) = (highest, lowest) else { continue };
            let Some(figure) = highest.figure(&name) else { continue };
            table.row(&[
                part.title.to_string(),
                name.clone(),
                number(of(highest)),
                figure.unit.clone(),
                describe(&highest.point.params),
                highest.efficiency(figure).map_or("no limit set".into(), percent),
                number(of(lowest)),
                describe(&lowest.point.params),
            ]);
        }
    }
    format!("<h2>In short</h2>\n{}", table.end())
}

/// `97 %`.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Names of the figures of a part, in the order in which they first come.
pub fn names(results: &Results, part: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for figure in results.part(part).flat_map(|outcome| &outcome.measured.figures) {
        if !names.contains(&figure.name) {
            names.push(figure.name.clone());
        }
    }
    names
}
