//! A modern server's notifications as a legacy client is to see them. Rules: A2.3-A2.10; vectors D93, D99.
