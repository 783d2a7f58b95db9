//! How the targets of a development cluster are spread over servers, and how fast they are.

use clap::Args;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU16;
use std::ops::Range;
use weft_model::TargetKind;
use weft_model::throttle::Speed;

/// What a cluster is told once and keeps.
#[derive(Clone, PartialEq, Eq, Debug, Default, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shape {
    /// With --processes: OSTs that one server process serves [default: 1].
    #[arg(long, value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    osts_per_server: Option<NonZeroU16>,
    /// With --processes: the MDT is served by the first server of OSTs, not by one of its own.
    #[arg(long)]
    pub mdt_with_osts: bool,
    /// For studies: no OST is faster than this, as 200M,100us (bytes per second, latency).
    #[arg(long, value_name = "SPEED")]
    #[serde(skip_serializing_if = "Option::is_none")]
    throttle_ost: Option<Speed>,
    /// For studies: no MDT is faster than this, as 5000ops (operations per second).
    #[arg(long, value_name = "SPEED")]
    #[serde(skip_serializing_if = "Option::is_none")]
    throttle_mdt: Option<Speed>,
}

impl Shape {
    /// Takes over what `other` says.
    pub fn change(&mut self, other: &Shape) {
        self.osts_per_server = other.osts_per_server.or(self.osts_per_server);
        self.mdt_with_osts |= other.mdt_with_osts;
        self.throttle_ost = other.throttle_ost.or(self.throttle_ost);
        self.throttle_mdt = other.throttle_mdt.or(self.throttle_mdt);
    }

    /// Servers for so many OSTs.
    pub fn servers(&self, osts: u16) -> u16 {
        osts.div_ceil(self.each())
    }

    /// Indices of the OSTs of a server.
    pub fn osts_of(&self, server: u16, osts: u16) -> Range<u16> {
        let first = server * self.each();
        first..osts.min(first + self.each())
    }

    /// The speed of targets of this kind.
    pub const fn throttle(&self, kind: TargetKind) -> Option<Speed> {
        match kind {
            TargetKind::Ost => self.throttle_ost,
            TargetKind::Mdt => self.throttle_mdt,
            TargetKind::Mgt => None,
        }
    }

    fn each(&self) -> u16 {
        self.osts_per_server.map_or(1, NonZeroU16::get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_dealt_out_in_order() {
        let shape = Shape { osts_per_server: NonZeroU16::new(3), ..Shape::default() };
        assert_eq!(shape.servers(7), 3);
        let dealt: Vec<_> = (0..3).map(|server| shape.osts_of(server, 7)).collect();
        assert_eq!(dealt, [0..3, 3..6, 6..7]);
        assert_eq!(Shape::default().osts_of(2, 4), 2..3);
    }

    #[test]
    fn what_is_not_said_stays() {
        let mut shape = Shape { throttle_ost: "200M".parse().ok(), ..Shape::default() };
        shape.change(&Shape { throttle_mdt: "5ms".parse().ok(), ..Shape::default() });
        let text = toml::to_string(&shape).unwrap();
        assert_eq!(toml::from_str::<Shape>(&text).unwrap(), shape);
        assert_eq!(
            text,
            "mdt_with_osts = false\nthrottle_ost = \"200MiB\"\nthrottle_mdt = \"5ms\"\n"
        );
    }
}
