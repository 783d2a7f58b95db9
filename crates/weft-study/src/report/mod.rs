//! One self-contained HTML file from the results alone: pictures inside, no scripts, nothing fetched.

mod html;
mod page;
mod published;
mod summary;
mod tables;

pub use html::{Table, document, escape};

use crate::chart::Picture;
use crate::published::Published;
use crate::results::Results;
use crate::studies::Study;

/// A report and its pictures.
pub struct Report {
    /// The HTML file.
    pub html: String,
    /// Every picture, also for itself.
    pub pictures: Vec<Picture>,
}

/// Writes the report of a study.
///
/// # Errors
/// Those of the plotting library, as text.
pub fn write(study: &Study, results: &Results) -> Result<Report, String> {
    let published = Published::load()?;
    let mut body = page::head(study, results);
    body += &summary::section(study, results);
    let mut pictures = Vec::new();
    for part in (study.parts)() {
        body += &format!("<h2>{}</h2>\n<p>{}</p>\n", escape(part.title), escape(part.text));
        for chart in (study.charts)().iter().filter(|chart| chart.part == part.name) {
            for picture in chart.draw(results, &published)? {
                body += &format!("<figure>{}</figure>\n", picture.svg);
                pictures.push(picture);
            }
        }
        body += &tables::part(results, part.name);
    }
    body += &page::not_run(study, results);
    body += &published::section(study, &published);
    body += &page::commands(results);
    Ok(Report { html: html::document(study.title, &body), pictures })
}
