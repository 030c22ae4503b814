//! Content blocks for clients whose revision does not know them. Rules: A6; vectors D63, D64.
