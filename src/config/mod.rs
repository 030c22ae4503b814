//! Settings: raw serde structs, validated into types that the rest of the program can trust.
