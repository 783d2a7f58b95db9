//! Files of a report.

use crate::output::put;
use anyhow::{Context, Error};
use std::path::Path;
use weft_study::report;
use weft_study::results::{Results, write_atomically};
use weft_study::studies::Study;

/// Writes the report and its pictures beside the results, and says where.
///
/// # Errors
/// Those of the disk.
pub fn write(study: &Study, results: &Results, file: &Path) -> anyhow::Result<()> {
    let report = report::write(study, results).map_err(Error::msg)?;
    let html = file.with_extension("html");
    write_atomically(&html, report.html.as_bytes()).map_err(Error::msg)?;
    let pictures = file.with_extension("plots");
    std::fs::create_dir_all(&pictures)
        .with_context(|| format!("cannot make dir={}", pictures.display()))?;
    for picture in &report.pictures {
        let path = pictures.join(format!("{}.svg", picture.name));
        write_atomically(&path, picture.svg.as_bytes()).map_err(Error::msg)?;
    }
    put(&format!(
        "{}: results {}, report {}, {} pictures in {}\n",
        study.name,
        file.display(),
        html.display(),
        report.pictures.len(),
        pictures.display()
    ))?;
    Ok(())
}
