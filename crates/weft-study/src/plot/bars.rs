//! Bars over names.

use super::axis;
use super::pen::{FRAME, Height, Pen, wrap};
use super::style::{Style, hatched, shade};
use super::{Datum, Failure, picture};
use plotters::style::BLACK;
use plotters::style::text_anchor::HPos;

/// The bars that stand together.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    /// Name below them.
    pub name: String,
    /// One per series; none where it was not measured.
    pub bars: Vec<Option<Datum>>,
}

/// A picture of bars.
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// Above it.
    pub title: String,
    /// Name of the y axis, with its unit.
    pub y_label: String,
    /// Names of the series.
    pub series: Vec<String>,
    /// What the devices allow, where it is the same for all.
    pub limit: Option<f64>,
    /// The bars.
    pub groups: Vec<Group>,
}

impl Bars {
    /// The picture.
    ///
    /// # Errors
    /// Those of the plotting library, as text.
    pub fn svg(&self) -> Result<String, String> {
        picture(&self.title, |pen| self.draw(pen))
    }

    fn draw(&self, pen: &mut Pen<'_>) -> Result<(), Failure> {
        let all = self.groups.iter().flat_map(|group| group.bars.iter().flatten());
        let top = all.map(|datum| datum.high.max(datum.y)).filter(|y| y.is_finite());
        // Room for the figure above the highest bar.
        let height = Height::up_to(top.fold(self.limit.unwrap_or(0.0), f64::max) * 1.08);
        pen.frame(&height, &self.y_label)?;
        let slot = (FRAME.2 - FRAME.0) / self.groups.len().max(1) as i32;
        for (number, group) in self.groups.iter().enumerate() {
            self.draw_group(pen, group, FRAME.0 + slot * number as i32, slot, &height)?;
        }
        for (number, name) in self.series.iter().enumerate() {
            pen.name(name, |pen, from, to| {
                pen.bar((from.0, from.1 - 6), (to.0, to.1 + 7), shade(number), hatched(number))
            })?;
        }
        if let Some(limit) = self.limit {
            let label = format!("limit of the devices: {}", axis::number(limit));
            let y = height.pixel(limit);
            pen.path(&[(FRAME.0, y), (FRAME.2, y)], &Style::LIMIT)?;
            pen.name(&label, |pen, from, to| pen.path(&[from, to], &Style::LIMIT))?;
        }
        Ok(())
    }

    fn draw_group(
        &self,
        pen: &Pen<'_>,
        group: &Group,
        left: i32,
        slot: i32,
        height: &Height,
    ) -> Result<(), Failure> {
        let width = (slot * 4 / 5 / self.series.len().max(1) as i32).clamp(4, 60);
        let y = |y| height.pixel(y);
        let start = left + (slot - width * self.series.len() as i32) / 2;
        for (number, datum) in group.bars.iter().enumerate() {
            let Some(datum) = datum.filter(|datum| datum.y.is_finite()) else { continue };
            let from = start + width * number as i32;
            pen.bar(
                (from, y(datum.y)),
                (from + width - 2, FRAME.3),
                shade(number),
                hatched(number),
            )?;
            let middle = from + width / 2 - 1;
            pen.whisker(middle, y(datum.low), y(datum.high), BLACK)?;
            pen.text(&axis::short(datum.y), (middle, y(datum.high) - 14), 10, HPos::Center)?;
        }
        let fits = (slot / 6).max(4) as usize;
        for (row, line) in wrap(&group.name, fits).iter().take(4).enumerate() {
            pen.text(line, (left + slot / 2, FRAME.3 + 6 + 12 * row as i32), 11, HPos::Center)?;
        }
        Ok(())
    }
}
