//! Lines in and out, cut anywhere.

use super::*;
use crate::wire::jsonrpc::Id;

fn lines(limit: usize, text: &[u8], step: usize) -> Vec<Line> {
    let mut lines = Lines::new(limit, LateId::of_request);
    let mut all = Vec::new();
    for piece in text.chunks(step) {
        lines.room().extend_from_slice(piece);
        while let Some(line) = lines.next() {
            all.push(line);
        }
    }
    all
}

fn whole(text: &'static str) -> Line {
    Line::Text(Bytes::from_static(text.as_bytes()))
}

/// C53, C14: LF ends a line, with a CR or without; nothing else does; what has no end is none.
#[test]
fn lines_are_found_wherever_the_text_is_cut() {
    let text = "a\r\n\n  \r\nb\u{2028}\u{85}c\n\rd\nrest";
    let expected = [whole("a"), whole("b\u{2028}\u{85}c"), whole("\rd")];
    for step in [1, 2, 3, 100] {
        assert_eq!(lines(100, text.as_bytes(), step), expected, "by {step}");
    }
}

/// A line beyond the bound is given by its id alone, and the next one is whole again.
#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let long = |members: &str| format!("{{{members},\"x\":\"{}\",\"id\":7}}\nnext\n", "y".repeat(50));
    for step in [1, 7, 40, 1000] {
        for (members, id) in [(r#""method":"m""#, Some(7)), (r#""result":{}"#, None)] {
            let text = long(members);
            let expected = [Line::TooLong(id.map(Id::number)), whole("next")];
            assert_eq!(lines(40, text.as_bytes(), step), expected, "{members} by {step}");
        }
        let at_the_bound = format!("{}\n{}\n", "z".repeat(40), "z".repeat(41));
        let all = lines(40, at_the_bound.as_bytes(), step);
        assert!(matches!(all[..], [Line::Text(_), Line::TooLong(None)]), "{all:?} by {step}");
        // The line's end is not counted, whichever it is.
        let all = lines(40, at_the_bound.replace('\n', "\r\n").as_bytes(), step);
        assert!(matches!(all[..], [Line::Text(_), Line::TooLong(None)]), "{all:?} by {step}");
    }
}

#[tokio::test]
async fn each_message_is_one_line_whatever_is_in_it() {
    let (out, messages) = mpsc::channel(8);
    let large = "y".repeat(3 * CHUNK);
    for text in ["{\"a\":\n1,\r\n\"b\":2}", "{}", &large, &format!("{large}\n"), "[]"] {
        out.send(Bytes::copy_from_slice(text.as_bytes())).await.unwrap();
    }
    drop(out);
    let mut written = Vec::new();
    write(&mut written, messages, || ()).await.unwrap();
    let expected = format!("{{\"a\": 1,  \"b\":2}}\n{{}}\n{large}\n{large} \n[]\n");
    assert_eq!(String::from_utf8(written).unwrap(), expected);
}

/// The end of the input is noticed while a line waits to be taken.
#[tokio::test(start_paused = true)]
async fn the_end_is_noticed_behind_a_line_that_nobody_takes() {
    let (texts, taken) = mpsc::channel(1);
    texts.send(Line::TooLong(None)).await.unwrap();
    let gone = CancellationToken::new();
    read(&b"one\ntwo\n"[..], 100, texts, |line| line, &gone).await;
    assert!(gone.is_cancelled());
    drop(taken);
}
