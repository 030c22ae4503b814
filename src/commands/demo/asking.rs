//! The steps of the demo in which the server asks its client something in the middle of a call.
//!
//! Owns what the two wires must show: on the modern one the question is an answer and the answer is a request, on the
//! legacy one both belong to one call that was never interrupted. Does not own the form itself, which is the server's.

use serde_json::{Value, json};

use super::client::Request;
use super::frames::{Frame, Head, Way, What, Wire};
use super::seen::expect;
use super::steps::{CALL, STEP, Step};

const BOOK: Request = Request {
    method: "tools/call",
    name: Some("book"),
    params: r#""name":"book","arguments":{"place":"Luigi's"},"#,
    ..CALL
};

pub(super) fn asked() -> Step {
    Step {
        title: "tools/call book, which asks something",
        look: "The legacy server sends elicitation/create on the stream of the call and waits. A modern client takes no \
               requests: it gets the question as the answer, input_required, with a key and a sealed state. The call at \
               the server stays open.",
        request: Request { id: r#""call-3""#, ..BOOK },
        check: |seen| {
            seen.status(200)?;
            expect(seen.last()["id"] == "call-3", "the answer should have the request's id")?;
            seen.result("/resultType", &json!("input_required"))?;
            expect(seen.last()["result"].get("ttlMs").is_none(), "a question is not to be kept")?;
            let theirs = seen.back(Way::ToClient);
            let theirs = theirs.iter().find(|message| message["method"] == "elicitation/create");
            let theirs = theirs.ok_or("the server should have asked")?;
            let entries = seen.last()["result"]["inputRequests"].as_object();
            let entries: Vec<&Value> = entries.map(|entries| entries.values().collect()).unwrap_or_default();
            expect(
                entries == [&json!({"method": "elicitation/create", "params": theirs["params"]})],
                "the question should be the server's, without its number",
            )?;
            expect(seen.last()["result"]["requestState"].is_string(), "there should be a state")?;
            let methods = seen.methods();
            expect(
                methods == ["tools/call"],
                format!("the server should get the call alone, not {methods:?}"),
            )
        },
        ..STEP
    }
}

pub(super) fn answered() -> Step {
    Step {
        title: "the same call again, with the answer",
        look: "The client repeats its request under a new id, with what the user said and the state as it came. The server \
               gets no second tools/call but the response to its question, under its own number; the result comes on the \
               stream that was open all the time.",
        request: Request {
            id: r#""call-4""#,
            says: Some(r#"{"action":"accept","content":{"guests":2,"terrace":true}}"#),
            ..BOOK
        },
        settled: |frames| {
            let back = || frames.iter().filter(|frame| frame.wire == Wire::Back);
            let accepted = |frame: &Frame| frame.what.head().and_then(Head::status) == Some(202);
            back().any(accepted) && back().any(|frame| frame.what == What::Ended)
        },
        check: |seen| {
            seen.ok("call-4")?;
            seen.result("/content/0/text", &json!("A table for 2 at Luigi's, on the terrace."))?;
            let sent = seen.back(Way::ToServer);
            let [response] = &sent[..] else {
                return Err(format!("the server should get one message, not {}", sent.len()));
            };
            let said = json!({"action": "accept", "content": {"guests": 2, "terrace": true}});
            expect(response["result"] == said, "the server should get what the user said")?;
            expect(
                response["id"] == 1 && response.get("method").is_none(),
                "the response should be to the server's question",
            )
        },
        ..STEP
    }
}

pub(super) fn not_to_be_asked() -> Step {
    Step {
        title: "the same call by a client that cannot be asked",
        look: "This request declares no capability, and what a server is told at initialize holds for a whole session, so it \
               goes up in another session, whose initialize promises nothing. The server does not ask; its tool says why \
               nothing came of it.",
        request: Request { id: r#""call-5""#, capabilities: "{}", ..BOOK },
        check: |seen| {
            seen.ok("call-5")?;
            seen.result("/isError", &json!(true))?;
            let able = &seen.one("initialize")?["params"]["capabilities"];
            expect(*able == json!({}), format!("the server should be promised nothing, not {able}"))?;
            seen.one("tools/call").map(drop)
        },
        ..STEP
    }
}
