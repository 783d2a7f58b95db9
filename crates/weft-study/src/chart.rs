//! From results to pictures: which figures over which parameter.

use crate::plot::{Bars, Datum, Group, Kind, Line, Lines};
use crate::point::{Param, describe};
use crate::published::{Published, PublishedFigure};
use crate::results::{Figure, Outcome, Results};

/// The parameter below a picture.
#[derive(Clone, Copy, Debug)]
pub enum Over {
    /// A number that doubles from point to point: parameter, name of the axis.
    Doubling(&'static str, &'static str),
    /// A name: one group of bars each.
    Names(&'static str),
}

/// Published figures that stand beside those measured, as shares of what their devices allow.
#[derive(Clone, Copy)]
pub struct Beside {
    /// `published: ...`.
    pub label: &'static str,
    /// The report.
    pub document: &'static str,
    /// Those that belong to the line, and their x.
    pub pick: fn(&PublishedFigure) -> Option<f64>,
    /// What their devices allow, in their unit.
    pub limit: f64,
}

/// A picture, or one for each figure.
pub struct Chart {
    /// Part of the study.
    pub part: &'static str,
    /// Above the picture.
    pub title: &'static str,
    /// Below it.
    pub over: Over,
    /// Figures shown.
    pub figures: &'static [&'static str],
    /// Parameters that make a series of their own.
    pub series: &'static [&'static str],
    /// x counts parts that would ideally add up.
    pub ideal: bool,
    /// For each figure, what was published.
    pub beside: Vec<(&'static str, Beside)>,
}

/// A picture and its name.
pub struct Picture {
    /// For a file: `panfs-throughput-write`.
    pub name: String,
    /// The picture.
    pub svg: String,
}

impl Chart {
    /// The pictures of this chart; those without any figure are left out.
    ///
    /// # Errors
    /// Those of the plotting library, as text.
    pub fn draw(&self, results: &Results, published: &Published) -> Result<Vec<Picture>, String> {
        if results.part(self.part).next().is_none() {
            return Ok(Vec::new());
        }
        let name = |x: &str, figure: &str| {
            let words = format!("{}-{}-{x}-{figure}", results.study, self.part).to_lowercase();
            words.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
        };
        let (x, label) = match self.over {
            Over::Doubling(x, label) => (x, label),
            Over::Names(x) => {
                let first = self.figures.first().copied().unwrap_or_default();
                let svg = self.bars(results, x).svg()?;
                return Ok(vec![Picture { name: name(x, first), svg }]);
            }
        };
        let mut pictures = Vec::new();
        for figure in self.figures {
            if let Some(lines) = self.lines(results, figure, x, label) {
                pictures.push(Picture { name: name(x, figure), svg: lines.svg()? });
            }
            if let Some(lines) = self.shares(results, published, figure, x, label) {
                pictures
                    .push(Picture { name: name(x, &format!("{figure}-share")), svg: lines.svg()? });
            }
        }
        Ok(pictures)
    }

    /// Measured figures with the ideal and the limit.
    fn lines(&self, results: &Results, figure: &str, x: &str, label: &str) -> Option<Lines> {
        let mut lines = self.measured(results, figure, x, |found, _| Some(found.clone()));
        let outcomes: Vec<&Outcome> = results.part(self.part).collect();
        let unit = outcomes.iter().find_map(|o| o.figure(figure)).map(|f| f.unit.clone())?;
        let firsts = lines.iter().filter_map(|line| Some((*line.points.first()?, &line.label)));
        let first = firsts.min_by(|(a, _), (b, _)| a.x.total_cmp(&b.x));
        if let Some((first, of)) = first.filter(|_| self.ideal) {
            let label = format!("ideal scaling of {of}");
            let xs = lines.iter().flat_map(|line| line.points.iter().map(|datum| datum.x));
            let at = |x: f64| Datum::exact(x, first.y * x / first.x);
            let points = sorted(xs.map(at).collect());
            lines.push(Line { label, kind: Kind::Ideal, points });
        }
        lines.extend(self.limits(&outcomes, x, &unit));
        Some(Lines {
            title: format!("{}: {figure}", self.title),
            x_label: label.into(),
            y_label: format!("{figure}, {unit}"),
            doubling: true,
            lines,
        })
    }

    /// Shares of what the devices allow, beside those published.
    fn shares(
        &self,
        results: &Results,
        published: &Published,
        figure: &str,
        x: &str,
        label: &str,
    ) -> Option<Lines> {
        let mut beside = Vec::new();
        for (_, other) in self.beside.iter().filter(|(name, _)| *name == figure) {
            let share = |f: &PublishedFigure| {
                Some(Datum::exact((other.pick)(f)?, 100.0 * f.number()? / other.limit))
            };
            let points = sorted(published.of(other.document).filter_map(share).collect());
            beside.push(Line { label: other.label.into(), kind: Kind::Published, points });
        }
        if beside.is_empty() {
            return None;
        }
        let percent = |found: &Figure, outcome: &Outcome| {
            let limit = outcome.point.cluster.limit(&found.unit)? / 100.0;
            let (median, min, max) = (found.median / limit, found.min / limit, found.max / limit);
            Some(Figure { median, min, max, ..found.clone() })
        };
        let mut lines = self.measured(results, figure, x, percent);
        lines.extend(beside);
        Some(Lines {
            title: format!("{}: {figure}, share of the limit", self.title),
            x_label: label.into(),
            y_label: "percent of what the devices allow".into(),
            doubling: true,
            lines,
        })
    }

    /// A line for each value of the parameters that make a series.
    fn measured(
        &self,
        results: &Results,
        figure: &str,
        x: &str,
        turn: impl Fn(&Figure, &Outcome) -> Option<Figure>,
    ) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for outcome in results.part(self.part) {
            let found = outcome.figure(figure).and_then(|found| turn(found, outcome));
            let place = outcome.point.params.get(x).and_then(Param::number);
            let (Some(found), Some(x)) = (found, place) else { continue };
            let datum = Datum { x, y: found.median, low: found.min, high: found.max };
            let label = self.series_of(outcome);
            match lines.iter_mut().find(|line| line.label == label) {
                Some(line) => line.points.push(datum),
                None => lines.push(Line { label, kind: Kind::Measured, points: vec![datum] }),
            }
        }
        lines.iter_mut().for_each(|line| line.points = sorted(std::mem::take(&mut line.points)));
        lines
    }

    /// What the devices allow: one line for each level.
    fn limits(&self, outcomes: &[&Outcome], x: &str, unit: &str) -> Vec<Line> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for outcome in outcomes {
            let limit = outcome.point.cluster.limit(unit);
            let x = outcome.point.params.get(x).and_then(Param::number);
            points.extend(x.zip(limit));
        }
        let mut levels: Vec<f64> = points.iter().map(|(_, limit)| *limit).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        let one_each = points.iter().all(|(x, y)| points.iter().all(|(a, b)| a != x || b == y));
        let line = |label: String, points: Vec<Datum>| Line { label, kind: Kind::Limit, points };
        if one_each && levels.len() > 1 {
            let all = points.iter().map(|&(x, y)| Datum::exact(x, y)).collect();
            return vec![line("limit of the devices".into(), sorted(all))];
        }
        let level = |level: &f64| {
            let on = points.iter().map(|(x, _)| Datum::exact(*x, *level)).collect();
            line(format!("limit of the devices: {}", crate::plot::number(*level)), sorted(on))
        };
        levels.iter().map(level).collect()
    }

    fn bars(&self, results: &Results, x: &str) -> Bars {
        let mut groups: Vec<Group> = Vec::new();
        let mut unit = String::new();
        let mut limits: Vec<Option<f64>> = Vec::new();
        for outcome in results.part(self.part) {
            let name = outcome.point.params.get(x).map(Param::to_string).unwrap_or_default();
            let bar = |figure: &&str| {
                let found = outcome.figure(figure)?;
                Some(Datum { x: 0.0, y: found.median, low: found.min, high: found.max })
            };
            let first = self.figures.iter().find_map(|name| outcome.figure(name));
            if let Some(first) = first {
                unit.clone_from(&first.unit);
                limits.push(outcome.point.cluster.limit(&unit));
                groups.push(Group { name, bars: self.figures.iter().map(bar).collect() });
            }
        }
        let series = self.figures.iter().map(|name| name.to_string()).collect();
        let y_label = format!("{}, {unit}", self.figures.join(" and "));
        let limit = limits.first().copied().flatten();
        let limit = limit.filter(|_| limits.iter().all(|other| *other == limit));
        Bars { title: self.title.into(), y_label, series, limit, groups }
    }

    fn series_of(&self, outcome: &Outcome) -> String {
        let params = outcome.point.params.iter();
        let label = describe(params.filter(|(name, _)| self.series.contains(&name.as_str())));
        if label.is_empty() { "weft".into() } else { label }
    }
}

/// By rising x, each once.
fn sorted(mut points: Vec<Datum>) -> Vec<Datum> {
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points.dedup_by(|a, b| a.x == b.x);
    points
}
