//! Two runs of a study side by side.

use crate::plot::number;
use crate::point::{Params, describe};
use crate::report::escape;
use crate::results::Results;

/// Two runs of one study.
pub struct Comparison {
    /// Names of the runs.
    pub names: [String; 2],
    /// Figures that both have.
    pub rows: Vec<Row>,
    /// Points that only one of them has.
    pub unmatched: usize,
}

/// A figure of both runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Part of the study.
    pub part: String,
    /// The point.
    pub params: Params,
    /// Name of the figure.
    pub figure: String,
    /// Its unit.
    pub unit: String,
    /// Of the one and the other.
    pub values: [f64; 2],
}

impl Row {
    /// How many times the first the second is; none of nothing.
    pub fn ratio(&self) -> Option<f64> {
        (self.values[0] > 0.0).then(|| self.values[1] / self.values[0])
    }
}

impl Comparison {
    /// Puts together the figures of the same points. Points are the same by part and parameters; the
    /// clusters below may differ, which is what is compared.
    ///
    /// # Errors
    /// A sentence when they are of different studies or have nothing in common.
    pub fn of(names: [String; 2], a: &Results, b: &Results) -> Result<Comparison, String> {
        if a.study != b.study {
            return Err(format!(
                "{} is of study {}, {} of {}",
                names[0], a.study, names[1], b.study
            ));
        }
        let mut rows = Vec::new();
        let mut matched = 0;
        let good = |results: &Results| results.points.iter().filter(|o| o.failed.is_none()).count();
        for one in a.points.iter().filter(|outcome| outcome.failed.is_none()) {
            let other =
                b.part(&one.point.part).find(|other| other.point.params == one.point.params);
            let Some(other) = other else { continue };
            matched += 1;
            for figure in &one.measured.figures {
                let Some(there) = other.figure(&figure.name).filter(|f| f.unit == figure.unit)
                else {
                    continue;
                };
                rows.push(Row {
                    part: one.point.part.clone(),
                    params: one.point.params.clone(),
                    figure: figure.name.clone(),
                    unit: figure.unit.clone(),
                    values: [figure.median, there.median],
                });
            }
        }
        if rows.is_empty() {
            return Err(format!("{} and {} have no point in common", names[0], names[1]));
        }
        let unmatched = good(a) + good(b) - 2 * matched;
        Ok(Comparison { names, rows, unmatched })
    }

    /// Geometric means of the ratios by part and figure.
    pub fn means(&self) -> Vec<(String, String, f64, usize)> {
        let mut groups: Vec<(String, String, Vec<f64>)> = Vec::new();
        for row in &self.rows {
            let Some(ratio) = row.ratio().filter(|ratio| *ratio > 0.0) else { continue };
            match groups.iter_mut().find(|group| group.0 == row.part && group.1 == row.figure) {
                Some(group) => group.2.push(ratio),
                None => groups.push((row.part.clone(), row.figure.clone(), vec![ratio])),
            }
        }
        let mean = |(part, figure, ratios): (String, String, Vec<f64>)| {
            let mean = weft_eval::record::stats::geometric_mean(&ratios)?;
            Some((part, figure, mean, ratios.len()))
        };
        groups.into_iter().filter_map(mean).collect()
    }

    /// As text for a terminal.
    pub fn text(&self) -> String {
        let [a, b] = &self.names;
        let mut out = format!("A  {a}\nB  {b}\n\n");
        for row in &self.rows {
            let what = format!("{} ({}) {}", row.part, describe(&row.params), row.figure);
            let ratio = row.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}"));
            let [one, other] = row.values.map(number);
            out += &format!("{what:<64} {one:>10} {other:>10} {:<6} B/A {ratio}\n", row.unit);
        }
        out += "\nGeometric means of B/A\n";
        for (part, figure, mean, count) in self.means() {
            out += &format!("{:<64} {mean:.2} of {count}\n", format!("{part}, {figure}"));
        }
        if self.unmatched > 0 {
            out += &format!("\n{} points are only in one of them\n", self.unmatched);
        }
        out
    }

    /// As an HTML file.
    pub fn html(&self) -> String {
        let [a, b] = &self.names;
        let mut body = format!("<p>A: {}<br>B: {}</p>\n", escape(a), escape(b));
        let mut means = crate::report::Table::new(
            "Geometric means of B/A",
            &["Part", "Figure", "B/A", "Points"].map(String::from),
        );
        for (part, figure, mean, count) in self.means() {
            means.row(&[part, figure, format!("{mean:.2}"), count.to_string()]);
        }
        body += &means.end();
        let columns = ["Part", "Point", "Figure", "Unit", "A", "B", "B/A"];
        let mut table =
            crate::report::Table::new("Every figure that both have", &columns.map(String::from));
        for row in &self.rows {
            let ratio = row.ratio().map_or(String::new(), |ratio| format!("{ratio:.2}"));
            let [one, other] = row.values.map(number);
            let (part, figure, unit) = (row.part.clone(), row.figure.clone(), row.unit.clone());
            table.row(&[part, describe(&row.params), figure, unit, one, other, ratio]);
        }
        body += &table.end();
        body += &format!("<p>Points that only one of them has: {}.</p>\n", self.unmatched);
        crate::report::document("Two runs side by side", &body)
    }
}
