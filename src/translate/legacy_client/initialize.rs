//! What a legacy client says of itself, and the answer to it. Rules: A1.1, A3.1-A3.7, A9; vectors D69, D72.
