//! Tests of `content`.
