//! What is asked: one file per study.

mod beegfs;
mod build;
mod dne;
mod orangefs;
mod panfs;
mod sonexion;

use crate::chart::Chart;
use crate::point::Point;
use crate::results::Size;

/// A named study.
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// Above its report.
    pub title: &'static str,
    /// The report that it follows.
    pub source: &'static str,
    /// The same as the published figures name it.
    pub document: &'static str,
    /// What was asked.
    pub asked: &'static str,
    /// What is done to find out.
    pub done: &'static str,
    /// Its parts, in the order of the report.
    pub parts: fn() -> Vec<Part>,
    /// Its points, in the order in which they are measured.
    pub points: fn(Size) -> Vec<Point>,
    /// Its pictures.
    pub charts: fn() -> Vec<Chart>,
    /// What the report has and this version cannot do, and why.
    pub not_run: &'static [(&'static str, &'static str)],
}

/// A part of a study.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// By which points and charts name it.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// What it shows.
    pub text: &'static str,
}

/// Every study.
pub const ALL: &[Study] =
    &[panfs::STUDY, sonexion::STUDY, orangefs::STUDY, beegfs::STUDY, dne::STUDY];

/// The study with this name.
///
/// # Errors
/// A sentence that names those there are.
pub fn find(name: &str) -> Result<&'static Study, String> {
    ALL.iter().find(|study| study.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|study| study.name).collect();
        format!("no study {name:?}; there are {} and all", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Published;

    #[test]
    fn every_point_has_a_place_in_the_report() {
        for study in ALL {
            let parts: Vec<&str> = (study.parts)().iter().map(|part| part.name).collect();
            for size in [Size::Quick, Size::Full] {
                let points = (study.points)(size);
                assert!(!points.is_empty());
                for (number, point) in points.iter().enumerate() {
                    assert!(parts.contains(&point.part.as_str()), "{}: {}", study.name, point.part);
                    let again = points.iter().skip(number + 1).find(|other| *other == point);
                    assert!(again.is_none(), "{} measures twice: {point:?}", study.name);
                }
            }
            for chart in (study.charts)() {
                assert!(parts.contains(&chart.part), "{}: {}", study.name, chart.part);
            }
            assert!(!study.not_run.is_empty());
            assert!(study.not_run.iter().all(|(what, why)| !what.is_empty() && !why.is_empty()));
        }
        assert!(find("panfs").is_ok());
        let unknown = find("lustre").err().unwrap();
        assert!(unknown.contains("panfs") && unknown.contains("lustre"), "{unknown}");
    }

    #[test]
    fn every_study_has_published_figures() {
        let published = Published::load().unwrap();
        for study in ALL {
            assert!(published.of(study.document).count() > 5, "{}", study.name);
            for chart in (study.charts)() {
                for (figure, beside) in &chart.beside {
                    let picked = published.of(beside.document).filter_map(beside.pick);
                    assert!(picked.count() > 0, "{}: {figure} {}", study.name, beside.label);
                }
            }
        }
    }
}
