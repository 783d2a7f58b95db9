//! `weft getstripe`: where files live.

use crate::cli::Global;
use crate::outcome::Outcome;
use crate::output::{self, Form, Table};
use crate::xattr;
use anyhow::Context;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use weft_model::layout::{Component, ComponentSpec, EOF, LayoutSpec, Pattern};
use weft_model::units::human_size;
use weft_model::{Attr, FileType, Layout};

/// Show the layout of files, and what directories hand down. With one of -c -S -i -p -L only that
/// value is printed, that of the last component.
#[derive(Args)]
pub struct GetStripe {
    /// Number of OSTs.
    #[arg(short = 'c', long, group = "field")]
    stripe_count: bool,
    /// Bytes per stripe unit.
    #[arg(short = 'S', long, group = "field")]
    stripe_size: bool,
    /// Index of the first OST.
    #[arg(short = 'i', long, group = "field")]
    stripe_index: bool,
    /// Pool (directories).
    #[arg(short = 'p', long, group = "field")]
    pool: bool,
    /// Pattern.
    #[arg(short = 'L', long, group = "field")]
    layout: bool,
    /// Number of components.
    #[arg(long, group = "field")]
    component_count: bool,
    /// Directories themselves, not what is in them.
    #[arg(short = 'd', long)]
    directory: bool,
    /// Everything below directories.
    #[arg(short = 'r', long)]
    recursive: bool,
    /// As YAML.
    #[arg(short = 'y', long)]
    yaml: bool,
    /// As JSON; the same as --output json.
    #[arg(short = 'j', long)]
    json: bool,
    /// Files and directories.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
}

/// What the mount tells of an inode.
#[derive(Serialize, Deserialize)]
struct Found {
    #[serde(default)]
    path: PathBuf,
    fid: String,
    attr: Attr,
    /// The MDT has the bytes.
    #[serde(default)]
    inline: bool,
    layout: Option<Layout>,
    spec: Option<LayoutSpec>,
}

impl GetStripe {
    /// Shows them all.
    ///
    /// # Errors
    /// The path's when there is only one; else each is named.
    pub fn run(self, global: Global) -> anyhow::Result<Outcome> {
        let mut found = Vec::new();
        let outcome =
            super::for_each_path(&self.paths, |path| self.collect(path, true, &mut found))?;
        if self.json || global.output == Form::Json {
            output::print(Form::Json, String::new, &found)?;
        } else if self.yaml {
            output::put(&output::yaml(&found)?)?;
        } else {
            let shown: Vec<String> = found.iter().map(|found| self.show(found)).collect();
            output::put(&shown.concat())?;
        }
        Ok(outcome)
    }

    fn collect(&self, path: &Path, is_top: bool, all: &mut Vec<Found>) -> anyhow::Result<()> {
        let found: Option<Found> = xattr::get_json(path, "weft.stat")?;
        let mut found = found.with_context(|| format!("{}: has no layout", path.display()))?;
        found.path = path.to_path_buf();
        let kind = found.attr.kind;
        if is_top || matches!(kind, FileType::Regular | FileType::Directory) {
            all.push(found);
        }
        if kind == FileType::Directory && !self.directory && (is_top || self.recursive) {
            let mut below: Vec<PathBuf> =
                std::fs::read_dir(path)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
            below.sort();
            below.iter().try_for_each(|path| self.collect(path, false, all))?;
        }
        Ok(())
    }

    fn show(&self, found: &Found) -> String {
        let one_field = [
            self.stripe_count,
            self.stripe_size,
            self.stripe_index,
            self.pool,
            self.layout,
            self.component_count,
        ];
        if one_field.contains(&true) {
            return format!("{}\n", self.field(found));
        }
        let path = found.path.display();
        match (&found.layout, &found.spec) {
            (Some(layout), _) => {
                let (size, fid) = (human_size(found.attr.size), &found.fid);
                let place = if found.inline { "  inline on its MDT until it grows" } else { "" };
                format!("{path}  fid {fid}  size {size}{place}\n{}", layout_table(layout))
            }
            (None, Some(spec)) => format!("{path}  new files get\n{}", spec_table(spec)),
            (None, None) if found.attr.kind == FileType::Directory => {
                format!("{path}  new files get the default\n")
            }
            (None, None) => format!("{path}  has no layout\n"),
        }
    }

    /// The field asked for, bare, of the last component.
    fn field(&self, found: &Found) -> String {
        let file = found.layout.as_ref().and_then(|layout| layout.components.last());
        let dir = found.spec.as_ref().and_then(|spec| spec.components.last()).cloned();
        let dir = dir.unwrap_or_default();
        if self.stripe_count {
            return file.map_or(dir.stripe_count.to_string(), |c| c.targets.len().to_string());
        }
        if self.stripe_size {
            return file.map_or(dir.stripe_unit, |c| c.geometry.stripe_unit).to_string();
        }
        if self.stripe_index {
            let first = file.map_or(dir.start_index, |c| c.targets.first().copied());
            return first.map_or("-1".into(), |index| index.to_string());
        }
        if self.pool {
            return dir.pool;
        }
        if self.layout && found.inline {
            return "inline".into();
        }
        if self.layout {
            return pattern(file.map_or(dir.pattern, |c| c.pattern));
        }
        let files = found.layout.as_ref().map(|layout| layout.components.len());
        let count = files.or(found.spec.as_ref().map(|spec| spec.components.len()));
        count.unwrap_or_default().to_string()
    }
}

fn layout_table(layout: &Layout) -> String {
    let mut table =
        Table::new(&["  COMP", "START", "END", "PATTERN", "COUNT", "SIZE", "GROUPS", "OSTS"]);
    for Component { id, start, end: to, pattern: kind, geometry, targets } in &layout.components {
        let osts: Vec<String> = targets.iter().map(u16::to_string).collect();
        table.row(vec![
            format!("  {id}"),
            human_size(*start),
            end(*to),
            pattern(*kind),
            targets.len().to_string(),
            human_size(geometry.stripe_unit),
            groups(geometry.group_width, geometry.group_depth),
            osts.join(","),
        ]);
    }
    table.text()
}

fn spec_table(spec: &LayoutSpec) -> String {
    let mut table =
        Table::new(&["  COMP", "END", "PATTERN", "COUNT", "SIZE", "GROUPS", "POOL", "OSTS"]);
    for (id, component) in spec.components.iter().enumerate() {
        let ComponentSpec { end: to, pattern: kind, stripe_unit, stripe_count, pool, .. } =
            component;
        let listed: Vec<String> = component.targets.iter().map(u16::to_string).collect();
        let start = component.start_index.map(|index| format!("from {index}"));
        table.row(vec![
            format!("  {id}"),
            end(*to),
            pattern(*kind),
            match stripe_count {
                -1 => "all".into(),
                0 => "default".into(),
                count => count.to_string(),
            },
            if *stripe_unit == 0 { "default".into() } else { human_size(*stripe_unit) },
            groups(component.group_width, component.group_depth),
            if pool.is_empty() { "-".into() } else { pool.clone() },
            if listed.is_empty() { start.unwrap_or("any".into()) } else { listed.join(",") },
        ]);
    }
    table.text()
}

fn end(offset: u64) -> String {
    if offset == EOF { "EOF".into() } else { human_size(offset) }
}

fn groups(width: u32, depth: u32) -> String {
    if width == 0 { "-".into() } else { format!("{width}x{depth}") }
}

fn pattern(pattern: Pattern) -> String {
    match pattern {
        Pattern::Stripe => "raid0".into(),
        Pattern::Mirror(copies) => format!("mirror:{copies}"),
        Pattern::Ec(data, parity) => format!("ec:{data}+{parity}"),
    }
}
