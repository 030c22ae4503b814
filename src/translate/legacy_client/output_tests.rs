//! Tests of `output`.
