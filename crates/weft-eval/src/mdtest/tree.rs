//! Names. Pure.

use super::Config;

/// What is made in the directories of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Directories.
    Dir,
    /// Files.
    File,
}

impl Config {
    /// The directory that holds everything rank `rank` makes in an iteration.
    pub fn test_dir(&self, rank: u32, iteration: u32) -> String {
        let dirs: Vec<&str> = self.dirs.split('@').collect();
        let dir = dirs[rank as usize % dirs.len()];
        format!("{}/test-dir.{iteration}-0", dir.trim_end_matches('/'))
    }

    /// Whether a rank makes and removes a tree: its own, or the first one in each place that of all.
    pub fn makes_tree(&self, rank: u32) -> bool {
        self.unique || (rank as usize) < self.dirs.split('@').count()
    }

    /// The ranks, out of so many, whose trees rank `rank` makes and removes.
    pub fn trees_of(&self, rank: u32, ranks: u32) -> Vec<u32> {
        let (from, to) = if self.collective { (0, ranks) } else { (rank, rank + 1) };
        let hands = if self.collective && rank > 0 { from..from } else { from..to };
        hands.filter(|&owner| self.makes_tree(owner)).collect()
    }

    /// The ranks, out of so many, whose items are not also those of a rank before.
    pub fn owners(&self, ranks: u32) -> std::ops::Range<u32> {
        let places = self.dirs.split('@').count() as u32;
        0..if self.shared { places.min(ranks) } else { ranks }
    }

    /// The ranks whose items rank `rank` removes, if it is `own` that it would come to by strides.
    pub fn removals_of(&self, rank: u32, ranks: u32, own: u32) -> Vec<u32> {
        let owners = self.owners(ranks);
        match (self.collective, self.shared) {
            (true, _) if rank == 0 => owners.collect(),
            (true, _) => Vec::new(),
            (_, true) => owners.filter(|&owner| owner == rank).collect(),
            _ => vec![own],
        }
    }

    /// Path of directory number `dir` of the tree that rank `rank` works in, below the test directory.
    pub fn dir_path(&self, rank: u32, dir: u64) -> String {
        let name = match self.unique {
            true => format!("mdtest_tree.{rank}.{dir}"),
            false => format!("mdtest_tree.{dir}"),
        };
        match dir {
            0 => name,
            _ => format!("{}/{name}", self.dir_path(rank, (dir - 1) / self.branch)),
        }
    }

    /// Path of item number `item` that rank `rank` makes, below the test directory.
    pub fn item_path(&self, rank: u32, kind: Kind, item: u64) -> String {
        let first = if self.leaf_only { self.tree_dirs() - self.leaves() } else { 0 };
        let number = item + first * self.per_dir;
        let dir = self.dir_path(rank, number / self.per_dir);
        if self.shared {
            return format!("{dir}/file.mdtest.shared.{number}");
        }
        let kind = if kind == Kind::Dir { "dir" } else { "file" };
        format!("{dir}/{kind}.mdtest.{rank}.{number}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(line: &str) -> Config {
        Config::parse(line.split(' ')).unwrap()
    }

    #[test]
    fn trees_and_their_items() {
        let config = config("-z 2 -b 2 -I 10 -d /a/@/b");
        assert_eq!((config.tree_dirs(), config.leaves(), config.items), (7, 4, 70));
        assert_eq!(config.test_dir(1, 3), "/b/test-dir.3-0");
        assert_eq!(config.dir_path(5, 6), "mdtest_tree.0/mdtest_tree.2/mdtest_tree.6");
        assert_eq!(config.item_path(5, Kind::File, 7), "mdtest_tree.0/file.mdtest.5.7");
        let deep = "mdtest_tree.0/mdtest_tree.1/mdtest_tree.3/dir.mdtest.5.31";
        assert_eq!(config.item_path(5, Kind::Dir, 31), deep);
        assert!(config.makes_tree(1) && !config.makes_tree(2));
    }

    #[test]
    fn leaves_only_and_a_tree_for_each() {
        let config = config("-z 1 -b 3 -n 30 -L -u -d /a");
        assert_eq!((config.per_dir, config.items), (10, 30));
        let first = "mdtest_tree.4.0/mdtest_tree.4.1/file.mdtest.4.10";
        assert_eq!(config.item_path(4, Kind::File, 0), first);
        let last = "mdtest_tree.4.0/mdtest_tree.4.3/file.mdtest.4.39";
        assert_eq!(config.item_path(4, Kind::File, 29), last);
    }
}
