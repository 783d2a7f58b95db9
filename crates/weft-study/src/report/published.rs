//! The published figures of the report that a study follows.

use super::html::{Table, escape};
use crate::published::{Published, PublishedFigure};
use crate::studies::Study;

/// Kinds that were measured by somebody, and so stand in the open.
const MEASURED: [&str; 2] = ["measured", "measured (third party)"];

/// Figures and ratios, set apart from those measured here.
pub fn section(study: &Study, published: &Published) -> String {
    let mut out = format!(
        "<h2>Published figures</h2>\n<div class=\"published\">\n<p>From: {}. Other machines, other networks, \
         other software, other years: what can be compared are shapes and shares of what the devices \
         allow, not the figures themselves.</p>\n",
        escape(study.source)
    );
    let mut ratios = Table::new(
        "Ratios of published figures",
        &["Ratio", "Value", "The report says"].map(String::from),
    );
    for ratio in published.ratios(study.document) {
        let said = ratio.stated_in_text.clone().unwrap_or_default();
        ratios.row(&[ratio.name.clone(), format!("{:.2}", ratio.ratio), said]);
    }
    out += &ratios.end();
    let of = |measured: bool| {
        published
            .of(study.document)
            .filter(move |f| MEASURED.contains(&f.kind.as_str()) == measured)
    };
    for (title, measured) in
        [("Measured figures", true), ("Limits, data sheets, statements", false)]
    {
        let table = figures(of(measured));
        out += &format!("<details><summary>{title}</summary>\n{table}</details>\n");
    }
    out + "</div>\n"
}

fn figures<'a>(figures: impl Iterator<Item = &'a PublishedFigure>) -> String {
    let columns =
        ["What", "Value", "Unit", "How exactly", "Benchmark", "Parameters", "Set-up", "Where"];
    let mut table = Table::new("", &columns.map(String::from));
    for figure in figures {
        table.row(&[
            figure.metric.clone(),
            figure.text(),
            figure.unit.clone(),
            figure.qualifier.clone(),
            figure.benchmark.clone(),
            figure.conditions(),
            format!("{}; {}", figure.system, figure.config),
            figure.source.section.clone(),
        ]);
    }
    table.end()
}
