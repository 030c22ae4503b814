//! A legacy client's answer as an entry of inputResponses. Rules: A4.15, A8.15, B2.6, B2.7; vectors D84, D88.
