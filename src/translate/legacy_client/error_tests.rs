//! Tests of `error`.
