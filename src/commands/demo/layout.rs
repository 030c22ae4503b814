//! Two wires on one page: side by side where there is room, else one under the other.
//!
//! Owns widths, columns, wrapping, and which headers are telling. Nothing is left out of a body, and of the heads only
//! headers that say nothing about the protocol, which `--verbose` shows as well.

use std::io::{self, IsTerminal, Write};

use super::frames::{Frame, Head, Way, What, Wire};
use super::json;

/// Two columns narrower than this are harder to read than one.
const SIDE_BY_SIDE: usize = 110;
const WIDE: usize = 160;
const NARROW: usize = 80;
const GUTTER: &str = " | ";
const TELLING: [&str; 10] = [
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-param-place",
    "mcp-session-id",
    "content-type",
    "last-event-id",
    "retry-after",
    "allow",
    "www-authenticate",
];

/// Of which generation the two wires are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) front: &'static str,
    pub(super) back: &'static str,
}

pub(super) const MODERN_TO_LEGACY: Pair = Pair { front: "MODERN", back: "LEGACY" };
pub(super) const LEGACY_TO_MODERN: Pair = Pair { front: "LEGACY", back: "MODERN" };

/// How the pieces are put on the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    width: usize,
    side_by_side: bool,
    all_headers: bool,
}

/// Pieces that belong on one height of the page.
#[derive(Default)]
struct Row<'a> {
    front: Vec<&'a Frame>,
    back: Vec<&'a Frame>,
}

impl Row<'_> {
    /// How far down the client's side begins: an answer stands beside the last message that it was made from.
    fn down(&self) -> usize {
        let answers = self.front.first().is_some_and(|frame| frame.way == Way::ToClient);
        let telling = self.back.iter().rposition(|frame| answers && !frame.what.json().is_empty());
        telling.map_or(0, |last| (last + 1).saturating_sub(self.front.len()))
    }
}

impl Layout {
    /// For standard output: COLUMNS if it is set, else the terminal's own width. What goes to no terminal is one under
    /// the other, unless COLUMNS says how wide it is.
    pub(super) fn of_stdout(all_headers: bool) -> Self {
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
        let terminal = io::stdout().is_terminal();
        let own = terminal.then(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)));
        let width = columns.or(own.flatten()).unwrap_or(if terminal { WIDE } else { NARROW });
        Self::new(width, all_headers)
    }

    pub(super) fn new(width: usize, all_headers: bool) -> Self {
        let width = width.clamp(40, 240);
        Self { width, side_by_side: width >= SIDE_BY_SIDE, all_headers }
    }

    /// Plain text in the width of the page, at most what is easy to read.
    pub(super) fn text(&self, out: &mut impl Write, text: &str) -> io::Result<()> {
        let width = self.width.min(100);
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                writeln!(out, "{line}")?;
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        writeln!(out, "{line}")
    }

    pub(super) fn rule(&self, out: &mut impl Write, mark: &str) -> io::Result<()> {
        writeln!(out, "{}", mark.repeat(self.width))
    }

    pub(super) fn frames(&self, out: &mut impl Write, frames: &[Frame], pair: Pair) -> io::Result<()> {
        let shown: Vec<_> = frames.iter().filter(|frame| frame.what != What::Ended).collect();
        if self.side_by_side { self.columns(out, &shown, pair) } else { self.stacked(out, &shown, pair) }
    }

    fn columns(&self, out: &mut impl Write, frames: &[&Frame], pair: Pair) -> io::Result<()> {
        let width = (self.width - GUTTER.len()) / 2;
        let mut put = |left: &str, right: &str| {
            let pad = width.saturating_sub(left.chars().count());
            writeln!(out, "{}", format!("{left}{}{GUTTER}{right}", " ".repeat(pad)).trim_end())
        };
        put(&format!("{}   client <-> proxy", pair.front), &format!("{}   proxy <-> server", pair.back))?;
        put(&"-".repeat(width), &"-".repeat(width))?;
        for row in rows(frames) {
            // One by one, so that what belongs together stays on one height.
            let down = row.down();
            for at in 0..(down + row.front.len()).max(row.back.len()) {
                let block =
                    |frame: Option<&&Frame>| frame.map(|frame| self.block(frame, width)).unwrap_or_default();
                let left = block(at.checked_sub(down).and_then(|at| row.front.get(at)));
                let right = block(row.back.get(at));
                for line in 0..left.len().max(right.len()) {
                    let of = |block: &[String]| block.get(line).cloned().unwrap_or_default();
                    put(&of(&left), &of(&right))?;
                }
            }
        }
        Ok(())
    }

    fn stacked(&self, out: &mut impl Write, frames: &[&Frame], pair: Pair) -> io::Result<()> {
        for frame in frames {
            writeln!(out, "{}", name(frame, pair))?;
            for line in self.block(frame, self.width - 2) {
                writeln!(out, "{}", format!("  {line}").trim_end())?;
            }
        }
        Ok(())
    }

    /// One piece in lines of at most `width`.
    fn block(&self, frame: &Frame, width: usize) -> Vec<String> {
        let arrow = match frame.way {
            Way::ToServer => "--> ",
            Way::ToClient => "<-- ",
        };
        let mut lines = Vec::new();
        match &frame.what {
            What::Message { head, body } => {
                self.head(&mut lines, arrow, head);
                lines.extend(body_lines(body, "", width - arrow.len()));
            }
            What::Opened(head) => self.head(&mut lines, arrow, head),
            What::Event(event) => {
                for line in event.lines() {
                    match line.strip_prefix("data:") {
                        Some(data) if data.trim().is_empty() => lines.push(line.to_owned()),
                        Some(data) => lines.extend(body_lines(data.trim(), "data: ", width - arrow.len())),
                        None => lines.push(line.to_owned()),
                    }
                }
                if let Some(first) = lines.first_mut() {
                    *first = format!("{arrow}{first}");
                }
            }
            What::Ended => {}
            What::Closed => lines.push(format!("{arrow}(closes the connection before the answer is there)")),
        }
        let indent = " ".repeat(arrow.len());
        let mut out = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let line = if at == 0 { line.clone() } else { format!("{indent}{line}") };
            wrap(&line, width, &mut out);
        }
        out.push(String::new());
        out
    }

    fn head(&self, lines: &mut Vec<String>, arrow: &str, head: &Head) {
        lines.push(format!("{arrow}{}", head.line));
        let telling = |name: &str| TELLING.iter().any(|telling| name.eq_ignore_ascii_case(telling));
        let shown = head.headers.iter().filter(|(name, _)| self.all_headers || telling(name));
        lines.extend(shown.map(|(name, value)| format!("{name}: {value}")));
    }
}

/// Requests side by side, and answers side by side: a row ends where the direction turns, or where a wire that is the
/// cause in that direction speaks again after the other one.
fn rows<'a>(frames: &[&'a Frame]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    let mut way = None;
    for &frame in frames {
        let repeats = rows.last().is_some_and(|row| match (frame.way, frame.wire) {
            (Way::ToServer, Wire::Front) => !row.back.is_empty(),
            (Way::ToClient, Wire::Back) => !row.front.is_empty(),
            (Way::ToServer, Wire::Back) | (Way::ToClient, Wire::Front) => false,
        });
        if way != Some(frame.way) || repeats {
            rows.push(Row::default());
            way = Some(frame.way);
        }
        if let Some(row) = rows.last_mut() {
            match frame.wire {
                Wire::Front => row.front.push(frame),
                Wire::Back => row.back.push(frame),
            }
        }
    }
    rows
}

fn name(frame: &Frame, pair: Pair) -> String {
    let Pair { front, back } = pair;
    match (frame.wire, frame.way) {
        (Wire::Front, Way::ToServer) => format!("{front} client --> proxy"),
        (Wire::Back, Way::ToServer) => format!("       {back} proxy --> server"),
        (Wire::Back, Way::ToClient) => format!("       {back} proxy <-- server"),
        (Wire::Front, Way::ToClient) => format!("{front} client <-- proxy"),
    }
}

fn body_lines(body: &str, before: &str, width: usize) -> Vec<String> {
    if body.is_empty() {
        return Vec::new();
    }
    let room = width.saturating_sub(before.len());
    let mut lines =
        json::lines(body, room).unwrap_or_else(|| body.lines().map(str::to_owned).collect::<Vec<_>>());
    let indent = " ".repeat(before.len());
    for (at, line) in lines.iter_mut().enumerate() {
        line.insert_str(0, if at == 0 { before } else { &indent });
    }
    lines
}

/// Breaks a line that is too long, behind a space if one is near, and indents what follows a little deeper.
fn wrap(line: &str, width: usize, out: &mut Vec<String>) {
    let mut rest: Vec<char> = line.chars().collect();
    let indent = rest.iter().take_while(|c| **c == ' ').count();
    let indent = (indent + 4).min(width / 2);
    while rest.len() > width {
        let near = (width.saturating_sub(20).max(indent + 1)..width).rev().find(|at| rest[*at] == ' ');
        let end = near.map_or(width, |at| at + 1);
        out.push(rest[..end].iter().collect::<String>().trim_end().to_owned());
        rest = std::iter::repeat_n(' ', indent).chain(rest[end..].iter().copied()).collect();
    }
    out.push(rest.into_iter().collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(wire: Wire, way: Way, text: &str) -> Frame {
        Frame { wire, way, what: What::Event(format!("data: {text}")) }
    }

    #[test]
    fn long_lines_are_wrapped_and_lose_nothing() {
        let text = format!("{{\"a\":\"{}\"}}", "0123456789".repeat(30));
        let layout = Layout::new(60, false);
        let lines = layout.block(&frame(Wire::Front, Way::ToServer, &text), 58);
        assert!(lines.iter().all(|line| line.chars().count() <= 58), "{lines:?}");
        let joined: String = lines.iter().map(|line| line.trim()).collect();
        assert!(joined.contains(&"0123456789".repeat(30)), "{joined}");
    }

    #[test]
    fn answers_stand_beside_what_they_were_made_from() {
        use Way::{ToClient, ToServer};
        use Wire::{Back, Front};
        let order =
            [(Front, ToServer), (Back, ToServer), (Back, ToClient), (Front, ToClient), (Back, ToClient)];
        let frames: Vec<_> = order.into_iter().map(|(wire, way)| frame(wire, way, "1")).collect();
        let counts: Vec<_> = rows(&frames.iter().collect::<Vec<_>>())
            .iter()
            .map(|row| (row.front.len(), row.back.len()))
            .collect();
        assert_eq!(counts, [(1, 1), (1, 1), (0, 1)]);
    }

    #[test]
    fn an_answer_that_was_made_of_several_pieces_stands_beside_the_last() {
        use Way::{ToClient, ToServer};
        use Wire::{Back, Front};
        let down = |order: &[(Wire, Way)]| {
            let frames: Vec<_> = order.iter().map(|(wire, way)| frame(*wire, *way, "1")).collect();
            rows(&frames.iter().collect::<Vec<_>>()).iter().map(Row::down).collect::<Vec<_>>()
        };
        assert_eq!(down(&[(Back, ToClient), (Back, ToClient), (Front, ToClient)]), [1]);
        assert_eq!(down(&[(Back, ToClient), (Front, ToClient), (Front, ToClient)]), [0]);
        assert_eq!(down(&[(Back, ToClient), (Back, ToClient)]), [0]);
        assert_eq!(down(&[(Front, ToServer), (Back, ToServer), (Back, ToServer)]), [0]);
        let accepted = Head { line: "HTTP/1.1 202 Accepted".to_owned(), headers: Vec::new() };
        let accepted = What::Message { head: accepted, body: String::new() };
        let frames = [
            frame(Back, ToClient, "1"),
            Frame { wire: Back, way: ToClient, what: accepted },
            frame(Front, ToClient, "1"),
        ];
        assert_eq!(rows(&frames.iter().collect::<Vec<_>>())[0].down(), 0, "nothing is made of a bare 202");
        let mut page = Vec::new();
        let pieces = [frame(Back, ToClient, "10"), frame(Back, ToClient, "11"), frame(Front, ToClient, "12")];
        Layout::new(110, false).frames(&mut page, &pieces, MODERN_TO_LEGACY).unwrap();
        let page = String::from_utf8(page).unwrap();
        let line = |part: &str| page.lines().find(|line| line.contains(part)).unwrap().to_owned();
        assert!(line("data: 12").contains("data: 11"), "{page}");
        assert!(line("data: 10").trim_start().starts_with('|'), "{page}");
    }
}
