//! Tests of `result`.
