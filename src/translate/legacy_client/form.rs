//! Forms for 2025-06-18, and answers to them as the server wants them. Rule: B10; vector D91.
