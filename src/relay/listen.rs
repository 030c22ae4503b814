//! `subscriptions/listen` in front of a legacy server.
//!
//! Owns the two ends of the stream: the acknowledgement that comes first and the result that ends it gracefully. No
//! change notification of a legacy server is carried yet, and the acknowledgement says so by honouring none; an empty
//! set is still acknowledged and stays open. Rules: B9.1, B9.6; spec basic/patterns/subscriptions.

use crate::exchange::{Call, Event, Outcome, Sender};
use crate::shutdown::Shutdown;
use crate::wire::meta;
use crate::wire::payload::Payload;
use bytes::Bytes;

pub(super) async fn run(call: Call, server_info: Bytes, sender: Sender, shutdown: Shutdown) {
    let id = String::from_utf8_lossy(call.id().raw()).into_owned();
    let acknowledged = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"{}":{id}}},"notifications":{{}}}}}}"#,
        meta::SUBSCRIPTION_ID
    );
    sender.event(Event::Custom(Payload::from(acknowledged))).await;
    tokio::select! {
        () = sender.cancelled() => {}
        () = shutdown.draining() => {
            let ended = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"{}":{id},"{}":{}}}}}}}"#,
                meta::SUBSCRIPTION_ID,
                meta::SERVER_INFO,
                String::from_utf8_lossy(&server_info),
            );
            sender.finish(Outcome::Result(Payload::from(ended)));
        }
    }
}
