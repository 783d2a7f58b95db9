//! Results on standard output: as a table for people, as JSON for programs.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use std::io::{self, Write};

/// Form of results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Form {
    /// Aligned columns.
    #[default]
    Table,
    /// One JSON value.
    Json,
}

/// Columns of text; numbers stand to the right.
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(header: &[&'static str]) -> Table {
        Table { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with as many cells as the header has.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push(cells);
    }

    /// The table's lines.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let header: Vec<String> = self.header.iter().map(|name| name.to_string()).collect();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(self.width(column) - cell.chars().count());
                let numeric = self.is_numeric(column);
                line.push_str(&if numeric { pad + cell } else { cell.clone() + &pad });
                line.push_str("  ");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].chars().count());
        cells.chain([self.header[column].chars().count()]).max().unwrap_or(0)
    }

    fn is_numeric(&self, column: usize) -> bool {
        !self.rows.is_empty()
            && self.rows.iter().all(|row| {
                row[column].starts_with(|c: char| c.is_ascii_digit() || c == '-')
                    && !row[column].contains([':', '/', ','])
            })
    }
}

/// Prints a result: `table` for people, `value` as JSON.
///
/// # Errors
/// Those of standard output.
pub fn print(form: Form, table: impl FnOnce() -> String, value: &impl Serialize) -> io::Result<()> {
    match form {
        Form::Table => put(&table()),
        Form::Json => put(&(serde_json::to_string_pretty(value)? + "\n")),
    }
}

/// Prints text as it is.
///
/// # Errors
/// Those of standard output.
pub fn put(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// As YAML; strings are written as in JSON, which YAML understands.
///
/// # Errors
/// When the value has no form as JSON.
pub fn yaml(value: &impl Serialize) -> serde_json::Result<String> {
    let mut out = String::new();
    write_yaml(&serde_json::to_value(value)?, 0, &mut out);
    Ok(out)
}

/// Writes a value whose first line continues the current one when it is plain, and which otherwise
/// stands below, `depth` levels deep.
fn write_yaml(value: &Value, depth: usize, out: &mut String) {
    let children: Vec<(String, &Value)> = match value {
        Value::Array(items) => items.iter().map(|item| ("-".to_string(), item)).collect(),
        Value::Object(fields) => fields.iter().map(|(k, v)| (format!("{k}:"), v)).collect(),
        _ => Vec::new(),
    };
    if children.is_empty() {
        return out.push_str(&format!(" {value}\n"));
    }
    if depth > 0 {
        out.push('\n');
    }
    for (label, child) in children {
        out.push_str(&"  ".repeat(depth));
        out.push_str(&label);
        write_yaml(child, depth + 1, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_shows_structure_by_indentation() {
        let value = serde_json::json!([{ "name": "a:b", "list": [1, 2], "none": [] }]);
        let wanted = "-\n  list:\n    - 1\n    - 2\n  name: \"a:b\"\n  none: []\n";
        assert_eq!(yaml(&value).unwrap(), wanted);
    }

    #[test]
    fn columns_line_up_and_numbers_stand_right() {
        let mut table = Table::new(&["TARGET", "SIZE"]);
        table.row(vec!["OST0000".into(), "1.5G".into()]);
        table.row(vec!["MDT0".into(), "10G".into()]);
        assert_eq!(table.text(), "TARGET   SIZE\nOST0000  1.5G\nMDT0      10G\n");
    }
}
