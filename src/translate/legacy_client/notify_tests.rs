//! Tests of `notify`.
