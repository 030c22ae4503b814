//! What these settings and flags come to. Wrong values are in `wrong_tests`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::super::load::load_text;
use super::super::{Config, Schema, SchemaPolicy, Validation};
use std::fs;
use std::path::Path;
use std::time::Duration;

fn loaded(schema: &str, dir: &Path) -> Result<Config, String> {
    let text = format!("[upstream.api]\nurl = 'http://127.0.0.1:1/mcp'\n[upstream.api.schema]\n{schema}\n");
    load_text(&text, dir, &|_| None).map(|loaded| loaded.config).map_err(|error| error.to_string())
}

fn schema(text: &str) -> Schema {
    loaded(text, Path::new("")).unwrap().upstreams.remove(0).schema
}

#[test]
fn what_is_set_is_what_holds() {
    let default = schema("");
    assert_eq!((default.policy, default.arguments), (SchemaPolicy::Drop, Validation::Off));
    assert_eq!((default.results, default.documents.len()), (Validation::Off, 0));
    let set = schema(
        "policy = 'warn'\narguments = 'enforce'\nresults = 'warn'\ndepth = 8\nsubschemas = 1\nbytes = '1KiB'\n\
         references = 0\ntime = '1ms'\ncache_bytes = '2KiB'",
    );
    assert_eq!(
        (set.policy, set.arguments, set.results),
        (SchemaPolicy::Warn, Validation::Enforce, Validation::Warn)
    );
    assert_eq!((set.depth, set.subschemas, set.bytes, set.references), (8, 1, 1024, 0));
    assert_eq!((set.time, set.cache_bytes), (Duration::from_millis(1), 2048));
}

/// As `check` prints them, they mean the same.
#[test]
fn each_word_is_printed_as_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a${b}.json"), "true").unwrap();
    for policy in ["drop", "warn"] {
        for (arguments, results) in [("off", "warn"), ("warn", "enforce"), ("enforce", "off")] {
            let text = format!(
                "policy = '{policy}'\narguments = '{arguments}'\nresults = '{results}'\ndepth = 9\n\
                 subschemas = 10\nbytes = '11KiB'\nreferences = 12\ntime = '13ms'\ncache_bytes = '14KiB'\n\
                 documents = {{ 'https://a.example/x?y=$%22' = 'a$${{b}}.json' }}"
            );
            let config = loaded(&text, dir.path()).unwrap();
            let printed = config.to_redacted_toml();
            let again = load_text(&printed, dir.path(), &|_| None).unwrap().config;
            assert_eq!(format!("{:?}", again.upstreams), format!("{:?}", config.upstreams));
        }
    }
}

#[test]
fn a_document_is_the_text_of_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let text = "\n {\"$defs\": {\"a\": {\"type\": \"string\"}}}\n";
    fs::write(dir.path().join("a.json"), text).unwrap();
    for uri in ["https://a.example/x", "urn:a:b", "file:///a.json", "http://a.example:1/x?y=z", "a:"] {
        let documents = format!("documents = {{ '{uri}' = 'a.json' }}");
        let config = loaded(&documents, dir.path()).unwrap();
        let document = &config.upstreams[0].schema.documents[0];
        assert_eq!((document.uri.as_str(), &document.text[..]), (uri, text.as_bytes()));
        assert_eq!(document.file, dir.path().join("a.json"));
    }
    // However deep it is.
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    fs::write(dir.path().join("deep.json"), deep).unwrap();
    assert!(loaded("documents.'urn:a' = 'deep.json'", dir.path()).is_ok());
}

#[test]
fn a_document_has_an_absolute_uri_and_is_json() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| fs::write(dir.path().join(name), text).unwrap();
    file("good.json", b"{}");
    file("cut.json", b"{");
    file("two.json", b"{} {}");
    file("empty.json", b"");
    file("latin.json", b"\"\xe9\"");
    file("large.json", &[b' '; (16 << 20) + 1]);
    for uri in
        ["", "a.json", "/a", "//a.example/x", "https://a.example/x#", "https://a.example/#a", "https://a b/"]
    {
        let error = loaded(&format!("documents = {{ '{uri}' = 'good.json' }}"), dir.path()).unwrap_err();
        assert!(error.starts_with(&format!("upstream.api.schema.documents.\"{uri}\": ")), "{error}");
        assert!(error.ends_with("accepted: an absolute URI without a fragment as the name"), "{error}");
    }
    for (name, part) in [
        ("none.json", "No such file"),
        ("cut.json", "ends early"),
        ("two.json", "not valid JSON"),
        ("empty.json", "ends early"),
        ("latin.json", "not valid UTF-8"),
        ("large.json", "larger than 16 MiB"),
    ] {
        let error = loaded(&format!("documents.'urn:a' = '{name}'"), dir.path()).unwrap_err();
        assert!(
            error.starts_with("upstream.api.schema.documents.\"urn:a\": cannot use the file "),
            "{error}"
        );
        assert!(error.contains(part) && error.contains("accepted: a readable JSON file"), "{error}");
    }
}
