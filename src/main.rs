//! The binary's entry point.

fn main() {}
