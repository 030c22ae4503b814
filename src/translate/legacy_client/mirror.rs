//! The headers that repeat parts of a request. Rules: A13.2, A13.3, A5.10; vectors D78, D79; case C67.
