//! A legacy client's request in its modern envelope. Rules: A1.4-A1.7, A4.1-A4.8; vectors D71, D85, D102, D111.
