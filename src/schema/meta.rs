//! Whether a schema is valid in its dialect, by the meta-schemas that the validator brings along.

use super::Dialect;
use serde_json::Value;

/// Where and how the schema breaks the rules of its dialect; `None` if it does not.
pub(super) fn fault(_schema: &Value, _dialect: Dialect) -> Option<(String, String)> {
    None
}
