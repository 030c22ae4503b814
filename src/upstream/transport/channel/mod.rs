//! A server behind channels, as an endpoint of Streamable HTTP.
//!
//! Owns which channel a request goes to: one for each session of a legacy server, one for each principal of a modern one;
//! how many there may be; and what the answers of Streamable HTTP are to requests for which no channel is there (unknown
//! session 404). Below it `connection` is one channel and the requests that wait in it, `rename` puts ids and tokens of ours in
//! the place of the callers' where several share one channel, `stream` is a response's body. Does not own how a channel comes
//! about (`pipe`), nor what an era means by its messages.
//! Rules: A2.2, A14.2-A14.9, B5, B14, B17; cases C20, C23, C53, C56.

mod rename;
mod stream;

pub use stream::ChannelBody;
