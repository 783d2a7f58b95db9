//! Every figure of a part.

use super::html::Table;
use super::summary::{names, percent};
use crate::plot::number;
use crate::point::Param;
use crate::results::{Figure, Outcome, Results};

/// One row per point, one column per figure; a second table with efficiency and processor time.
pub fn part(results: &Results, part: &str) -> String {
    let figures = names(results, part);
    if figures.is_empty() {
        return "<p>Not measured in this run; see below.</p>\n".into();
    }
    let mut params: Vec<&String> = Vec::new();
    for name in results.part(part).flat_map(|outcome| outcome.point.params.keys()) {
        if !params.contains(&name) {
            params.push(name);
        }
    }
    let row = |outcome: &Outcome, cell: &dyn Fn(&Outcome, &Figure) -> String| {
        let value = |name: &&String| {
            outcome.point.params.get(*name).map_or(String::new(), Param::to_string)
        };
        let left = params.iter().map(value);
        let right = figures
            .iter()
            .map(|name| outcome.figure(name).map_or(String::new(), |f| cell(outcome, f)));
        left.chain(right).collect::<Vec<String>>()
    };
    let unit = |name: &String| {
        let found = results.part(part).find_map(|outcome| outcome.figure(name));
        found.map_or(String::new(), |figure| figure.unit.clone())
    };
    let header = |with: &dyn Fn(&String) -> String| {
        let names = params.iter().map(|name| name.to_string());
        names.chain(figures.iter().map(with)).collect::<Vec<String>>()
    };
    let mut measured = Table::new(
        "Measured: median (smallest to largest where repeated)",
        &header(&|name| format!("{name}, {}", unit(name))),
    );
    let mut share =
        Table::new("Efficiency: share of what the devices allow", &header(&String::clone));
    let mut cpu = Table::new(
        "Processor seconds of programs + servers and mounts, per GiB or per 1,000 operations",
        &header(&String::clone),
    );
    let (mut any_share, mut any_cpu) = (false, false);
    for outcome in results.part(part) {
        measured.row(&row(outcome, &|_, figure| range(figure)));
        share.row(&row(outcome, &|outcome, figure| {
            outcome.efficiency(figure).map_or(String::new(), percent)
        }));
        cpu.row(&row(outcome, &|_, figure| {
            figure.cpu.map_or(String::new(), |[a, b]| format!("{} + {}", number(a), number(b)))
        }));
        for figure in &outcome.measured.figures {
            any_share |= outcome.efficiency(figure).is_some();
            any_cpu |= figure.cpu.is_some();
        }
    }
    let mut out = measured.end();
    if any_share {
        out += &share.end();
    }
    if any_cpu {
        out += &format!("<details><summary>Processor time</summary>\n{}</details>\n", cpu.end());
    }
    out
}

fn range(figure: &Figure) -> String {
    if figure.min == figure.max {
        return number(figure.median);
    }
    format!("{} ({} to {})", number(figure.median), number(figure.min), number(figure.max))
}
