//! Lists in disguise: other encodings, media types, status codes and framings that some client would read and the guard might
//! not. A client is never handed what was not looked at.

use std::sync::Arc;

use crate::stage::{bad, good};
use crate::support::{
    Answer, Ask, LegacyServer, ModernServer, Net, Old, Proxy, Reply, Seen, list, modern, rpc,
};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// What a server answers a list with: its head's further lines with the status, and the body.
#[derive(Clone)]
struct Disguise {
    what: &'static str,
    status: u16,
    head: String,
    body: fn(&str) -> Vec<u8>,
}

fn disguise(what: &'static str, status: u16, head: &str, body: fn(&str) -> Vec<u8>) -> Disguise {
    Disguise { what, status, head: head.to_owned(), body }
}

fn plain(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

fn event(text: &str) -> Vec<u8> {
    format!("event: message\ndata: {text}\n\n").into_bytes()
}

/// A proxy before a server of each era, and a client's request for the list.
async fn before(disguise: &Disguise) -> [(Proxy, Ask, Net); 2] {
    let tools = format!(r#""tools":[{},{}]"#, bad("out"), good("g0"));
    let answer = |result: String| {
        let own = disguise.clone();
        move |seen: Arc<Seen>, mut reply: Reply| {
            let body = (own.body)(&rpc::result_message(&seen.id(), &result));
            let head = format!(
                "HTTP/1.1 {} X\r\n{}\r\nContent-Length: {}\r\n\r\n",
                own.status,
                own.head,
                body.len()
            );
            async move { reply.raw(&[head.as_bytes(), &body].concat()).await }
        }
    };
    let net = Net::new();
    LegacyServer::new().on("tools/list", answer(format!("{{{tools}}}"))).start(&net);
    let proxy = Proxy::start(&net).await;
    let ask = Old::latest(&proxy).await.ask("tools/list").id("7");
    let old = (proxy, ask, net);
    let net = Net::new();
    ModernServer::full().on("tools/list", answer(modern::complete("tools/list", &tools))).start(&net);
    [old, (Proxy::start(&net).await, list("tools/list").id("7"), net)]
}

/// All bytes of the answer, as text of single bytes; what is between other bytes' noughts shows too.
async fn shown(answer: &mut Answer) -> String {
    let (bytes, _) = answer.pieces().await;
    bytes.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect()
}

async fn never_shown(all: &[Disguise]) {
    let mut failed = Vec::new();
    for one in all {
        for (proxy, ask, _net) in before(one).await {
            let mut answer = proxy.open(&ask).await;
            let text = shown(&mut answer).await;
            if text.contains("canary") || answer.headers.has("content-encoding") {
                failed.push(format!("{} (legacy: {}): {} {text}", one.what, ask.legacy, answer.status));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn media_types() {
    let types = [
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/json;odata=x",
        " application/json ",
        "application/json-rpc",
        "application/vnd.acme+json",
        "text/json",
        "text/plain",
        "text/html",
        "application/octet-stream",
    ];
    let mut all: Vec<_> =
        types.iter().map(|kind| disguise(kind, 200, &format!("Content-Type: {kind}"), plain)).collect();
    for kind in ["text/event-stream; charset=utf-8", "TEXT/EVENT-STREAM", "text/event-stream;x", "text/plain"]
    {
        all.push(disguise(kind, 200, &format!("Content-Type: {kind}"), event));
    }
    all.push(disguise("none at all", 200, "X-Own: 1", plain));
    all.push(disguise("an event, and none at all", 200, "X-Own: 1", event));
    all.push(disguise("events in JSON", 200, &format!("Content-Type: {JSON}"), event));
    all.push(disguise("two", 200, "Content-Type: text/plain\r\nContent-Type: application/json", plain));
    never_shown(&all).await;
}

#[tokio::test(start_paused = true)]
async fn status_codes() {
    let all: Vec<_> = [200, 201, 202, 203, 206, 299, 400, 404, 409, 418, 500, 503]
        .into_iter()
        .map(|status| disguise("a status", status, &format!("Content-Type: {JSON}"), plain))
        .collect();
    never_shown(&all).await;
}

#[tokio::test(start_paused = true)]
async fn encodings_of_text() {
    let json = format!("Content-Type: {JSON}");
    never_shown(&[
        disguise("a byte order mark", 200, &json, |text| [b"\xef\xbb\xbf", text.as_bytes()].concat()),
        disguise("UTF-16", 200, &json, |text| text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
        disguise("UTF-16 with a mark", 200, &json, |text| {
            let units = text.encode_utf16().flat_map(u16::to_be_bytes);
            [0xfe, 0xff].into_iter().chain(units).collect()
        }),
        disguise("UTF-32", 200, &json, |text| {
            text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect()
        }),
        disguise("no UTF-8", 200, &json, |text| {
            let at = text.find("canary").unwrap();
            [&text.as_bytes()[..at], b"\xff", &text.as_bytes()[at..]].concat()
        }),
        disguise("white space before it", 200, &json, |text| format!(" \r\n\t{text}\n").into_bytes()),
        disguise("something behind it", 200, &json, |text| format!("{text} x").into_bytes()),
        disguise("twice", 200, &json, |text| format!("{text}\n{text}").into_bytes()),
        disguise("a comment", 200, &json, |text| format!("/**/{text}").into_bytes()),
        disguise("in an array", 200, &json, |text| format!("[{text}]").into_bytes()),
        disguise("a comma too many", 200, &json, |text| text.replacen("}]}", "},]}", 1).into_bytes()),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn encodings_of_content() {
    for name in ["gzip", "x-gzip", "GZIP", "gzip, identity", "deflate", "br"] {
        for (kind, body) in
            [(JSON, gzip as fn(&str) -> Vec<u8>), (EVENTS, |text| gzip(&format!("data: {text}\n\n")))]
        {
            let head = format!("Content-Type: {kind}\r\nContent-Encoding: {name}");
            never_shown(&[disguise("compressed", 200, &head, body)]).await;
        }
    }
}

/// In blocks that are stored as they are (RFC 1952, RFC 1951 3.2.4).
fn gzip(text: &str) -> Vec<u8> {
    let mut crc = u32::MAX;
    for byte in text.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    let length = u16::try_from(text.len()).expect("one block");
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1];
    out.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
    out.extend(text.as_bytes());
    out.extend([(!crc).to_le_bytes(), u32::from(length).to_le_bytes()].concat());
    out
}

#[tokio::test(start_paused = true)]
async fn framings_of_events() {
    let events = format!("Content-Type: {EVENTS}");
    never_shown(&[
        disguise("a byte order mark", 200, &events, |text| format!("\u{feff}data: {text}\n\n").into_bytes()),
        disguise("no end", 200, &events, |text| format!("data: {text}").into_bytes()),
        disguise("half an end", 200, &events, |text| format!("data: {text}\n").into_bytes()),
        disguise("no space", 200, &events, |text| format!("data:{text}\n\n").into_bytes()),
        disguise("many spaces", 200, &events, |text| format!("data:   {text}\n\n").into_bytes()),
        disguise("another event", 200, &events, |text| format!("event: list\ndata: {text}\n\n").into_bytes()),
        disguise("an event without a name", 200, &events, |text| {
            format!("event\ndata: {text}\n\n").into_bytes()
        }),
        disguise("the name behind it", 200, &events, |text| {
            format!("data: {text}\nevent: message\n\n").into_bytes()
        }),
        disguise("an id behind it", 200, &events, |text| format!("data: {text}\nid: 5\n\n").into_bytes()),
        disguise("an empty line of data before it", 200, &events, |text| {
            format!("data\ndata: {text}\n\n").into_bytes()
        }),
        disguise("over two lines", 200, &events, |text| {
            let (a, b) = text.split_once("\"result\"").unwrap();
            format!("data: {a}\ndata: \"result\"{b}\n\n").into_bytes()
        }),
        disguise("lines that end in CR", 200, &events, |text| format!("data: {text}\r\r").into_bytes()),
        disguise("mixed ends", 200, &events, |text| format!(": x\rdata: {text}\r\n\n").into_bytes()),
        disguise("behind another event", 200, &events, |text| {
            format!("data: {{}}\n\ndata: {text}\n\n").into_bytes()
        }),
        disguise("two answers", 200, &events, |text| {
            format!("data: {text}\n\ndata: {text}\n\n").into_bytes()
        }),
        disguise("an array", 200, &events, |text| format!("data: [{text}]\n\n").into_bytes()),
        disguise("white space in the data", 200, &events, |text| format!("data: \t{text} \n\n").into_bytes()),
        disguise("no UTF-8", 200, &events, |text| {
            let at = text.find("canary").unwrap();
            [b"data: ", &text.as_bytes()[..at], b"\xff", &text.as_bytes()[at..], b"\n\n"].concat()
        }),
    ])
    .await;
}
