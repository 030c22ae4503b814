//! Tests of `tools`.
