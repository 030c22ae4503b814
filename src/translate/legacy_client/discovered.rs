//! What a modern server says of itself, as `initialize` is to tell it. Rules: A3.8-A3.14, A9.1.
