//! How series look.

use plotters::style::RGBColor;

/// Black or grey of things that were not measured here.
pub const GREY: RGBColor = RGBColor(110, 110, 110);

/// Colours that colour-blind people tell apart (Okabe and Ito, 2008), without the yellow, which is
/// hard to see on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// Pixels drawn and left out.
const DASHES: [Option<(i32, i32)>; 5] =
    [None, Some((9, 4)), Some((3, 3)), Some((14, 5)), Some((6, 8))];

/// A mark at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Marker {
    /// Filled circle.
    Disc,
    /// Filled square.
    Square,
    /// Filled triangle.
    Triangle,
    /// Open diamond.
    Diamond,
    /// Open circle.
    Ring,
    /// Two strokes.
    Cross,
    /// Open square.
    Frame,
    /// Two strokes, upright.
    Plus,
}

// One more than colours: the eighth series has the first colour and a marker of its own.
const MARKERS: [Marker; 8] = [
    Marker::Disc,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::Ring,
    Marker::Cross,
    Marker::Frame,
    Marker::Plus,
];

/// How a line looks.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Colour of line and marker.
    pub colour: RGBColor,
    /// Pixels drawn and left out; none for a solid line.
    pub dash: Option<(i32, i32)>,
    /// Mark at each point.
    pub marker: Option<Marker>,
    /// Pixels.
    pub width: u32,
}

impl Style {
    /// Of the measured series with this number.
    pub const fn measured(number: usize) -> Style {
        Style {
            colour: COLOURS[number % COLOURS.len()],
            dash: DASHES[number % DASHES.len()],
            marker: Some(MARKERS[number % MARKERS.len()]),
            width: 2,
        }
    }

    /// Of the published series with this number.
    pub const fn published(number: usize) -> Style {
        let open = [Marker::Frame, Marker::Ring, Marker::Diamond, Marker::Cross];
        Style {
            colour: GREY,
            dash: Some((2, 4)),
            marker: Some(open[number % open.len()]),
            width: 1,
        }
    }

    /// Of what would be if everything grew with the number of parts.
    pub const IDEAL: Style = Style { colour: GREY, dash: Some((10, 5)), marker: None, width: 1 };

    /// Of what the devices allow.
    pub const LIMIT: Style =
        Style { colour: RGBColor(0, 0, 0), dash: None, marker: None, width: 1 };
}

/// Fill of the bars of the series with this number: from dark to light.
pub const fn shade(number: usize) -> RGBColor {
    [RGBColor(0, 114, 178), RGBColor(230, 159, 0), RGBColor(235, 235, 235), RGBColor(0, 90, 70)]
        [number % 4]
}

/// Whether bars of the series with this number are hatched.
pub const fn hatched(number: usize) -> bool {
    number % 2 == 1
}
