//! From one era to the other, as pure functions over spans and bytes: no I/O, no clock, no state.
//!
//! Owns every rule of a message's content between a modern client and a legacy server (`legacy_client` has those of the other
//! direction): requests down (`request`), results, errors and notifications up (`result`, `tools`, `error`, `notify`),
//! capabilities and `server/discover` (`capabilities`, `discover`), a server's questions up (`question`, `input_required`) and
//! their answers down (`answer`), and what a request declares (`declared`). Both directions share large results that pass
//! (`flow`) and the walk over a schema (`schema`). HTTP status codes and headers belong to the edges.

pub mod answer;
pub mod capabilities;
pub mod declared;
pub mod discover;
pub mod error;
pub mod flow;
mod form;
pub mod input_required;
pub mod legacy_client;
pub mod listen;
pub mod notify;
pub mod question;
pub mod request;
pub mod result;
pub mod tools;

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod capabilities_tests;
#[cfg(test)]
mod odd_tests;
#[cfg(test)]
mod question_tests;
#[cfg(test)]
mod tests;
