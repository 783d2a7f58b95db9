//! stub
pub mod kernel;
pub mod null;
