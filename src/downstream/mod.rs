//! The edge to clients: from an HTTP request to a call, and from an outcome to an HTTP response.
//!
//! Owns routing by path, the bound on requests in work and the choice of the client's era (`front`), reading a body within
//! its bounds (`read`); `modern` holds that era's checks and its spelling of outcomes, `body` the response bodies.
//! Never talks to a server: that is `relay`'s.

mod body;
mod front;
mod half_event;
pub mod modern;
mod read;
mod record;

pub use body::FrontBody;
pub use front::Front;
