//! JSON bodies: A12.21, A13.7.

use crate::stage::{BAD, GOOD, LEGACY, Like, OTHER, WARN, message};
use crate::support::{Era, Reply};

fn json(
    text: String,
) -> impl Fn(Reply) -> futures_util::future::BoxFuture<'static, ()> + Send + Sync + 'static {
    move |reply| {
        let text = text.clone();
        Box::pin(async move { reply.json(200, &text).await })
    }
}

#[tokio::test(start_paused = true)]
async fn c62_a_bad_tool_is_left_out_of_a_body() {
    for era in [Era::Modern, LEGACY] {
        for (tools, left) in [
            (vec![GOOD, BAD, OTHER], vec![GOOD, OTHER]),
            (vec![BAD], vec![]),
            (vec![GOOD, OTHER], vec![GOOD, OTHER]),
        ] {
            let like = Like::of(era, "tools/list", "", json(message(era, "7", &tools))).await;
            assert_eq!(like.body(&like.list()).await, message(era, "7", &left), "{era:?}");
            let like = Like::of(era, "tools/list", WARN, json(message(era, "7", &tools))).await;
            assert_eq!(like.body(&like.list()).await, message(era, "7", &tools), "{era:?} warn");
        }
    }
}

/// The same list again is known by its bytes, under another id too.
#[tokio::test(start_paused = true)]
async fn c62_the_same_list_once_more() {
    for era in [Era::Modern, LEGACY] {
        let wide = format!(
            r#"{{"name":"wide","description":"{}","inputSchema":{{"type":"object"}}}}"#,
            "w".repeat(9000)
        );
        let tools = [GOOD, BAD, wide.as_str()];
        for id in ["7", "\"seven\"", "700"] {
            let like = Like::of(era, "tools/list", "", json(message(era, id, &tools))).await;
            for _ in 0..3 {
                let body = like.body(&like.list().id(id)).await;
                assert_eq!(body, message(era, id, &[GOOD, wide.as_str()]), "{era:?}");
            }
        }
    }
}

/// Two readers could see two lists, so the client gets an error under its id.
#[tokio::test(start_paused = true)]
async fn a5_3_a_body_that_readers_may_take_for_different_things() {
    for era in [Era::Modern, LEGACY] {
        let good = message(era, "7", &[GOOD]);
        let twice = good.replace(r#""tools":["#, &format!(r#""tools":[{BAD}],"t\u006fols":["#));
        let broken = message(era, "7", &[BAD]).replace("2.0", "2.0\",\"x\":\"\u{1}");
        for odd in [twice, broken, format!("\u{feff}{}", message(era, "7", &[BAD]))] {
            let like = Like::of(era, "tools/list", "", json(odd.clone())).await;
            let done = like.proxy.send(&like.list()).await;
            done.is_error(200, -32603);
            assert_eq!(done.message["id"], 7, "{}", done.raw);
            let like = Like::of(era, "tools/list", WARN, json(odd.clone())).await;
            assert_eq!(like.body(&like.list()).await, odd, "{era:?} warn");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a13_7_an_encoded_body_is_not_passed_unseen() {
    for era in [Era::Modern, LEGACY] {
        let text = message(era, "7", &[GOOD]);
        let answer = move |reply: Reply| {
            let text = text.clone();
            async move { reply.with("Content-Encoding", "gzip").json(200, &text).await }
        };
        let like = Like::of(era, "tools/list", "", answer).await;
        let done = like.proxy.send(&like.list()).await;
        assert_eq!((done.code(), &done.message["id"]), (-32603, &crate::support::json!(7)), "{}", done.raw);
    }
}
