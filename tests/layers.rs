//! The direction of imports: reads the source and fails on an arrow that points back.
//!
//! Owns the table of layers. It looks at every `crate::NAME` in `src`, in `use` lines and elsewhere alike, so an
//! inline path is caught as well; test modules inside `src` may import what they like.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

/// What each module may import. A leaf imports only what stands in its row.
const LAYERS: [(&str, &[&str]); 16] = [
    ("wire", &[]),
    ("exchange", &["wire", "telemetry"]),
    ("schema", &["wire"]),
    ("translate", &["exchange", "schema", "wire"]),
    (
        "upstream",
        &["translate", "exchange", "schema", "wire", "config", "net", "seal", "shutdown", "telemetry"],
    ),
    ("relay", &["upstream", "translate", "exchange", "wire", "config", "shutdown", "telemetry"]),
    (
        "downstream",
        &["relay", "upstream", "translate", "exchange", "wire", "config", "seal", "shutdown", "telemetry"],
    ),
    ("listen", &["net", "shutdown", "config", "wire", "telemetry"]),
    ("config", &["wire"]),
    ("net", &[]),
    ("seal", &[]),
    ("shutdown", &[]),
    ("telemetry", &["config", "schema", "wire"]),
    ("demo", &[]),
    ("cli", &["config"]),
    // They put the program together and may know everyone.
    (
        "app",
        &[
            "listen",
            "downstream",
            "relay",
            "upstream",
            "translate",
            "exchange",
            "schema",
            "wire",
            "config",
            "net",
            "seal",
            "shutdown",
            "telemetry",
            "demo",
        ],
    ),
];

#[test]
fn no_import_points_back() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in rust_files(&src) {
        let inside = file.strip_prefix(&src).unwrap();
        let module = inside.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == module) else {
            assert!(
                ["lib", "main", "commands"].contains(&module.as_str()),
                "{module} is in no layer: add it to LAYERS"
            );
            continue;
        };
        seen += 1;
        if inside.to_str().unwrap().contains("tests") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for (number, line) in code.lines().enumerate() {
            for target in imports(line) {
                if target != module && !allowed.contains(&target) {
                    wrong.push(format!("{}:{}: {module} imports {target}", inside.display(), number + 1));
                }
            }
        }
    }
    assert!(seen > 40, "only {seen} files were read");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_two_edges_do_not_know_each_other() {
    let row = |name: &str| LAYERS.iter().find(|(module, _)| *module == name).unwrap().1;
    assert!(!row("upstream").contains(&"downstream"));
    assert!(!row("listen").contains(&"downstream") && !row("downstream").contains(&"listen"));
}

/// The modules that a line names by `crate::`, comments left out.
fn imports(line: &str) -> Vec<&str> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return Vec::new();
    }
    let name = |rest: &'_ str| {
        rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len()
    };
    code.split("crate::").skip(1).map(|rest| &rest[..name(rest)]).filter(|name| !name.is_empty()).collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
