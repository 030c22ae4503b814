//! Changes that a server tells of: to whoever listens in the modern way, or on the stream or channel of a legacy client.

use crate::stage::Stage;
use crate::support::{Era, Said, Value, json, rpc};

const TOOLS: &str = "notifications/tools/list_changed";
const UPDATED: &str = "notifications/resources/updated";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

pub(crate) async fn changes(stage: &Stage) {
    match stage.party.era {
        Era::Modern => to_listens(stage).await,
        Era::Legacy(_) => to_a_session(stage).await,
    }
}

fn is_of(said: &Said, method: &str, id: &Value) -> bool {
    said.brief() == method && said.message["params"]["_meta"][SUBSCRIPTION] == *id
}

/// Two listens on one channel hear it each under its own id; one that is given up hears no more (B17).
async fn to_listens(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    let ids = ["50", r#""50""#];
    for id in ids {
        let wanted = r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///x"]}"#;
        party.send(&party.ask("subscriptions/listen").id(id).params(wanted)).await;
        let id = rpc::value(id.as_bytes()).unwrap();
        let acknowledged = "notifications/subscriptions/acknowledged";
        let promise = party.ear.first("an acknowledgement", |said| is_of(said, acknowledged, &id)).await;
        let promised = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///x"]});
        assert_eq!(promise.message["params"]["notifications"], promised, "{context}");
    }
    stage.tell("tools").await;
    stage.tell("file:///x").await;
    for id in ids {
        let id = rpc::value(id.as_bytes()).unwrap();
        party.ear.first("a change", |said| is_of(said, TOOLS, &id)).await;
        party.ear.first("an update", |said| is_of(said, UPDATED, &id)).await;
    }
    silent(stage).await;
    party.cancel(ids[0]).await;
    crate::support::pass(100).await;
    stage.tell("tools").await;
    let (gone, stays) = (rpc::value(ids[0].as_bytes()).unwrap(), rpc::value(ids[1].as_bytes()).unwrap());
    party.ear.nth("a third change", 3, |said| is_of(said, TOOLS, &stays)).await;
    let heard = party.ear.all().into_iter().filter(|said| is_of(said, TOOLS, &gone)).count();
    assert_eq!(heard, 2, "one that was given up hears no more: {context}");
    party.cancel(ids[1]).await;
}

/// A client that cannot be asked anything, and so has a session of its own at a legacy server, hears no more and no less.
async fn silent(stage: &Stage) {
    let (context, party, id) = (stage.context(), &stage.party, r#""mute""#);
    let wanted = r#""notifications":{"toolsListChanged":true}"#;
    party.send(&party.ask("subscriptions/listen").caps("{}").id(id).params(wanted)).await;
    let acknowledged = "notifications/subscriptions/acknowledged";
    party.ear.first("an acknowledgement", |said| is_of(said, acknowledged, &json!("mute"))).await;
    crate::support::pass(10_000).await;
    let heard = || party.ear.all().into_iter().filter(|said| is_of(said, TOOLS, &json!("mute"))).count();
    assert_eq!(heard(), 0, "{context}: nothing has changed");
    stage.tell("tools").await;
    party.ear.first("a change", |said| is_of(said, TOOLS, &json!("mute"))).await;
    crate::support::pass(10_000).await;
    assert_eq!(heard(), 1, "{context}: {:?}", party.ear.briefs());
    party.cancel(id).await;
}

async fn to_a_session(stage: &Stage) {
    let (context, party) = (stage.context(), &stage.party);
    stage.tell("tools").await;
    let said = party.ear.first("a change", |said| said.brief() == TOOLS).await;
    assert_eq!(said.on, None, "on no request's stream: {context}");
    let subscribe = party.ask("resources/subscribe").params(r#""uri":"file:///x""#).id(r#""s""#);
    assert_eq!(party.result(&subscribe).await, json!({}), "{context}");
    stage.tell("file:///x").await;
    let said = party.ear.first("an update", |said| said.brief() == UPDATED).await;
    assert_eq!((&said.on, &said.message["params"]["uri"]), (&None, &json!("file:///x")), "{context}");
}
