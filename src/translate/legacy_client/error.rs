//! A modern server's error as a legacy client is to see it. Rules: A11, B3; vectors D75-D77, D80.
