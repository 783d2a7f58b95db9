//! Which rank touches what, in which order. Pure.

use super::Config;

/// A rank's part in a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The rank whose data it is.
    pub owner: u32,
    /// Of how many.
    pub ranks: u32,
}

impl Config {
    /// The file that holds the data of `part.owner`.
    pub fn path(&self, part: Part, iteration: u32) -> String {
        let names: Vec<&str> = self.file.split('@').collect();
        let mut name = names[part.owner as usize % names.len()].to_string();
        if self.file_per_rank {
            if self.unique_dir {
                let (dir, base) = name.rsplit_once('/').unwrap_or((".", &name));
                name = format!("{dir}/{}/{base}", part.owner);
            }
            name += &format!(".{:08}", part.owner);
        }
        if self.multi_file {
            name += &format!(".{iteration}");
        }
        name
    }

    /// Where in the file transfer number `index` of a part lies.
    pub fn offset(&self, part: Part, index: u64) -> u64 {
        let ranks = if self.file_per_rank { 1 } else { u64::from(part.ranks) };
        let rank = if self.file_per_rank { 0 } else { u64::from(part.owner) };
        if self.random {
            let all = self.transfers() * ranks;
            let place = shuffled(index * ranks + rank, all, self.signature);
            return place * self.transfer;
        }
        let per_block = self.block / self.transfer;
        let (segment, within) = (index / per_block, index % per_block);
        (segment * ranks + rank) * self.block + within * self.transfer
    }

    /// Bytes of the file of a part.
    pub fn file_size(&self, part: Part) -> u64 {
        self.block * self.segments * if self.file_per_rank { 1 } else { u64::from(part.ranks) }
    }

    /// Whose data rank `rank` reads; `per_node` ranks share a node.
    pub fn reader_of(&self, rank: u32, ranks: u32, per_node: u32, iteration: u32) -> u32 {
        let (rank, ranks, per_node) =
            (u64::from(rank), u64::from(ranks), u64::from(per_node.max(1)));
        let offset = u64::from(self.node_offset) * per_node;
        let shift = if self.reorder {
            offset
        } else if self.reorder_random {
            let changing = if self.random_seed < 0 { u64::from(iteration) } else { 0 };
            let seed = mix(self.random_seed.unsigned_abs() + changing + (rank << 32));
            let least = offset.min(ranks - per_node.min(ranks));
            least + seed % (ranks - least)
        } else {
            0
        };
        ((rank + shift) % ranks) as u32
    }
}

/// The place of `index` in a random order of `0..count`: the same for the same seed, each once.
///
/// Four rounds of a Feistel network over the next even number of bits; places beyond the count are
/// passed on until one is within.
pub fn shuffled(index: u64, count: u64, seed: u64) -> u64 {
    let half = (64 - count.max(2).saturating_sub(1).leading_zeros()).div_ceil(2);
    let mask = (1u64 << half) - 1;
    let mut place = index;
    loop {
        let (mut left, mut right) = (place >> half, place & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ (mix(right ^ mix(seed + round)) & mask));
        }
        place = (left << half) | right;
        if place < count {
            return place;
        }
    }
}

/// Spreads the bits of a number (the finaliser of splitmix64).
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn config(line: &str) -> Config {
        Config::parse(line.split(' ')).unwrap()
    }

    fn offsets(config: &Config, owner: u32, ranks: u32) -> Vec<u64> {
        let part = Part { owner, ranks };
        (0..config.transfers()).map(|index| config.offset(part, index)).collect()
    }

    #[test]
    fn blocks_of_ranks_alternate_in_a_shared_file() {
        let config = config("-t 1k -b 2k -s 2 -o f");
        assert_eq!(offsets(&config, 1, 3), [2048, 3072, 8192, 9216]);
        assert_eq!(config.file_size(Part { owner: 0, ranks: 3 }), 12 << 10);
        assert_eq!(config.path(Part { owner: 2, ranks: 3 }, 0), "f");
    }

    #[test]
    fn the_hard_pattern() {
        let config = config("-t 47008 -b 47008 -s 3 -o f");
        assert_eq!(offsets(&config, 1, 2), [47_008, 3 * 47_008, 5 * 47_008]);
    }

    #[test]
    fn files_of_ranks_are_spread_over_names() {
        let config = config("-F -u -m -t 1k -b 2k -s 2 -o /a/f@/b/f");
        assert_eq!(offsets(&config, 1, 3), [0, 1024, 2048, 3072]);
        assert_eq!(config.path(Part { owner: 3, ranks: 4 }, 7), "/b/3/f.00000003.7");
    }

    #[test]
    fn random_order_covers_everything_once() {
        for line in ["-z -t 1k -b 7k -s 3 -o f", "-z -F -t 1k -b 7k -s 3 -o f"] {
            let config = config(line);
            let ranks = if config.file_per_rank { 1 } else { 5 };
            let all: Vec<u64> = (0..ranks).flat_map(|rank| offsets(&config, rank, ranks)).collect();
            let wanted: BTreeSet<u64> = (0..21 * u64::from(ranks)).map(|n| n << 10).collect();
            assert_eq!(all.iter().copied().collect::<BTreeSet<u64>>(), wanted);
            assert_eq!(all.len(), wanted.len());
            assert!(!all.is_sorted());
        }
    }

    #[test]
    fn readers_move_on_by_nodes() {
        assert_eq!(config("-o f").reader_of(1, 4, 2, 0), 1);
        assert_eq!(config("-C -o f").reader_of(1, 4, 2, 0), 3);
        assert_eq!(config("-C -Q 2 -o f").reader_of(3, 8, 2, 0), 7);
        let random = config("-Z -X 7 -o f");
        for rank in 0..8 {
            let shift = (random.reader_of(rank, 8, 2, 0) + 8 - rank) % 8;
            assert!(shift >= 2, "{rank} {shift}");
        }
    }
}
