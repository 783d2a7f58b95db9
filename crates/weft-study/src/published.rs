//! What the five reports have printed, with its conditions.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// All figures of the reports.
#[derive(Deserialize)]
pub struct Published {
    /// Figures.
    figures: Vec<PublishedFigure>,
    /// Quotients of figures.
    ratios: Vec<PublishedRatio>,
}

/// A figure that a report prints.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct PublishedFigure {
    /// By which it is found again.
    pub id: String,
    /// How it came about: `measured`, `vendor`, `claim` and so on.
    pub kind: String,
    /// The system.
    pub system: String,
    /// How it was set up.
    pub config: String,
    /// What was run.
    pub benchmark: String,
    /// Parameters of the run.
    pub parameters: BTreeMap<String, Value>,
    /// What was measured.
    pub metric: String,
    /// What the report prints.
    pub value: Value,
    /// Its unit.
    pub unit: String,
    /// How exactly: `exact`, `about`, `just under`.
    pub qualifier: String,
    /// Where it stands.
    pub source: Source,
}

/// A place in a report.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Source {
    /// The report.
    pub document: String,
    /// Section, table or figure.
    pub section: String,
}

/// A quotient of published figures.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct PublishedRatio {
    /// What of what.
    pub name: String,
    /// The quotient.
    pub ratio: f64,
    /// What the report says of it.
    pub stated_in_text: Option<String>,
    /// The report.
    source: String,
}

impl PublishedFigure {
    /// As a number in MiB/s or whatever unit it is in; none for words.
    pub fn number(&self) -> Option<f64> {
        self.value.as_f64()
    }

    /// Its parameters as text.
    pub fn conditions(&self) -> String {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
        let parts = self.parameters.iter().map(|(name, value)| format!("{name} {}", text(value)));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// The value as text.
    pub fn text(&self) -> String {
        match (&self.value, self.value.as_f64()) {
            (_, Some(number)) => crate::plot::number(number),
            (Value::String(text), _) => text.clone(),
            (other, _) => other.to_string(),
        }
    }
}

impl Published {
    /// Those that Weft knows.
    ///
    /// # Errors
    /// None that a test would not have found.
    pub fn load() -> Result<Published, String> {
        serde_json::from_str(include_str!("../data/published.json"))
            .map_err(|error| format!("published figures: {error}"))
    }

    /// The figures of a report.
    pub fn of<'a>(&'a self, document: &'a str) -> impl Iterator<Item = &'a PublishedFigure> {
        self.figures.iter().filter(move |figure| figure.source.document == document)
    }

    /// The quotients of a report.
    pub fn ratios<'a>(&'a self, document: &'a str) -> impl Iterator<Item = &'a PublishedRatio> {
        self.ratios.iter().filter(move |ratio| ratio.source == document)
    }
}
