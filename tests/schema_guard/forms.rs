//! C62, C64 for forms: the `requestedSchema` of an elicitation, on its way from servers of both eras to clients of both.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::canary::Canary;
use crate::stage::{FORMS_REFUSED, LATEST, metric};
use crate::support::questions::{ACCEPT, ALL, elicit, request};
use crate::support::{
    Call, Calls, Done, Era, Gets, LegacyServer, ModernServer, Net, Party, Proxy, Round, Stream, Transport,
    Upstream, User, call, json, pass, within,
};

const REVISION: &str = "2025-11-25";

/// The parameters of a form with this field `n`.
fn params(field: &str) -> String {
    format!(r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{{"n":{field}}}}}}}"#)
}

/// Forms that nobody is to be asked.
fn bad(canary: &Canary) -> Vec<(&'static str, String)> {
    let out = format!(r#"{{"type":"string","$ref":"{}"}}"#, canary.url());
    vec![
        ("external_ref", params(&out)),
        ("of a file", params(&format!(r#"{{"type":"string","$ref":"{}"}}"#, canary.file_url()))),
        ("dangling_ref", params(r##"{"type":"string","$ref":"#/$defs/none"}"##)),
        ("ref_loop", params(r##"{"type":"string","$ref":"#/properties/n"}"##)),
        ("meta_schema", params(r#"{"type":"string","minLength":"x"}"#)),
        (
            "duplicate_member",
            params(&format!(r##"{{"type":"string","$ref":"#/$defs/s","$ref":"{}"}}"##, canary.url())),
        ),
    ]
}

/// Forms that are as good as any.
fn good() -> Vec<String> {
    let plain = r#"{"type":"string","title":"\u00fc","default":"1.50"}"#;
    let declared = |dialect: &str| {
        format!(
            r#"{{"message":"m","requestedSchema":{{"$schema":"{dialect}","type":"object","properties":{{"n":{plain}}},"required":["n"]}}}}"#
        )
    };
    vec![
        params(plain),
        declared("http://json-schema.org/draft-07/schema#"),
        declared("https://json-schema.org/draft/2020-12/schema"),
        declared("https://schemas.acme.test/dialect"),
    ]
}

struct Stage {
    net: Net,
    proxy: Arc<Proxy>,
    up: Upstream,
    calls: Calls,
}

async fn stage(server: Era, client: Era, schema: &str) -> Stage {
    let (net, calls) = (Net::new(), Calls::new());
    let up = match server {
        Era::Legacy(_) => calls.of(LegacyServer::telling()).start(&net),
        Era::Modern if client == Era::Modern => calls.of_modern(ModernServer::full()).start(&net),
        Era::Modern => calls.of_modern(ModernServer::full()).start_bridged(&net),
    };
    let lines = if schema.is_empty() { String::new() } else { format!("schema = {{ {schema} }}") };
    Stage { proxy: Arc::new(Proxy::with(&net, &lines).await), net, up, calls }
}

impl Stage {
    /// A modern client's call that has reached the server.
    async fn modern(&self) -> (JoinHandle<Done>, Arc<Call>) {
        let before = self.calls.all().len();
        let client = self.proxy.spawn(&call("ask", "{}").caps(ALL));
        (client, self.calls.wait(before + 1).await)
    }

    /// A legacy client's.
    async fn legacy(&self, user: &User) -> (JoinHandle<Stream>, Arc<Call>) {
        let (before, user) = (self.calls.all().len(), user.clone());
        let client = tokio::spawn(async move { user.call("ask", "{}").await });
        (client, self.calls.wait(before + 1).await)
    }

    /// The server's n-th answer, from 1.
    async fn answered(&self, n: usize) -> crate::support::Value {
        self.up.wait("response", n).await[n - 1].json()
    }

    fn refused(&self) -> f64 {
        metric(&self.proxy, FORMS_REFUSED, &["upstream=\"up\""])
    }
}

async fn done<T>(client: JoinHandle<T>) -> T {
    within("an answer", client).await.expect("a client that is not aborted")
}

/// A server that asked so is told that it may not, and the call goes on.
#[track_caller]
fn is_refusal(answer: &crate::support::Value, id: i64) {
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32602)), "{answer}");
    let words = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("requestedSchema"), "it says where: {answer}");
}

#[tokio::test(start_paused = true)]
async fn c62_a_legacy_servers_form_before_a_modern_client() {
    let canary = Canary::new();
    for (kind, params) in bad(&canary) {
        let stage = stage(LATEST, Era::Modern, "").await;
        let (client, at) = stage.modern().await;
        at.event(&request("7", "elicitation/create", &params));
        is_refusal(&stage.answered(1).await, 7);
        at.finish("the end");
        let done = done(client).await;
        assert_eq!(done.result()["resultType"], "complete", "{kind}: {}", done.raw);
        assert_eq!(stage.refused(), 1.0, "{kind}");
        canary.is_untouched(&stage.net);
    }
}

#[tokio::test(start_paused = true)]
async fn c62_a_legacy_servers_form_before_a_legacy_client() {
    let canary = Canary::new();
    for (kind, params) in bad(&canary) {
        let stage = stage(LATEST, LATEST, "").await;
        let user = User::begin(&stage.proxy, REVISION).await;
        let (client, at) = stage.legacy(&user).await;
        at.event(&request("7", "elicitation/create", &params));
        let answer = stage.up.wait("response", 1).await.remove(0);
        is_refusal(&answer.json(), 7);
        assert_eq!(answer.session(), at.seen.session(), "{kind}: in the session that asked");
        at.finish("the end");
        let stream = done(client).await;
        assert_eq!(stream.result().await["content"][0]["text"], "the end", "{kind}");
        assert_eq!(stream.asked(), 0, "{kind}: {:?}", stream.messages());
        assert_eq!((stage.refused(), stage.up.posts("").len()), (1.0, 1), "{kind}: answered once");
        canary.is_untouched(&stage.net);
    }
}

#[tokio::test(start_paused = true)]
async fn c62_a_modern_servers_form_before_a_modern_client() {
    let canary = Canary::new();
    for (kind, params) in bad(&canary) {
        let stage = stage(Era::Modern, Era::Modern, "").await;
        let (client, at) = stage.modern().await;
        let form = format!(r#"{{"method":"elicitation/create","params":{params}}}"#);
        at.asks(&[("r", r#"{"method":"roots/list"}"#), ("k", &form)], Some(r#""S""#));
        let done = done(client).await;
        assert_eq!((done.code(), &done.message["id"]), (-32603, &json!(1)), "{kind}: {}", done.raw);
        assert!(!done.raw.contains("canary") && !done.raw.contains("inputRequests"), "{kind}: {}", done.raw);
        assert_eq!(stage.refused(), 1.0, "{kind}");
        canary.is_untouched(&stage.net);
    }
}

#[tokio::test(start_paused = true)]
async fn c62_a_modern_servers_form_before_a_legacy_client() {
    let canary = Canary::new();
    for (kind, params) in bad(&canary) {
        let stage = stage(Era::Modern, LATEST, "").await;
        let user = User::begin(&stage.proxy, REVISION).await;
        let (client, at) = stage.legacy(&user).await;
        let form = format!(r#"{{"method":"elicitation/create","params":{params}}}"#);
        at.asks(&[("k", &form)], Some(r#""S""#));
        let stream = done(client).await;
        let answer = stream.answer().await;
        let failed = answer.get("error").is_some() || answer["result"]["isError"] == true;
        assert!(failed, "{kind}: {answer}");
        assert_eq!(stream.asked(), 0, "{kind}: {:?}", stream.messages());
        pass(1000).await;
        assert_eq!(stage.calls.all().len(), 1, "{kind}: it is not tried again");
        assert!(user.lives().await);
        assert_eq!(stage.refused(), 1.0, "{kind}");
        canary.is_untouched(&stage.net);
    }
}

#[tokio::test(start_paused = true)]
async fn c64_good_forms_reach_their_clients() {
    for params in good() {
        let schema =
            serde_json::from_str::<crate::support::Value>(&params).unwrap()["requestedSchema"].clone();
        let form = format!(r#"{{"method":"elicitation/create","params":{params}}}"#);

        let unlike = stage(LATEST, Era::Modern, "").await;
        let (client, at) = unlike.modern().await;
        at.event(&request("7", "elicitation/create", &params));
        let round = Round::of(&call("ask", "{}").caps(ALL), done(client).await);
        assert_eq!(round.entry(&round.only())["params"]["requestedSchema"], schema, "{params}");

        let like = stage(LATEST, LATEST, "").await;
        let user = User::begin(&like.proxy, REVISION).await;
        let (client, at) = like.legacy(&user).await;
        at.event(&request("7", "elicitation/create", &params));
        let stream = done(client).await;
        let question = stream.question().await;
        let raw = stream.events().into_iter().find(|event| !event.raw.is_empty()).unwrap().raw;
        assert_eq!(raw, request("7", "elicitation/create", &params), "to the byte");
        user.answer(&question, ACCEPT).await;
        at.finish("the end");
        stream.result().await;

        let like = stage(Era::Modern, Era::Modern, "").await;
        let (client, at) = like.modern().await;
        at.asks(&[("k", &form)], Some(r#""S""#));
        let done_like = done(client).await;
        assert!(done_like.raw.contains(&form), "to the byte: {}", done_like.raw);

        let unlike = stage(Era::Modern, LATEST, "").await;
        let user = User::begin(&unlike.proxy, REVISION).await;
        let (client, at) = unlike.legacy(&user).await;
        at.asks(&[("k", &form)], Some(r#""S""#));
        let stream = done(client).await;
        assert_eq!(stream.question().await["params"]["requestedSchema"], schema, "{params}");
        for stage in [&like, &unlike] {
            assert_eq!(stage.refused(), 0.0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn warn_passes_forms_on() {
    let canary = Canary::new();
    let params = params(&format!(r#"{{"type":"string","$ref":"{}"}}"#, canary.url()));
    let form = format!(r#"{{"method":"elicitation/create","params":{params}}}"#);

    let like = stage(LATEST, LATEST, "policy = \"warn\"").await;
    let user = User::begin(&like.proxy, REVISION).await;
    let (client, at) = like.legacy(&user).await;
    at.event(&request("7", "elicitation/create", &params));
    let stream = done(client).await;
    let question = stream.question().await;
    assert_eq!(question["params"]["requestedSchema"]["properties"]["n"]["$ref"], canary.url());

    let like_modern = stage(Era::Modern, Era::Modern, "policy = \"warn\"").await;
    let (client, at) = like_modern.modern().await;
    at.asks(&[("k", &form)], Some(r#""S""#));
    let done = done(client).await;
    assert!(done.raw.contains(&form), "{}", done.raw);
    for stage in [&like, &like_modern] {
        assert_eq!(stage.refused(), 0.0);
        assert!(metric(&stage.proxy, crate::stage::FINDINGS, &["external_ref"]) >= 1.0);
        canary.is_untouched(&stage.net);
    }
}

/// A question on the session's own stream, and on the only channel of the other transports.
#[tokio::test(start_paused = true)]
async fn c62_a_form_beside_any_call() {
    let canary = Canary::new();
    let question = request("7", "elicitation/create", &bad(&canary)[0].1);
    for from in [Transport::Http, Transport::HttpSse, Transport::Stdio] {
        for to in [Transport::Http, Transport::HttpSse, Transport::Stdio] {
            let (net, gets) = (Net::new(), Gets::open());
            let server = gets.of(LegacyServer::telling());
            let up = match to {
                Transport::Http => server.start(&net),
                Transport::HttpSse => server.start_old_sse(&net),
                Transport::Stdio => server.start_program(&net, "server"),
            };
            let cell = crate::stage::Cell { client: LATEST, from, server: LATEST, to };
            let proxy = Arc::new(Proxy::configured(&net, &crate::stage::toml(cell, "", "", "")).await);
            let party = Party::join(&proxy, LATEST, from).await;
            party.open_stream().await;
            gets.wait(1).await;
            gets.tell(&question);
            is_refusal(&up.wait("response", 1).await[0].json(), 7);
            // What comes behind it arrives.
            gets.tell(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
            party.ear.first("a change", |said| said.brief() == "notifications/tools/list_changed").await;
            pass(1000).await;
            let heard = party.ear.raws().join("\n");
            assert!(!heard.contains("requestedSchema"), "{from:?} to {to:?}: {heard}");
            let answers = up.requests().iter().filter(|seen| seen.brief() == "response").count();
            assert_eq!(answers, 1, "{from:?} to {to:?}: answered once");
            canary.is_untouched(&net);
        }
    }
}

/// Other questions are not looked at, whatever they hold.
#[tokio::test(start_paused = true)]
async fn other_questions_are_not_the_guards() {
    let canary = Canary::new();
    let stage = stage(LATEST, LATEST, "").await;
    let user = User::begin(&stage.proxy, REVISION).await;
    let (client, at) = stage.legacy(&user).await;
    let words = format!(
        r#"{{"messages":[{{"role":"user","content":{{"type":"text","text":"requestedSchema"}}}}],"maxTokens":1,"metadata":{{"requestedSchema":{{"$ref":"{}"}}}}}}"#,
        canary.url()
    );
    at.event(&request("8", "sampling/createMessage", &words));
    let stream = done(client).await;
    let question = stream.question().await;
    assert_eq!(question["params"]["metadata"]["requestedSchema"]["$ref"], canary.url());
    at.event(&elicit("9", "m"));
    assert_eq!(stream.question().await["params"]["message"], "m");
    assert_eq!(stage.refused(), 0.0);
}
