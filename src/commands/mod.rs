//! Commands that run and end: `probe` and `demo`.

mod demo;
mod probe;

pub use demo::demo;
pub use probe::probe;
