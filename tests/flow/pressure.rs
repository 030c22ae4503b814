//! Invariant 5: a client that does not read stops its server within a bounded number of bytes, and only its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{STYLES, Style, Writing};
use crate::support::{LegacyServer, ModernServer, Net, Proxy, Reply, Seen, call, json, list, pass};

/// Far more than may be under way.
const WHOLE: usize = 6 << 20;
const STEP: usize = 32 << 10;

/// What tests' connections (256 KiB each way, twice) and the HTTP library on both sides hold, whatever the settings.
const BETWEEN: usize = 512 * 1024 + 1024 * 1024;

/// What a server could write so far.
#[derive(Clone, Default)]
struct Written(Arc<AtomicUsize>);

impl Written {
    fn bytes(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Writes one result without any line end.
    async fn result(self, seen: Arc<Seen>, reply: Reply, style: Style) {
        let mut writing = Writing::begin(reply, style).await;
        let id = seen.id();
        writing
            .write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":["#))
            .await;
        let item = format!(r#"{{"type":"text","text":"{}"}},"#, "x".repeat(STEP));
        while self.bytes() < WHOLE {
            writing.write(&item).await;
            self.0.fetch_add(item.len(), Ordering::SeqCst);
        }
        writing.write(r#"{"type":"text","text":""}]}}"#).await;
        writing.end().await;
    }

    /// Writes notifications, and a small result.
    async fn events(self, seen: Arc<Seen>, mut reply: Reply, size: usize) {
        reply.stream().await;
        let token = seen.json()["params"]["_meta"]["progressToken"].clone();
        let mut progress = 0;
        while self.bytes() < WHOLE {
            progress += 1;
            let params = json!({"progressToken": token, "progress": progress, "message": "x".repeat(size)});
            let event =
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string();
            reply.event(&event).await;
            self.0.fetch_add(event.len(), Ordering::SeqCst);
        }
        reply.result_event(&seen, r#"{"resultType":"complete","content":[]}"#).await;
        reply.end().await;
    }
}

/// Asks, does not read, and looks how far the server gets; then reads it all.
async fn stops(proxy: &Proxy, written: &Written, bound: usize, what: &str) {
    let ask = call("echo", "{}").id("7").meta("progressToken", "1");
    let mut answer = proxy.open(&ask).await;
    pass(30_000).await;
    let stopped = written.bytes();
    assert!(stopped < bound, "{what}: the server wrote {stopped} bytes, more than {bound}");
    pass(30_000).await;
    // Keep-alive comments may go out, nothing more is read for them.
    assert_eq!(written.bytes(), stopped, "{what}");
    assert!(stopped > 100_000, "{what}: it wrote only {stopped} bytes");
    // Others are served meanwhile.
    proxy.send(&list("tools/list")).await.result();
    let (body, broken) = answer.pieces().await;
    assert!(!broken && body.len() > WHOLE, "{what}: {} bytes, broken {broken}", body.len());
    let text = String::from_utf8(body).unwrap();
    let result = text.trim_end().lines().rfind(|line| line.contains("\"result\"")).unwrap();
    let result: serde_json::Value = serde_json::from_str(result.trim_start_matches("data:")).unwrap();
    assert_eq!((&result["id"], &result["result"]["resultType"]), (&json!(7), &json!("complete")), "{what}");
}

#[tokio::test(start_paused = true)]
async fn inv5_a_result_of_a_legacy_server() {
    for style in STYLES {
        for (setting, bytes) in [("64KiB", 64 << 10), ("2MiB", 2 << 20)] {
            let written = Written::default();
            let of_server = written.clone();
            let server = LegacyServer::new()
                .on("tools/call", move |seen, reply: Reply| of_server.clone().result(seen, reply, style));
            let net = Net::new();
            let _up = server.start(&net);
            let toml = format!(
                "[limits]\nevent_bytes = \"{setting}\"\nevents = 1024\n[upstream.up]\nurl = \"http://up.test/mcp\"\n"
            );
            let proxy = Proxy::configured(&net, &toml).await;
            stops(&proxy, &written, BETWEEN + bytes, &format!("{style:?}, {setting}")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_a_result_of_a_modern_server() {
    for style in STYLES {
        let written = Written::default();
        let of_server = written.clone();
        let server = ModernServer::new()
            .on("tools/call", move |seen, reply: Reply| of_server.clone().result(seen, reply, style));
        let (proxy, _up) = Proxy::before_modern(&server).await;
        stops(&proxy, &written, BETWEEN, &format!("{style:?}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn inv5_notifications_of_either_server() {
    for size in [100, 10_000, 300_000] {
        let written = Written::default();
        let of_server = written.clone();
        let server = ModernServer::new()
            .on("tools/call", move |seen, reply: Reply| of_server.clone().events(seen, reply, size));
        let (proxy, _up) = Proxy::before_modern(&server).await;
        stops(&proxy, &written, BETWEEN, &format!("modern, {size}")).await;

        let written = Written::default();
        let of_server = written.clone();
        let server = LegacyServer::new()
            .on("tools/call", move |seen, reply: Reply| of_server.clone().events(seen, reply, size));
        let (proxy, _up) = Proxy::before(&server).await;
        // `limits.event_bytes` is 1 MiB, and one more event is in hand.
        stops(&proxy, &written, BETWEEN + (1 << 20) + size, &format!("legacy, {size}")).await;
    }
}
