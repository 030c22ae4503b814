//! The calls that the demo makes, what to look at in each, and what must have come of it.
//!
//! Owns the script. Each check reads the answer that the client got and what was on both wires, by the rules of the two
//! revisions, so that the demo is also a test of the proxy that it shows. Does not own running or printing, nor the steps in
//! which the server asks something (`asking`).

use serde_json::json;

use super::asking;
use super::client::Request;
use super::frames::{Frame, Head, Way, What, Wire};
use super::seen::{Seen, expect, heads};

/// One call.
pub(super) struct Step {
    pub(super) title: &'static str,
    /// One sentence.
    pub(super) look: &'static str,
    pub(super) request: Request,
    /// Close the stream after so many messages.
    pub(super) most: Option<usize>,
    /// What else must be on the wires before the step is over.
    pub(super) settled: fn(&[Frame]) -> bool,
    pub(super) check: fn(&Seen<'_>) -> Result<(), String>,
}

/// A client says the same of itself in each request.
pub(super) const CALL: Request = Request {
    id: "1",
    method: "",
    name: None,
    params: "",
    token: None,
    claim: None,
    capabilities: r#"{"elicitation":{"form":{}}}"#,
    says: None,
};
pub(super) const STEP: Step =
    Step { title: "", look: "", request: CALL, most: None, settled: |_| true, check: |_| Ok(()) };

pub(super) fn all() -> [Step; 15] {
    [
        discover(),
        list(),
        add(),
        count(),
        asking::asked(),
        asking::answered(),
        asking::not_to_be_asked(),
        read(),
        prompt(),
        complete(),
        not_found(),
        unknown_method(),
        mismatch(),
        old_method(),
        cancel(),
    ]
}

fn discover() -> Step {
    Step {
        title: "server/discover",
        look: "A modern client has no handshake, it just asks; the proxy finds out that the server is legacy (it refuses \
               server/discover), opens a session with initialize and makes the answer from what that returned. What the \
               client can be asked (elicitation) it says in each request; the server is told once, for the session, and \
               its own stream (GET) is asked for, as it may ask there. This server has none.",
        request: Request { id: r#""discover-1""#, method: "server/discover", ..CALL },
        settled: |frames| heads(frames, Way::ToClient).any(|head| head.status() == Some(405)),
        check: |seen| {
            seen.ok("discover-1")?;
            seen.result("/supportedVersions/0", &json!("2026-07-28"))?;
            seen.result("/_meta/io.modelcontextprotocol~1serverInfo/name", &json!("mcp-janus-demo"))?;
            let methods = seen.methods();
            expect(
                methods == ["server/discover", "initialize", "notifications/initialized"],
                format!("the server should get a probe and then the handshake, it got {methods:?}"),
            )?;
            let able = &seen.one("initialize")?["params"]["capabilities"];
            expect(
                *able == json!({"elicitation": {"form": {}}}),
                format!("the server should be told what its client can be asked, it was told {able}"),
            )?;
            let session = seen.heads(Way::ToServer).last().and_then(|head| head.get("mcp-session-id"));
            expect(session.is_some(), "notifications/initialized should carry the session's id")
        },
        ..STEP
    }
}

fn list() -> Step {
    Step {
        title: "tools/list",
        look: "The session is there already: the call goes up in it under a number of the proxy's own and without the \
               modern _meta; the answer gets what every modern result has (resultType, ttlMs, cacheScope, serverInfo).",
        request: Request { id: "7", method: "tools/list", ..CALL },
        check: |seen| {
            seen.ok(7)?;
            seen.result("/ttlMs", &json!(0))?;
            seen.result("/cacheScope", &json!("private"))?;
            seen.result("/tools/1/name", &json!("add"))?;
            let sent = seen.one("tools/list")?;
            expect(sent.get("params").is_none(), "emptied params should be left out")
        },
        ..STEP
    }
}

fn add() -> Step {
    Step {
        title: "tools/call add",
        look: "The arguments and the result pass through as they are; the client's id is a text, the server's is a number.",
        request: Request {
            id: r#""call-1""#,
            method: "tools/call",
            name: Some("add"),
            params: r#""name":"add","arguments":{"a":2,"b":40},"#,
            ..CALL
        },
        check: |seen| {
            seen.ok("call-1")?;
            seen.result("/structuredContent/sum", &json!(42))?;
            let sent = seen.one("tools/call")?;
            expect(
                sent["params"] == json!({"name": "add", "arguments": {"a": 2, "b": 40}}),
                "params were altered",
            )
        },
        ..STEP
    }
}

fn count() -> Step {
    Step {
        title: "tools/call count, with progress",
        look: "The progress token \"mine\" becomes a number upstream, so that two clients may use the same one, and is \
               put back in each notification; progress comes first, so the client's answer is an event stream.",
        request: Request {
            id: r#""call-2""#,
            method: "tools/call",
            name: Some("count"),
            params: r#""name":"count","arguments":{"n":3},"#,
            token: Some(r#""mine""#),
            ..CALL
        },
        check: |seen| {
            seen.ok("call-2")?;
            seen.result("/content/0/text", &json!("Counted to 3."))?;
            let tokens: Vec<_> = seen.answer.messages.iter().map(|m| &m["params"]["progressToken"]).collect();
            expect(
                tokens[..tokens.len() - 1] == ["mine"; 3],
                "three notifications should carry the client's token",
            )?;
            let sent = seen.one("tools/call")?;
            expect(
                sent["params"]["_meta"] == json!({"progressToken": sent["id"]}),
                "the token upstream is wrong",
            )
        },
        ..STEP
    }
}

fn read() -> Step {
    Step {
        title: "resources/read",
        look: "Mcp-Name repeats what is read, for whatever stands in front of a modern server; a legacy server gets no \
               such header.",
        request: Request {
            id: "8",
            method: "resources/read",
            name: Some("demo://greeting/Ada"),
            params: r#""uri":"demo://greeting/Ada","#,
            ..CALL
        },
        check: |seen| {
            seen.ok(8)?;
            seen.result("/contents/0/text", &json!("Hello, Ada!"))?;
            seen.result("/cacheScope", &json!("private"))?;
            let named = seen.heads(Way::ToServer).any(|head| head.get("mcp-name").is_some());
            expect(!named, "a legacy server should get no Mcp-Name")
        },
        ..STEP
    }
}

fn prompt() -> Step {
    Step {
        title: "prompts/get",
        look: "The same again for a prompt: only the envelope changes.",
        request: Request {
            id: "9",
            method: "prompts/get",
            name: Some("greet"),
            params: r#""name":"greet","arguments":{"name":"Grace"},"#,
            ..CALL
        },
        check: |seen| {
            seen.ok(9)?;
            seen.result("/messages/0/content/text", &json!("Greet Grace in one friendly sentence."))
        },
        ..STEP
    }
}

fn complete() -> Step {
    Step {
        title: "completion/complete",
        look: "Completion exists in both generations; its result is not to be cached, so it gets no ttlMs.",
        request: Request {
            id: "10",
            method: "completion/complete",
            params: r#""ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"a"},"#,
            ..CALL
        },
        check: |seen| {
            seen.ok(10)?;
            seen.result("/completion/values", &json!(["Ada", "Alan"]))?;
            expect(seen.last()["result"].get("ttlMs").is_none(), "there should be no ttlMs")
        },
        ..STEP
    }
}

fn not_found() -> Step {
    Step {
        title: "resources/read of something that is not there",
        look: "The legacy error -32002 has another meaning today: the client gets -32602 with the uri in data.",
        request: Request {
            id: "11",
            method: "resources/read",
            name: Some("demo://nothing"),
            params: r#""uri":"demo://nothing","#,
            ..CALL
        },
        check: |seen| {
            seen.error(200, 11, -32602)?;
            expect(seen.last()["error"]["data"]["uri"] == "demo://nothing", "data.uri is missing")?;
            let theirs = seen.back(Way::ToClient).pop().unwrap_or_default();
            expect(theirs["error"]["code"] == -32002, "the server should have said -32002")
        },
        ..STEP
    }
}

fn unknown_method() -> Step {
    Step {
        title: "a method that the server does not have",
        look: "The proxy passes on what it does not know; the server's -32601 came with status 200, a modern client gets 404.",
        request: Request { id: "12", method: "demo/unknown", ..CALL },
        check: |seen| {
            seen.error(404, 12, -32601)?;
            seen.one("demo/unknown").map(drop)
        },
        ..STEP
    }
}

fn mismatch() -> Step {
    Step {
        title: "headers that contradict the body",
        look: "Mcp-Method says tools/list, the body says tools/call: refused with -32020, and the server hears nothing of it.",
        request: Request {
            id: "13",
            method: "tools/call",
            name: Some("add"),
            params: r#""name":"add","arguments":{"a":1,"b":1},"#,
            claim: Some("tools/list"),
            ..CALL
        },
        check: |seen| {
            seen.error(400, 13, -32020)?;
            expect(seen.back(Way::ToServer).is_empty(), "nothing should go upstream")
        },
        ..STEP
    }
}

fn old_method() -> Step {
    Step {
        title: "a method of the legacy generation",
        look: "The modern revision has no ping any more: the client gets 404 from the proxy itself.",
        request: Request { id: "14", method: "ping", ..CALL },
        check: |seen| {
            seen.error(404, 14, -32601)?;
            expect(seen.back(Way::ToServer).is_empty(), "nothing should go upstream")
        },
        ..STEP
    }
}

fn cancel() -> Step {
    Step {
        title: "cancelling a call",
        look: "A modern client cancels by closing its stream, which means nothing to a legacy server: it gets \
               notifications/cancelled with the number that the proxy had given the call.",
        request: Request {
            id: r#""call-6""#,
            method: "tools/call",
            name: Some("count"),
            params: r#""name":"count","arguments":{"n":100},"#,
            token: Some("1"),
            ..CALL
        },
        most: Some(2),
        settled: |frames| {
            let back = || frames.iter().filter(|frame| frame.wire == Wire::Back);
            let told = back().position(|frame| frame.what.json().contains("notifications/cancelled"));
            let accepted = |frame: &Frame| frame.what.head().and_then(Head::status) == Some(202);
            told.is_some_and(|at| back().skip(at).any(accepted))
                && back().any(|frame| matches!(frame.what, What::Closed | What::Ended))
        },
        check: |seen| {
            let sent = seen.one("tools/call")?;
            let cancelled = seen.one("notifications/cancelled")?;
            expect(cancelled["params"]["requestId"] == sent["id"], "another request was cancelled")?;
            let closed = |frame: &Frame| frame.wire == Wire::Front && frame.what == What::Closed;
            expect(seen.frames.iter().any(closed), "the client should have closed its stream")
        },
    }
}
