//! A modern server's tools as a legacy client is to see them. Rules: A5, B6; vectors D57-D59, D78.
