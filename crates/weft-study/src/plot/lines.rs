//! Lines over a number.

use super::axis;
use super::pen::{FRAME, Height, Pen, Pixel};
use super::style::Style;
use super::{Datum, Failure, picture};
use plotters::style::text_anchor::HPos;

/// What a line is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Measured in this run.
    Measured,
    /// What would be if the first figure grew with x.
    Ideal,
    /// What the devices allow.
    Limit,
    /// Printed in a report, from another machine.
    Published,
}

/// A series.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub label: String,
    /// What it is.
    pub kind: Kind,
    /// By rising x.
    pub points: Vec<Datum>,
}

/// A picture of lines.
#[derive(Clone, PartialEq, Debug)]
pub struct Lines {
    /// Above it.
    pub title: String,
    /// Name of the x axis, with its unit.
    pub x_label: String,
    /// Name of the y axis, with its unit.
    pub y_label: String,
    /// Doubling x is one step, as for numbers of processes.
    pub doubling: bool,
    /// The series, in the order of the legend.
    pub lines: Vec<Line>,
}

impl Lines {
    /// The picture.
    ///
    /// # Errors
    /// Those of the plotting library, as text.
    pub fn svg(&self) -> Result<String, String> {
        picture(&self.title, |pen| self.draw(pen))
    }

    fn draw(&self, pen: &mut Pen<'_>) -> Result<(), Failure> {
        let scale = self.scale();
        pen.frame(&scale.height, &self.y_label)?;
        for &x in &scale.xs {
            pen.rule((scale.x(x), FRAME.3), (scale.x(x), FRAME.3 + 4), super::style::GREY)?;
            pen.text(&axis::number(x), (scale.x(x), FRAME.3 + 8), 12, HPos::Center)?;
        }
        let middle = i32::midpoint(FRAME.0, FRAME.2);
        pen.text(&self.x_label, (middle, FRAME.3 + 30), 13, HPos::Center)?;
        for (line, style) in self.lines.iter().zip(self.styles()) {
            draw_line(pen, line, &style, &scale)?;
            pen.name(&line.label, |pen, from, to| {
                pen.path(&[from, to], &style)?;
                pen.mark((i32::midpoint(from.0, to.0), from.1), &style)
            })?;
        }
        Ok(())
    }

    fn styles(&self) -> Vec<Style> {
        let (mut measured, mut published) = (0.., 0..);
        let mut next = |kind| match kind {
            Kind::Measured => Style::measured(measured.next().unwrap_or(0)),
            Kind::Published => Style::published(published.next().unwrap_or(0)),
            Kind::Ideal => Style::IDEAL,
            Kind::Limit => Style::LIMIT,
        };
        self.lines.iter().map(|line| next(line.kind)).collect()
    }

    fn scale(&self) -> Scale {
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let mut xs: Vec<f64> = all().map(|datum| datum.x).filter(|x| x.is_finite()).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let top = all().map(|datum| datum.high.max(datum.y)).filter(|y| y.is_finite());
        Scale { height: Height::up_to(top.fold(0.0, f64::max)), xs, doubling: self.doubling }
    }
}

fn draw_line(pen: &Pen<'_>, line: &Line, style: &Style, scale: &Scale) -> Result<(), Failure> {
    let points = line.points.iter().filter(|datum| datum.x.is_finite() && datum.y.is_finite());
    let pixels: Vec<Pixel> = points.clone().map(|d| (scale.x(d.x), scale.y(d.y))).collect();
    pen.path(&pixels, style)?;
    for (datum, &pixel) in points.zip(&pixels) {
        pen.whisker(pixel.0, scale.y(datum.low), scale.y(datum.high), style.colour)?;
        pen.mark(pixel, style)?;
    }
    Ok(())
}

/// From figures to pixels.
struct Scale {
    height: Height,
    xs: Vec<f64>,
    doubling: bool,
}

impl Scale {
    fn x(&self, x: f64) -> i32 {
        let place = |x: f64| if self.doubling { x.max(f64::MIN_POSITIVE).log2() } else { x };
        let (Some(&first), Some(&last)) = (self.xs.first(), self.xs.last()) else { return FRAME.0 };
        let span = place(last) - place(first);
        let part = if span > 0.0 { (place(x) - place(first)) / span } else { 0.5 };
        // Markers at the ends stay inside.
        FRAME.0 + 14 + (part * f64::from(FRAME.2 - FRAME.0 - 28)).round() as i32
    }

    fn y(&self, y: f64) -> i32 {
        self.height.pixel(y)
    }
}
