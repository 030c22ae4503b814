//! A look for lists and forms in a message that is too large to be held.
//!
//! Owns noticing, while the bytes pass, that a member begins which the guard would have to judge: `result.tools`,
//! `result.inputRequests` or `result.structuredContent`, and `params.requestedSchema`; at the top of the text, or in the items of
//! an array (A14.1). It holds a name at most.

use crate::wire::json::{Mark, ScanFault, Scanner, unescape};

/// Open containers in such a message; more is taken for no JSON.
const NESTING: usize = 4 << 20;

/// Bytes of a name that may be one of those, each letter escaped.
const NAME: usize = 6 * "structuredContent".len();

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Watch {
    scanner: Option<Scanner>,
    seen: Seen,
}

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Results of calls too.
    pub(super) structured: bool,
}

/// Why nothing more of the message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Something that is to be judged begins.
    Member,
    /// It is no JSON.
    NoJson,
}

impl From<ScanFault> for Found {
    fn from(_: ScanFault) -> Self {
        Found::NoJson
    }
}

#[derive(Debug, Default)]
struct Seen {
    /// Containers around a message: 1 in an array.
    around: usize,
    name: Vec<u8>,
    naming: bool,
    outer: Outer,
    inner: Inner,
}

#[derive(Debug, Default, Clone, Copy)]
enum Outer {
    Result,
    Params,
    #[default]
    Other,
}

#[derive(Debug, Default, Clone, Copy)]
enum Inner {
    Tools,
    Form,
    Structured,
    #[default]
    Other,
}

impl Watch {
    /// Reads the next piece; after an error the watch is of no further use.
    pub(super) fn feed(&mut self, piece: &[u8], wanted: Wanted) -> Result<(), Found> {
        let Self { scanner, seen } = self;
        let scanner = match scanner {
            Some(scanner) => scanner,
            none => {
                let Some(first) = piece.iter().find(|byte| !byte.is_ascii_whitespace()) else {
                    return Ok(());
                };
                seen.around = usize::from(*first == b'[');
                none.insert(Scanner::new(NESTING, seen.around + 2))
            }
        };
        let mut begun = 0;
        scanner.feed(piece, &mut |at, depth, mark| seen.mark(piece, &mut begun, at, depth, mark, wanted))?;
        if seen.naming {
            seen.name(piece.get(begun..).unwrap_or_default());
        }
        Ok(())
    }
}

impl Seen {
    fn mark(
        &mut self,
        piece: &[u8],
        begun: &mut usize,
        at: usize,
        depth: usize,
        mark: Mark,
        wanted: Wanted,
    ) -> Result<(), Found> {
        let depth = depth.saturating_sub(self.around);
        match mark {
            Mark::KeyStart => {
                self.name.clear();
                (self.naming, *begun) = (true, at);
            }
            Mark::KeyEnd => {
                self.naming = false;
                self.name(piece.get(*begun..at.saturating_sub(1)).unwrap_or_default());
                let name = unescape(&self.name).unwrap_or_default();
                match depth {
                    1 => self.outer = Outer::of(&name),
                    2 => self.inner = Inner::of(&name),
                    _ => {}
                }
            }
            Mark::Value if depth == 2 => {
                let first = piece.get(at);
                let found = match (self.outer, self.inner) {
                    (Outer::Result, Inner::Tools) => first == Some(&b'['),
                    (Outer::Result | Outer::Params, Inner::Form) => first == Some(&b'{'),
                    (Outer::Result, Inner::Structured) => wanted.structured,
                    (Outer::Result | Outer::Params | Outer::Other, _) => false,
                };
                if found {
                    return Err(Found::Member);
                }
            }
            Mark::Open | Mark::Value | Mark::ValueEnd | Mark::Close => {}
        }
        Ok(())
    }

    /// A part of a name; what is longer than any that is looked for is as good as cut short.
    fn name(&mut self, part: &[u8]) {
        let room = (NAME + 1).saturating_sub(self.name.len());
        self.name.extend_from_slice(&part[..part.len().min(room)]);
    }
}

impl Outer {
    fn of(name: &str) -> Self {
        match name {
            "result" => Outer::Result,
            "params" => Outer::Params,
            _ => Outer::Other,
        }
    }
}

impl Inner {
    fn of(name: &str) -> Self {
        match name {
            "tools" => Inner::Tools,
            "inputRequests" | "requestedSchema" => Inner::Form,
            "structuredContent" => Inner::Structured,
            _ => Inner::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of a text that comes in two pieces.
    fn found(text: &[u8], cut: usize, structured: bool) -> Result<(), Found> {
        let mut watch = Watch::default();
        let wanted = Wanted { structured };
        watch.feed(&text[..cut], wanted)?;
        watch.feed(&text[cut..], wanted)
    }

    #[test]
    fn what_is_judged_is_noticed_at_every_cut() {
        for (text, wanted) in [
            (r#"{"result":{"tools":[]}}"#, Err(Found::Member)),
            (r#" [{"id":1},{"id":2,"result":{"x":1,"tools" : []}}]"#, Err(Found::Member)),
            (r#"{"\u0072esult":{"t\u006fols":[]}}"#, Err(Found::Member)),
            (r#"{"params":{"requestedSchema":{}}}"#, Err(Found::Member)),
            (r#"{"result":{"inputRequests":{}}}"#, Err(Found::Member)),
            (r#"{"result":{"structuredContent":null}}"#, Ok(())),
            (r#"{"result":{"capabilities":{"tools":{}},"tools":{}}}"#, Ok(())),
            (r#"{"result":{"content":[{"tools":[]}],"s":"\"tools\":["}}"#, Ok(())),
            (r#"{"error":{"tools":[]},"x":[{"tools":[]}]}"#, Ok(())),
            (r#"{"result":{"tools":nul}}"#, Err(Found::NoJson)),
        ] {
            for cut in 0..=text.len() {
                assert_eq!(found(text.as_bytes(), cut, false), wanted, "{text} cut at {cut}");
            }
        }
        assert_eq!(found(br#"{"result":{"structuredContent":null}}"#, 12, true), Err(Found::Member));
        let long = format!(r#"{{"result":{{"tools{}":[]}}}}"#, "s".repeat(10_000));
        assert_eq!(found(long.as_bytes(), 500, false), Ok(()));
    }
}
