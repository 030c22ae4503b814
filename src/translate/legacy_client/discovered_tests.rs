//! Tests of `discovered`.
