//! Event streams: C11, C13, A13.5. What is not changed keeps every byte, however the stream is cut.

use crate::stage::{BAD, GOOD, LEGACY, Like, OTHER, WARN, message, streamed};
use crate::support::Era;

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"\u00e9 \"tools\""}}"#;

/// A stream with a list in all that an event may have; `tools` in their order.
fn stream(era: Era, end: &str, tools: &[&str]) -> String {
    let list = message(era, "7", tools);
    [
        format!(": hello{end}{end}"),
        format!("id: 1{end}retry: 1500{end}data:{end}{end}"),
        format!("event: message{end}data: {NOTE}{end}id: 2{end}{end}"),
        format!("id: 3{end}: c{end}data: {list}{end}{end}"),
        format!(":{end}{end}"),
    ]
    .concat()
}

#[tokio::test(start_paused = true)]
async fn c11_c13_a_list_in_a_stream_however_it_is_cut() {
    for era in [Era::Modern, LEGACY] {
        for end in ["\n", "\r\n"] {
            for size in [1, 7, 64, usize::MAX] {
                let given = stream(era, end, &[GOOD, BAD, OTHER]);
                let wanted = stream(era, end, &[GOOD, OTHER]);
                // The line that is written anew ends as those of the proxy do.
                let list = format!("data: {}", message(era, "7", &[GOOD, OTHER]));
                let wanted = wanted.replace(&format!("{list}{end}"), &format!("{list}\n"));
                let answer = move |reply| {
                    let given = given.clone();
                    async move { streamed(reply, &given, size).await }
                };
                let like = Like::of(era, "tools/list", "", answer).await;
                let body = like.body(&like.list()).await;
                assert_eq!(body, wanted, "{era:?} {end:?} in pieces of {size}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn c11_good_lists_and_all_else_keep_every_byte() {
    for era in [Era::Modern, LEGACY] {
        for (end, toml, tools) in
            [("\r", "", vec![GOOD, OTHER]), ("\r\n", "", vec![GOOD]), ("\n", WARN, vec![GOOD, BAD])]
        {
            for size in [1, 9, usize::MAX] {
                let given = stream(era, end, &tools);
                let sent = given.clone();
                let answer = move |reply| {
                    let sent = sent.clone();
                    async move { streamed(reply, &sent, size).await }
                };
                let like = Like::of(era, "tools/list", toml, answer).await;
                assert_eq!(like.body(&like.list()).await, given, "{era:?} {end:?} {size}");
            }
        }
    }
}

/// Data over several lines, as a pretty-printed message has it, and names that are spelt by escapes.
#[tokio::test(start_paused = true)]
async fn c11_a_list_over_several_lines_or_with_escapes() {
    for era in [Era::Modern, LEGACY] {
        let whole = message(era, "7", &[GOOD, BAD]);
        let lines = whole
            .replace(r#""tools":["#, "\"tools\":\ndata: [")
            .replace(",{\"name\":\"bad\"", ",\ndata: {\"name\":\"bad\"");
        let escaped = whole.replace(r#""tools""#, r#""t\u006fols""#);
        for given in [lines, escaped] {
            let sent = format!("id: 9\ndata: {given}\n\n");
            let answer = move |reply| {
                let sent = sent.clone();
                async move { streamed(reply, &sent, 11).await }
            };
            let like = Like::of(era, "tools/list", "", answer).await;
            let body = like.body(&like.list()).await;
            assert!(body.starts_with("id: 9\ndata: ") && body.ends_with("\n\n"), "{body}");
            assert!(body.contains(GOOD) && !body.contains("canary"), "{body}");
        }
    }
}

/// The end of a body is no end of an event; some readers take it for one.
#[tokio::test(start_paused = true)]
async fn c11_a_list_without_its_blank_line() {
    for era in [Era::Modern, LEGACY] {
        for (tools, passes) in [([GOOD, OTHER], true), ([GOOD, BAD], false)] {
            let given = format!(": c\n\ndata: {}\n", message(era, "7", &tools));
            let sent = given.clone();
            let answer = move |reply| {
                let sent = sent.clone();
                async move { streamed(reply, &sent, 50).await }
            };
            let like = Like::of(era, "tools/list", "", answer).await;
            let body = like.body(&like.list()).await;
            assert_eq!(body, if passes { given } else { ": c\n\n".to_owned() }, "{era:?}");
        }
    }
}

/// Readers differ in which of two lists they take, and in what they make of what is no JSON.
#[tokio::test(start_paused = true)]
async fn a5_3_what_readers_may_take_for_different_things() {
    for era in [Era::Modern, LEGACY] {
        let good = message(era, "7", &[GOOD]);
        let twice = good.replace(r#""tools":["#, &format!(r#""tools":[{BAD}],"tools":["#));
        let results = good.replace(r#""result":"#, &format!(r#""result":{{"tools":[{BAD}]}},"result":"#));
        let number = message(era, "7", &[BAD]).replace(r#""jsonrpc":"2.0""#, r#""jsonrpc":"2.0","x":NaN"#);
        for odd in [twice, results, number] {
            let given = format!("id: 4\ndata: {odd}\n\n");
            for (toml, passes) in [("", false), (WARN, true)] {
                let sent = given.clone();
                let answer = move |reply| {
                    let sent = sent.clone();
                    async move { streamed(reply, &sent, usize::MAX).await }
                };
                let like = Like::of(era, "tools/list", toml, answer).await;
                let body = like.body(&like.list()).await;
                assert_eq!(body == given, passes, "{era:?} {body}");
                if !passes {
                    assert!(body.starts_with("id: 4\ndata: ") && body.contains("-32603"), "{body}");
                    assert!(body.contains(r#""id":7"#) && !body.contains("canary"), "{body}");
                }
            }
        }
    }
}

/// Whatever was asked.
#[tokio::test(start_paused = true)]
async fn c65_a_list_in_the_stream_of_a_call() {
    for era in [Era::Modern, LEGACY] {
        let answer = move |reply| async move {
            let sent = format!("data: {}\n\n", message(era, "7", &[BAD, GOOD]));
            streamed(reply, &sent, usize::MAX).await;
        };
        let like = Like::of(era, "tools/call", "", answer).await;
        let body = like.body(&like.call("good")).await;
        assert_eq!(body, format!("data: {}\n\n", message(era, "7", &[GOOD])));
    }
}
