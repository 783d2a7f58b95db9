//! Pictures as SVG: lines over a number, bars over names.
//!
//! Series are told apart by colour, dash and marker (lines) or by shade and hatching (bars), so that
//! a picture can be read in black and white and by colour-blind people. What was not measured here is
//! grey: ideal scaling, the limit of the devices, published figures.

mod axis;
mod bars;
mod lines;
mod pen;
mod style;

pub use axis::number;
pub use bars::{Bars, Group};
pub use lines::{Kind, Line, Lines};
use pen::Pen;

/// A figure with the range in which its repetitions lie.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Datum {
    /// Where on the x axis.
    pub x: f64,
    /// The figure.
    pub y: f64,
    /// The smallest of the repetitions.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Datum {
    /// A figure without a range.
    pub const fn exact(x: f64, y: f64) -> Datum {
        Datum { x, y, low: y, high: y }
    }
}

/// Width of a picture, pixels.
const WIDTH: u32 = 760;
/// Height of a picture, pixels.
const HEIGHT: u32 = 360;
/// Width of the column at the right in which the series are named.
const LEGEND: i32 = 230;

/// What the plotting library says when it cannot draw: nothing that a caller could mend.
type Failure = Box<dyn std::error::Error>;

/// A picture with a title and what `draw` adds to it.
fn picture(
    title: &str,
    draw: impl FnOnce(&mut Pen<'_>) -> Result<(), Failure>,
) -> Result<String, String> {
    let mut out = String::new();
    let drawn = Pen::new(&mut out, title).and_then(|mut pen| {
        draw(&mut pen)?;
        pen.finish()
    });
    drawn.map_err(|error| error.to_string())?;
    Ok(out)
}
