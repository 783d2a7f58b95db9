//! Drawing by pixels, the same in the picture and in its legend.

use super::style::{GREY, Marker, Style};
use super::{Failure, HEIGHT, LEGEND, WIDTH, axis};
use plotters::coord::Shift;
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{DrawingArea, IntoDrawingArea, IntoFont, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{BLACK, Color, RGBColor, ShapeStyle, WHITE};

/// The rectangle in which figures are drawn: left, top, right, bottom.
pub const FRAME: (i32, i32, i32, i32) = (78, 36, WIDTH as i32 - LEGEND, HEIGHT as i32 - 58);
/// Half the size of a marker.
const MARK: i32 = 4;

/// A pixel.
pub type Pixel = (i32, i32);

/// How high figures stand in the frame.
pub struct Height {
    ticks: Vec<f64>,
}

impl Height {
    /// From zero to a round number that `max` fits below.
    pub fn up_to(max: f64) -> Height {
        Height { ticks: axis::ticks(max) }
    }

    /// The y of a figure; at the edge for one outside.
    pub fn pixel(&self, y: f64) -> i32 {
        let top = self.ticks.last().copied().unwrap_or(1.0);
        FRAME.3 - (y.clamp(0.0, top) / top * f64::from(FRAME.3 - FRAME.1)).round() as i32
    }
}

/// Draws on one picture.
pub struct Pen<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    /// Series named so far.
    named: i32,
}

impl<'a> Pen<'a> {
    /// On an empty picture with a title.
    pub fn new(out: &'a mut String, title: &str) -> Result<Pen<'a>, Failure> {
        let area = SVGBackend::with_string(out, (WIDTH, HEIGHT)).into_drawing_area();
        area.fill(&WHITE)?;
        let pen = Pen { area, named: 0 };
        pen.text(title, (FRAME.0, 10), 15, HPos::Left)?;
        Ok(pen)
    }

    /// Ends the picture.
    pub fn finish(self) -> Result<(), Failure> {
        Ok(self.area.present()?)
    }

    /// A word, hung at its top.
    pub fn text(&self, text: &str, at: Pixel, size: u32, side: HPos) -> Result<(), Failure> {
        let font = ("sans-serif", size).into_font().color(&BLACK);
        Ok(self.area.draw(&Text::new(text.to_string(), at, font.pos(Pos::new(side, VPos::Top))))?)
    }

    /// A word from below to above, centred.
    pub fn upright(&self, text: &str, at: Pixel) -> Result<(), Failure> {
        let turned =
            ("sans-serif", 13).into_font().transform(plotters::style::FontTransform::Rotate270);
        let font = turned.color(&BLACK).pos(Pos::new(HPos::Center, VPos::Top));
        Ok(self.area.draw(&Text::new(text.to_string(), at, font))?)
    }

    /// A line through points.
    pub fn path(&self, points: &[Pixel], style: &Style) -> Result<(), Failure> {
        let stroke = style.colour.stroke_width(style.width);
        match style.dash {
            _ if points.len() < 2 => Ok(()),
            None => Ok(self.area.draw(&PathElement::new(points.to_vec(), stroke))?),
            Some((drawn, gap)) => {
                let points = points.to_vec();
                Ok(self.area.draw(&DashedPathElement::new(points, drawn, gap, stroke))?)
            }
        }
    }

    /// A thin straight line.
    pub fn rule(&self, from: Pixel, to: Pixel, colour: RGBColor) -> Result<(), Failure> {
        Ok(self.area.draw(&PathElement::new(vec![from, to], colour.stroke_width(1)))?)
    }

    /// A filled rectangle with an outline.
    pub fn bar(
        &self,
        from: Pixel,
        to: Pixel,
        fill: RGBColor,
        hatched: bool,
    ) -> Result<(), Failure> {
        self.area.draw(&Rectangle::new([from, to], fill.filled()))?;
        if hatched {
            let (top, bottom) = (from.1.min(to.1), from.1.max(to.1));
            for y in (top..bottom).step_by(6).skip(1) {
                self.rule((from.0, y), (to.0, y), BLACK)?;
            }
        }
        Ok(self.area.draw(&Rectangle::new([from, to], BLACK.stroke_width(1)))?)
    }

    /// The mark of a series at a point.
    pub fn mark(&self, (x, y): Pixel, style: &Style) -> Result<(), Failure> {
        let Some(marker) = style.marker else { return Ok(()) };
        let solid: ShapeStyle = style.colour.filled();
        let open = style.colour.stroke_width(2);
        let square = [(x - MARK, y - MARK), (x + MARK, y + MARK)];
        let around = |points: &[Pixel]| points.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        match marker {
            Marker::Disc => self.area.draw(&Circle::new((x, y), MARK, solid))?,
            Marker::Ring => self.area.draw(&Circle::new((x, y), MARK, open))?,
            Marker::Square => self.area.draw(&Rectangle::new(square, solid))?,
            Marker::Frame => self.area.draw(&Rectangle::new(square, open))?,
            Marker::Triangle => {
                let corners: Vec<Pixel> = around(&[(0, -5), (5, 4), (-5, 4)]);
                self.area.draw(&Polygon::new(corners, solid))?;
            }
            Marker::Diamond => {
                let corners: Vec<Pixel> = around(&[(0, -6), (6, 0), (0, 6), (-6, 0), (0, -6)]);
                self.area.draw(&PathElement::new(corners, open))?;
            }
            Marker::Cross | Marker::Plus => {
                let strokes = match marker {
                    Marker::Cross => [[(-4, -4), (4, 4)], [(-4, 4), (4, -4)]],
                    _ => [[(-6, 0), (6, 0)], [(0, -6), (0, 6)]],
                };
                for stroke in strokes {
                    let stroke: Vec<Pixel> = around(&stroke);
                    self.area.draw(&PathElement::new(stroke, open))?;
                }
            }
        }
        Ok(())
    }

    /// The range of a figure's repetitions.
    pub fn whisker(&self, x: i32, low: i32, high: i32, colour: RGBColor) -> Result<(), Failure> {
        if (low - high).abs() < 2 {
            return Ok(());
        }
        // On a dark bar it would not be seen without something light around it.
        let halo = WHITE.stroke_width(5);
        self.area.draw(&PathElement::new(vec![(x, low), (x, high)], halo))?;
        self.rule((x, low), (x, high), colour)?;
        [low, high].iter().try_for_each(|&y| self.rule((x - 3, y), (x + 3, y), colour))
    }

    /// Names a series in the legend; `sample` draws its looks between two points.
    pub fn name(
        &mut self,
        label: &str,
        sample: impl Fn(&Pen<'a>, Pixel, Pixel) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let left = FRAME.2 + 14;
        let top = FRAME.1 + self.named;
        sample(self, (left, top + 7), (left + 30, top + 7))?;
        for line in wrap(label, 27) {
            self.text(&line, (left + 38, FRAME.1 + self.named), 12, HPos::Left)?;
            self.named += 15;
        }
        self.named += 5;
        Ok(())
    }

    /// The frame with the y axis: ticks, grid, name.
    pub fn frame(&self, height: &Height, label: &str) -> Result<(), Failure> {
        let Height { ticks } = height;
        for (&tick, text) in ticks.iter().zip(axis::labels(ticks)) {
            let y = height.pixel(tick);
            self.rule((FRAME.0, y), (FRAME.2, y), RGBColor(222, 222, 222))?;
            self.text(&text, (FRAME.0 - 6, y - 6), 12, HPos::Right)?;
        }
        self.rule((FRAME.0, FRAME.3), (FRAME.2, FRAME.3), GREY)?;
        self.rule((FRAME.0, FRAME.1), (FRAME.0, FRAME.3), GREY)?;
        self.upright(label, (6, i32::midpoint(FRAME.1, FRAME.3)))
    }
}

/// Breaks a text into lines of about so many characters, between words.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_names_are_broken_between_words() {
        assert_eq!(
            super::wrap("published: PanFS AS12 write", 14),
            ["published:", "PanFS AS12", "write"]
        );
        assert!(super::wrap("", 5).is_empty());
    }
}
