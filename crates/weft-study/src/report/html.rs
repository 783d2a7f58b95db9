//! Pieces of HTML.

/// Looks of every report. Prints well, and needs nothing from elsewhere.
const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;color:#111;background:#fff;max-width:62em;margin:2em auto;padding:0 1em}
h1{font-size:1.7em;line-height:1.2}h2{font-size:1.25em;margin-top:2em;border-bottom:1px solid #bbb}
table{border-collapse:collapse;margin:1em 0;font-size:13px}caption{text-align:left;font-weight:600;padding:.3em 0}
th,td{border-bottom:1px solid #ddd;padding:.2em .7em;text-align:left;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
figure{margin:1em 0}figure svg{max-width:100%;height:auto;border:1px solid #eee}
pre{background:#f5f5f5;padding:.7em;overflow-x:auto;font-size:12px}
.published{background:#f4f4f4;border-left:4px solid #999;padding:.2em 1em}
.warn{border-left:4px solid #d55e00;padding:.2em 1em}summary{cursor:pointer}";

/// A text as it is.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// A whole file.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n\
         <style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>{0}</h1>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

/// A table; what looks like a number stands to the right.
pub struct Table {
    out: String,
}

impl Table {
    /// With a caption and names of columns.
    pub fn new(caption: &str, columns: &[String]) -> Table {
        let mut table = Table { out: String::from("<table>\n") };
        if !caption.is_empty() {
            table.out += &format!("<caption>{}</caption>\n", escape(caption));
        }
        table.cells("th", columns);
        table
    }

    /// Adds a row.
    pub fn row(&mut self, cells: &[String]) {
        self.cells("td", cells);
    }

    /// The table.
    pub fn end(self) -> String {
        self.out + "</table>\n"
    }

    fn cells(&mut self, tag: &str, cells: &[String]) {
        self.out += "<tr>";
        for cell in cells {
            let word = cell.replace(" to ", " ");
            let numeric = cell.starts_with(|c: char| c.is_ascii_digit() || c == '-')
                && !word.contains(char::is_alphabetic);
            let class = if numeric { " class=\"n\"" } else { "" };
            self.out += &format!("<{tag}{class}>{}</{tag}>", escape(cell));
        }
        self.out += "</tr>\n";
    }
}
