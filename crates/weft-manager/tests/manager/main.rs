//! The manager over a store in memory, and agents that report to it.

mod agent;
mod common;
mod requests;
