//! A small modern server for the `demo` command: revision 2026-07-28 alone, with the one tool `book`.
//!
//! Owns what such a server insists on (version, headers that agree with the body, all that there is to know in each request)
//! and asking by an answer, `input_required`. It keeps nothing between requests. Does not own the form and what becomes of it
//! (`booking`). Spec: 2026-07-28, basic/transports/streamable-http, basic/patterns/mrtr. Deliberately absent: subscriptions,
//! lists of anything else.

use std::convert::Infallible;

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::booking;
use super::features::Refusal;
use super::respond::{Body, Rejection, answer, empty, error, refuse, result};

const VERSION: &str = "2026-07-28";
const META: &str = "io.modelcontextprotocol/";
const MOST_BODY_BYTES: usize = 1 << 20;
/// The name of the one question.
const KEY: &str = "guests";
/// A server that has more to say in its state seals it; here it says only that the question was asked.
const STATE: &str = "asked for how many";

/// Serves on the listener, at any path, until `stop` is ready.
pub async fn serve(listener: TcpListener, stop: impl Future) {
    // Dropped with their set.
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            _ = &mut stop => return,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            Ok((stream, _)) = listener.accept() => {
                let service = service_fn(|request| async { Ok::<_, Infallible>(handle(request).await) });
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new());
                connections.spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        }
    }
}

async fn handle(request: Request<Incoming>) -> Response<Body> {
    if request.method() != Method::POST {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, -32000, "Method not allowed").into_response();
    }
    let (head, body) = request.into_parts();
    let message = match Limited::new(body, MOST_BODY_BYTES).collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
        Err(_) => Value::Null,
    };
    post(&head.headers, &message).unwrap_or_else(Rejection::into_response)
}

fn post(headers: &HeaderMap, message: &Value) -> Result<Response<Body>, Rejection> {
    let Some(method) = message["method"].as_str() else {
        return Err(refuse(StatusCode::BAD_REQUEST, -32600, "Invalid Request"));
    };
    if message.get("id").is_none() {
        return Ok(empty(StatusCode::ACCEPTED));
    }
    let id = message["id"].clone();
    let (status, message) = match check(headers, message, method).and_then(|()| run(method, message)) {
        Ok(mut value) => {
            value["_meta"][format!("{META}serverInfo")] = introduction();
            (StatusCode::OK, result(id, value))
        }
        Err((status, refusal)) => (status, error(id, refusal)),
    };
    let mut response = answer(&message);
    *response.status_mut() = status;
    Ok(response)
}

type Refused = (StatusCode, Refusal);

fn bad(code: i64, message: &str, data: Option<Value>) -> Refused {
    (StatusCode::BAD_REQUEST, Refusal { code, message: message.to_owned(), data })
}

/// What holds for every request.
fn check(headers: &HeaderMap, message: &Value, method: &str) -> Result<(), Refused> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let params = &message["params"];
    let meta = |key: &str| &params["_meta"][format!("{META}{key}")];
    if header("mcp-protocol-version") != Some(VERSION) {
        let requested = header("mcp-protocol-version").unwrap_or_default();
        let data = json!({ "supported": [VERSION], "requested": requested });
        return Err(bad(-32022, "Unsupported protocol version", Some(data)));
    }
    if *meta("protocolVersion") != VERSION || !meta("clientCapabilities").is_object() {
        return Err(bad(-32602, "_meta lacks the version or the capabilities", None));
    }
    let place = params["arguments"]["place"].as_str();
    let repeated = header("mcp-method") == Some(method)
        && (method != "tools/call"
            || header("mcp-name") == params["name"].as_str() && header("mcp-param-place") == place);
    if repeated { Ok(()) } else { Err(bad(-32020, "Header mismatch", None)) }
}

fn run(method: &str, message: &Value) -> Result<Value, Refused> {
    match method {
        "server/discover" => Ok(json!({
            "resultType": "complete",
            "supportedVersions": [VERSION],
            "capabilities": { "tools": {} },
            "instructions": "A server to try things on. Nothing that it does has an effect.",
            "ttlMs": 0,
            "cacheScope": "public",
        })),
        "tools/list" => {
            let mut tool = booking::tool();
            tool["inputSchema"]["properties"]["place"]["x-mcp-header"] = json!("Place");
            Ok(json!({ "resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "public" }))
        }
        "tools/call" if message["params"]["name"] == "book" => book(&message["params"]),
        "tools/call" => Err((StatusCode::OK, Refusal::new(-32602, "Unknown tool"))),
        _ => Err((StatusCode::NOT_FOUND, Refusal::new(-32601, "Method not found"))),
    }
}

/// Asks, or goes by what was answered.
fn book(params: &Value) -> Result<Value, Refused> {
    let place = params["arguments"]["place"].as_str().unwrap_or("nowhere");
    if let Some(responses) = params.get("inputResponses") {
        if params["requestState"] != STATE {
            return Err((StatusCode::OK, Refusal::new(-32602, "No such state")));
        }
        let mut outcome = booking::outcome(place, &json!({ "result": responses[KEY] }));
        outcome["resultType"] = json!("complete");
        return Ok(outcome);
    }
    let able = &params["_meta"][format!("{META}clientCapabilities")];
    if !booking::can_be_asked("2025-11-25", able) {
        let needed = json!({ "requiredCapabilities": { "elicitation": { "form": {} } } });
        return Err(bad(-32021, "Missing required client capability", Some(needed)));
    }
    Ok(json!({
        "resultType": "input_required",
        "inputRequests": { KEY: { "method": "elicitation/create", "params": booking::question(place) } },
        "requestState": STATE,
    }))
}

fn introduction() -> Value {
    json!({
        "name": "mcp-janus-demo-modern",
        "title": "mcp-janus demo server of 2026-07-28",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(method: &str, params: Value, headers: &[(&'static str, &'static str)]) -> (u16, Value) {
        let mut message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let meta = &mut message["params"]["_meta"];
        meta[format!("{META}protocolVersion")] = json!(VERSION);
        if meta[format!("{META}clientCapabilities")].is_null() {
            meta[format!("{META}clientCapabilities")] = json!({ "elicitation": {} });
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let response = post(&map, &message).unwrap_or_else(Rejection::into_response);
        let status = response.status().as_u16();
        let body = futures_util::FutureExt::now_or_never(response.into_body().collect()).unwrap().unwrap();
        (status, serde_json::from_slice(&body.to_bytes()).unwrap_or_default())
    }

    const CALL: [(&str, &str); 4] = [
        ("mcp-protocol-version", VERSION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "book"),
        ("mcp-param-place", "Luigi's"),
    ];

    fn called(more: Value) -> Value {
        let mut params = json!({ "name": "book", "arguments": { "place": "Luigi's" } });
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    }

    /// basic/patterns/mrtr: a question is an answer, and the retry brings what was said with the state as it came.
    #[test]
    fn it_asks_by_its_answer_and_takes_the_retry() {
        let (status, asked) = ask("tools/call", called(json!({})), &CALL);
        let asked = &asked["result"];
        assert_eq!((status, &asked["resultType"]), (200, &json!("input_required")));
        assert_eq!(asked["inputRequests"][KEY]["method"], "elicitation/create");
        let accepted = json!({ "action": "accept", "content": { "guests": 2 } });
        let retry =
            json!({ "requestState": asked["requestState"], "inputResponses": { KEY: accepted.clone() } });
        let (_, booked) = ask("tools/call", called(retry), &CALL);
        assert_eq!(booked["result"]["resultType"], "complete");
        assert_eq!(booked["result"]["content"][0]["text"], "A table for 2 at Luigi's, inside.");
        let other = json!({ "requestState": "other", "inputResponses": { KEY: accepted } });
        assert_eq!(ask("tools/call", called(other), &CALL).1["error"]["code"], -32602);
    }

    /// basic/transports/streamable-http, Server Validation; basic/versioning.
    #[test]
    fn what_it_does_not_take() {
        let none = |skipped: usize| {
            let mut headers = CALL.to_vec();
            headers.remove(skipped);
            ask("tools/call", called(json!({})), &headers)
        };
        let (status, refused) = none(0);
        assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32022)));
        assert_eq!(refused["error"]["data"]["supported"], json!([VERSION]));
        for skipped in 1..4 {
            let (status, refused) = none(skipped);
            assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32020)), "{skipped}");
        }
        let silent = json!({ "_meta": { format!("{META}clientCapabilities"): {} } });
        let (status, refused) = ask("tools/call", called(silent), &CALL);
        assert_eq!((status, &refused["error"]["code"]), (400, &json!(-32021)));
        let (status, refused) = ask("ping", json!({}), &[CALL[0], ("mcp-method", "ping")]);
        assert_eq!((status, &refused["error"]["code"]), (404, &json!(-32601)));
    }
}
