//! A modern server's result as a legacy client is to see it. Rules: A4.10-A4.13, B6, B12; vectors D58-D64, D73, D74.
