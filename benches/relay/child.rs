//! The server of the benchmark as a program: one message a line on its standard input and output, of one era.
//!
//! Owns answering as cheaply as a server can, as `upstream` does over HTTP with the same texts. One thread, which writes what
//! it has as soon as nothing more is there to read.

use super::upstream::{Tool, value};
use super::work::{Era, LEGACY, MODERN, WORKS};
use std::io::{self, BufRead, BufReader, BufWriter, Write};

const ROOM: usize = 64 * 1024;

/// The era's argument after `role-child`.
pub fn word(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

/// Serves until its input ends.
pub fn run(era: &str) -> io::Result<()> {
    let era = if era == word(Era::Modern) { Era::Modern } else { Era::Legacy };
    let tools: Vec<_> = WORKS.iter().map(Tool::new).collect();
    let mut input = BufReader::with_capacity(ROOM, io::stdin().lock());
    let mut out = BufWriter::with_capacity(ROOM, io::stdout().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        answer(&mut out, era, &tools, &line)?;
        line.clear();
        if input.buffer().is_empty() {
            out.flush()?;
        }
    }
    out.flush()
}

fn answer(out: &mut impl Write, era: Era, tools: &[Tool], line: &[u8]) -> io::Result<()> {
    let id = value(line, b"\"id\":");
    let id = String::from_utf8_lossy(id);
    let mut result = |result: &str| writeln!(out, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    match (value(line, b"\"method\":"), era) {
        (b"\"tools/call\"", _) => {
            let Some(tool) = tools.iter().find(|tool| tool.is_called(line)) else {
                return Err(io::Error::other("a call of no tool"));
            };
            let token = String::from_utf8_lossy(value(line, b"\"progressToken\":"));
            for step in 1..=tool.work.progress {
                writeln!(out, "{}", tool.progress(&token, step))?;
                out.flush()?;
            }
            let (before, after) = tool.answer(era);
            writeln!(out, "{before}{id}{after}")
        }
        (b"\"initialize\"", Era::Legacy) => result(&format!(
            r#"{{"protocolVersion":"{LEGACY}","capabilities":{{"tools":{{"listChanged":true}}}},"serverInfo":{{"name":"bench-server","version":"1.0.0"}}}}"#
        )),
        (b"\"server/discover\"", Era::Modern) => result(&format!(
            r#"{{"resultType":"complete","supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{"listChanged":true}}}},"ttlMs":0,"cacheScope":"private","_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"bench-server","version":"1.0.0"}}}}}}"#
        )),
        (b"\"tools/list\"", Era::Modern) => {
            let listed = tools.iter().map(Tool::listed).collect::<Vec<_>>().join(",");
            result(&format!(
                r#"{{"resultType":"complete","tools":[{listed}],"ttlMs":0,"cacheScope":"private"}}"#
            ))
        }
        (_, _) if id.is_empty() => Ok(()),
        (_, _) => writeln!(
            out,
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#
        ),
    }
}
