//! Places, pointers and names of a tree.
#![allow(clippy::unwrap_used)]

use super::tree::*;
use crate::wire::json::Span;

fn tree(text: &str) -> Tree<'_> {
    let mut tree = Tree::default();
    tree.read(text.as_bytes(), Span::new(0, text.len()), usize::MAX).unwrap();
    tree
}

#[test]
fn every_value_has_its_place_and_pointer() {
    let text = r#" { "a" : [ 1 , "x,]}" , { "\u0062\"" : null } , [ ] ] , "c~/d" : -1.5e+3 , "" : { } , "é":true } "#;
    let tree = tree(text);
    let all: Vec<_> = (0..tree.len())
        .map(|node| (tree.pointer(node), String::from_utf8_lossy(tree.raw(node)).into_owned()))
        .collect();
    let expected = [
        ("", text.trim()),
        ("/a", r#"[ 1 , "x,]}" , { "\u0062\"" : null } , [ ] ]"#),
        ("/a/0", "1"),
        ("/a/1", "\"x,]}\""),
        ("/a/2", r#"{ "\u0062\"" : null }"#),
        ("/a/2/b\"", "null"),
        ("/a/3", "[ ]"),
        ("/c~0~1d", "-1.5e+3"),
        ("/", "{ }"),
        ("/é", "true"),
    ];
    assert_eq!(all, expected.map(|(at, raw)| (at.to_owned(), raw.to_owned())));
}

/// RFC 6901, sections 3 to 5.
#[test]
fn pointers_lead_down() {
    let mut narrow = tree(r#"{"foo":["bar","baz"],"":0,"a/b":1,"m~n":8,"k\"l":6," ":7,"~1":9}"#);
    for (pointer, raw) in [
        ("/foo", "[\"bar\",\"baz\"]"),
        ("/foo/0", "\"bar\""),
        ("/", "0"),
        ("/a~1b", "1"),
        ("/m~0n", "8"),
        ("/k\"l", "6"),
        ("/ ", "7"),
        ("/~01", "9"),
    ] {
        let found = narrow.down(0, pointer).map(|node| narrow.raw(node));
        assert_eq!(found, Some(raw.as_bytes()), "{pointer}");
    }
    for pointer in
        ["/foo/2", "/foo/01", "/foo/-", "/foo/+1", "/foo/", "/x", "/m~n", "/m~2n", "/foo/0/x", "foo"]
    {
        assert_eq!(narrow.down(0, pointer), None, "{pointer}");
    }
    let items: Vec<_> = (0..100).map(|item| item.to_string()).collect();
    let members: Vec<_> = (0..100).map(|name| format!("\"n{name}\":{name}")).collect();
    let text = format!("[[{}],{{{}}}]", items.join(","), members.join(","));
    let mut wide = tree(&text);
    for (pointer, raw) in [("/0/42", "42"), ("/1/n99", "99"), ("/0/0", "0")] {
        assert_eq!(wide.down(0, pointer).map(|node| wide.raw(node)), Some(raw.as_bytes()), "{pointer}");
    }
    for pointer in ["/0/100", "/0/042", "/1/n100", "/1/0"] {
        assert_eq!(wide.down(0, pointer), None, "{pointer}");
    }
}

#[test]
fn names_that_occur_twice_are_found() {
    for (text, twice) in [
        (r#"{"a":1,"b":2,"aa":3}"#, None),
        (r#"{"a":{"a":1},"b":[{"a":1},{"a":1}]}"#, None),
        (r#"{"a":1,"b":2,"a":3}"#, Some("3")),
        (r#"{"a":1,"\u0061":2}"#, Some("2")),
        (r#"{"\ud800":1,"\ud800":2}"#, Some("2")),
        ("{}", None),
    ] {
        let tree = tree(text);
        assert_eq!(tree.twice(0).map(|node| tree.raw(node)), twice.map(str::as_bytes), "{text}");
    }
    let members: Vec<_> = (0..100).map(|name| format!("\"n{name}\":{name}")).collect();
    let text = format!("{{{},\"n7\":true}}", members.join(","));
    let tree = tree(&text);
    assert_eq!(tree.twice(0).map(|node| tree.raw(node)), Some(&b"true"[..]));
}

#[test]
fn d68_nesting_is_bounded_and_never_recursion() {
    let depth = 1_000_000;
    let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let span = Span::new(0, text.len());
    let mut tree = Tree::default();
    assert_eq!(tree.read(text.as_bytes(), span, 100), Err(TooDeep(100)));
    let mut tree = Tree::default();
    assert_eq!(tree.read(text.as_bytes(), span, depth), Ok(0));
    assert_eq!(tree.len() as usize, depth);
    let pointer = tree.pointer(tree.len() - 1);
    assert!(pointer.len() < 2000 && pointer.ends_with('…'), "{}", pointer.len());
}
