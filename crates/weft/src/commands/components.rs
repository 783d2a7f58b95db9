//! The options that describe a layout: `-c -S -i -p -o -L`, repeated for each `-E END`.

use crate::outcome::Usage;
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use weft_model::layout::{ComponentSpec, EOF, LayoutSpec, Pattern};
use weft_model::units::parse_size;

/// What is asked of a layout.
#[derive(Clone, Debug, Default)]
pub struct Components {
    /// Options with their values, in the order of the command line.
    given: Vec<(char, String)>,
}

/// Letter, name, name of the value, help.
const OPTIONS: &[(char, &str, &str, &str)] = &[
    ('c', "stripe-count", "COUNT", "Number of OSTs; -1 for all, 0 for the default"),
    ('S', "stripe-size", "SIZE", "Bytes per stripe unit (64K, 4M); 0 for the default"),
    ('i', "stripe-index", "OST", "Index of the first OST; -1 to let the system choose"),
    ('p', "pool", "POOL", "Only OSTs of this pool"),
    ('o', "ost", "LIST", "Exactly these OSTs in this order: 0,2-4"),
    ('L', "layout", "PATTERN", "raid0, the only one in this version"),
    (
        'E',
        "component-end",
        "END",
        "Ends a component here (64M; -1 or eof for the end of the file);\nthe options after it are of this component",
    ),
    ('W', "group-width", "N", "OSTs per group, for layouts of two levels"),
    ('D', "group-depth", "N", "Stripes in a group before the next one"),
];

impl clap::Args for Components {
    fn augment_args(command: Command) -> Command {
        OPTIONS.iter().fold(command, |command, &(letter, name, value, help)| {
            let arg = Arg::new(name).short(letter).long(name).value_name(value).help(help);
            command.arg(arg.action(ArgAction::Append).allow_negative_numbers(true))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Components {
    /// Which option stands behind which is in their indices only.
    fn from_arg_matches(matches: &ArgMatches) -> Result<Components, Error> {
        let mut found: Vec<(usize, char, String)> = Vec::new();
        for &(letter, name, ..) in OPTIONS {
            let values = matches.get_many::<String>(name).into_iter().flatten();
            let indices = matches.indices_of(name).into_iter().flatten();
            found.extend(indices.zip(values).map(|(index, value)| (index, letter, value.clone())));
        }
        found.sort();
        Ok(Components {
            given: found.into_iter().map(|(_, letter, value)| (letter, value)).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Components {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// As the cluster understands it. As with `lfs`, a component takes what it does not say from
    /// the one before it.
    ///
    /// # Errors
    /// [`Usage`], naming the option.
    pub fn spec(&self) -> Result<LayoutSpec, Usage> {
        let mut components: Vec<ComponentSpec> = Vec::new();
        let is_progressive = self.given.iter().any(|(letter, _)| *letter == 'E');
        if !is_progressive {
            components.push(ComponentSpec::default());
        }
        for (letter, value) in &self.given {
            if *letter == 'E' {
                let end = end(value)?;
                if components.last().is_some_and(|last| last.end >= end) {
                    return Err(Usage(format!("-E {value}: ends before the component before it")));
                }
                let template = components.last().cloned().unwrap_or_default();
                // Where a component starts is not handed down, or all would be on one OST.
                let (start_index, targets) = (None, Vec::new());
                components.push(ComponentSpec { end, start_index, targets, ..template });
                continue;
            }
            let Some(component) = components.last_mut() else {
                return Err(Usage(format!("-{letter} {value}: comes before the first -E")));
            };
            set(component, *letter, value)?;
        }
        Ok(LayoutSpec { components })
    }
}

fn set(component: &mut ComponentSpec, letter: char, value: &str) -> Result<(), Usage> {
    let bad = |why: String| Usage(format!("-{letter} {value}: {why}"));
    let number = |what: &str| bad(format!("not {what}"));
    match letter {
        'c' => component.stripe_count = value.parse().map_err(|_| number("a count"))?,
        'S' => component.stripe_unit = parse_size(value).map_err(bad)?,
        'i' if value == "-1" => component.start_index = None,
        'i' => component.start_index = Some(value.parse().map_err(|_| number("an index"))?),
        'p' => component.pool = value.to_string(),
        'o' => component.targets = list(value).ok_or_else(|| number("a list of indices"))?,
        'L' if value == "raid0" => component.pattern = Pattern::Stripe,
        'L' => return Err(bad("only raid0 is available in this version".into())),
        'W' => component.group_width = value.parse().map_err(|_| number("a number"))?,
        'D' => component.group_depth = value.parse().map_err(|_| number("a number"))?,
        _ => unreachable!("option -{letter} is not in the list"),
    }
    Ok(())
}

fn end(value: &str) -> Result<u64, Usage> {
    match value {
        "-1" | "eof" | "EOF" => Ok(EOF),
        size => parse_size(size).map_err(|why| Usage(format!("-E {value}: {why}"))),
    }
}

/// `0,2-4` is 0, 2, 3, 4.
pub fn list(text: &str) -> Option<Vec<u16>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        all.extend(first..=last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;

    fn spec(line: &str) -> Result<LayoutSpec, Usage> {
        let command = Components::augment_args(Command::new("setstripe"));
        let words = std::iter::once("setstripe").chain(line.split_whitespace());
        let matches = command.try_get_matches_from(words).unwrap();
        Components::from_arg_matches(&matches).unwrap().spec()
    }

    #[test]
    fn plain_options_make_one_component() {
        let spec = spec("-c 4 -S 1M -i 2 -p flash").unwrap();
        let [only] = &spec.components[..] else { panic!("{spec:?}") };
        assert_eq!((only.stripe_count, only.stripe_unit, only.end), (4, 1 << 20, EOF));
        assert_eq!((only.start_index, only.pool.as_str()), (Some(2), "flash"));
    }

    #[test]
    fn options_belong_to_the_component_before_them() {
        let spec = spec("-E 4M -c 1 -S 64K -o 3 -E 1G -c 4 -E -1 -c -1 -S 4M").unwrap();
        let seen: Vec<_> =
            spec.components.iter().map(|c| (c.end, c.stripe_count, c.stripe_unit)).collect();
        assert_eq!(seen, [(4 << 20, 1, 65536), (1 << 30, 4, 65536), (EOF, -1, 4 << 20)]);
        assert_eq!((spec.components[0].targets.len(), spec.components[1].targets.len()), (1, 0));
    }

    #[test]
    fn nonsense_is_named() {
        for bad in ["-c many", "-S 1Q", "-c 1 -E 4M", "-E 4M -E 1M", "-L raid6", "-o 1-", "-i -2"] {
            assert!(spec(bad).is_err(), "{bad}");
        }
        assert_eq!(list("0,2-4"), Some(vec![0, 2, 3, 4]));
    }
}
