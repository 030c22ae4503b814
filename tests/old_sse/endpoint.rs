//! C42: where messages go, by what the `endpoint` event says and by the setting.

use crate::support::{LegacyServer, Net, OldSseServer, Proxy, Reply, list};

const AT: &str = "/api/v1/sse";

async fn proxy(net: &Net, lines: &str) -> Proxy {
    Proxy::configured(
        net,
        &format!("[upstream.up]\nurl = \"http://up.test{AT}\"\ntransport = \"sse\"\n{lines}"),
    )
    .await
}

fn server(endpoint: &str) -> OldSseServer {
    OldSseServer::new(&LegacyServer::new()).at(AT).endpoint(endpoint)
}

#[tokio::test(start_paused = true)]
async fn c42_relative_forms_are_resolved_against_the_streams_url() {
    let table = [
        ("/messages?sid={sid}", "/messages?sid=s1"),
        ("messages?sid={sid}", "/api/v1/messages?sid=s1"),
        ("?sid={sid}", "/api/v1/sse?sid=s1"),
        ("../m/?sid={sid}&key=a%20b", "/api/m/?sid=s1&key=a%20b"),
        ("//up.test/m?sid={sid}", "/m?sid=s1"),
        ("http://UP.test:80/m?sid={sid}#part", "/m?sid=s1"),
    ];
    for (endpoint, target) in table {
        let net = Net::new();
        let up = server(endpoint).start(&net);
        let proxy = proxy(&net, "").await;
        proxy.send(&list("tools/list")).await.result();
        let posts: Vec<_> = up.requests().into_iter().filter(|seen| seen.verb == "POST").collect();
        assert_eq!(posts.len(), 3, "{:?}", up.briefs());
        assert!(posts.iter().all(|seen| seen.target == target), "{endpoint}: {}", posts[0].target);
    }
}

#[tokio::test(start_paused = true)]
async fn c42_a_cross_origin_endpoint_is_refused_and_nothing_is_sent_there() {
    let elsewhere = [
        "//evil.example/m?sid={sid}",
        "http://internal:9000/m?sid={sid}",
        "https://other.example/m",
        "https://up.test/m",
        "http://up.test:81/m",
        "http://user:password@up.test/m",
        "http://up.test.evil.example/m",
    ];
    for transport in ["sse", "auto"] {
        for endpoint in elsewhere {
            let net = Net::new();
            let up = server(endpoint).start(&net);
            let evil = ["evil.example", "internal:9000", "up.test:81", "up.test.evil.example"]
                .map(|authority| LegacyServer::new().start_at(&net, authority));
            let lines = format!("url = \"http://up.test{AT}\"\ntransport = \"{transport}\"");
            let proxy = Proxy::configured(&net, &format!("[upstream.up]\n{lines}")).await;
            let done = proxy.send(&list("tools/list").bearer("secret").id("7")).await;
            done.is_error(502, -32603);
            let told = if transport == "sse" { "another origin" } else { "405" };
            assert!(done.raw.contains(told), "{endpoint}: {}", done.raw);
            assert!(net.dialled().iter().all(|at| at == "up.test:80"), "{endpoint}: {:?}", net.dialled());
            assert!(evil.iter().all(|other| other.requests().is_empty()));
            let posts = up.requests().iter().filter(|seen| seen.verb == "POST" && seen.target != AT).count();
            assert_eq!(posts, 0, "{endpoint}: {:?}", up.briefs());
        }
    }
}

/// A known fault of servers behind a prefix that they are not told of.
#[tokio::test(start_paused = true)]
async fn c42_an_override_mends_a_path_that_has_lost_its_prefix() {
    let table = [
        ("/api/v1/messages", "/messages?sid={sid}", "/api/v1/messages?sid=s1"),
        ("messages", "/messages?sid={sid}", "/api/v1/messages?sid=s1"),
        (
            "http://up.test/api/v1/messages",
            "http://internal:9000/messages?sid={sid}",
            "/api/v1/messages?sid=s1",
        ),
        ("/m?key=k", "/messages?sid={sid}", "/m?key=k&sid=s1"),
    ];
    for (setting, endpoint, target) in table {
        let net = Net::new();
        let up = server(endpoint).start(&net);
        let proxy = proxy(&net, &format!("sse_endpoint = \"{setting}\"")).await;
        proxy.send(&list("tools/list")).await.result();
        assert!(up.posts("tools/list").iter().all(|seen| seen.target == target), "{setting}");
        assert_eq!(up.posts("tools/list").len(), 1, "{setting}");
    }
}

#[tokio::test(start_paused = true)]
async fn c42_the_endpoint_is_read_where_a_redirect_led() {
    let net = Net::new();
    let server = OldSseServer::new(&LegacyServer::new()).at("/v2/stream/").endpoint("messages?sid={sid}");
    let moved = server.clone();
    let up = net.serve(
        "up.test",
        crate::support::net::Receiver::OldSse,
        crate::support::net::handler(move |seen, reply: Reply| {
            let server = moved.clone();
            async move {
                match seen.target.as_str() {
                    AT => reply.with("Location", "/v2/stream/").empty(307).await,
                    _ => server.answer(seen, reply).await,
                }
            }
        }),
    );
    let proxy = proxy(&net, "").await;
    proxy.send(&list("tools/list")).await.result();
    assert_eq!(up.only("tools/list").target, "/v2/stream/messages?sid=s1");
}

#[tokio::test(start_paused = true)]
async fn c42_whatever_comes_before_the_endpoint_is_passed_over() {
    for before in [
        ": keep-alive\n\n",
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
        "event: ping\ndata: {}\n\n",
        "id: 1\nretry: 1000\n\n",
    ] {
        let net = Net::new();
        server("/messages?sid={sid}").before(before).start(&net);
        let proxy = proxy(&net, "").await;
        proxy.send(&list("tools/list")).await.result();
    }
}

#[tokio::test(start_paused = true)]
async fn c42_a_missing_endpoint_is_a_timeout_that_says_so() {
    let net = Net::new();
    let server = server("").without_endpoint();
    let up = server.start(&net);
    let proxy = proxy(&net, "").await;
    let since = tokio::time::Instant::now();
    let done = proxy.send(&list("tools/list").id("7")).await;
    assert_eq!((done.status, done.code()), (504, -32603), "{}", done.raw);
    assert!(done.raw.contains("`endpoint`"), "{}", done.raw);
    assert!(since.elapsed().as_secs() <= 60, "{:?}", since.elapsed());
    assert_eq!(up.briefs(), ["GET"]);
    server.stream(1).await.closed().await;
}
