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
const TELLING: [&str; 9] = [
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-session-id",
    "content-type",
    "last-event-id",
    "retry-after",
    "allow",
    "www-authenticate",
];

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
    modern: Vec<&'a Frame>,
    legacy: Vec<&'a Frame>,
}

impl Row<'_> {
    /// How far down the modern side begins: an answer stands beside the last message that it was made from.
    fn down(&self) -> usize {
        let answers = self.modern.first().is_some_and(|frame| frame.way == Way::ToClient);
        let telling = self.legacy.iter().rposition(|frame| answers && !frame.what.json().is_empty());
        telling.map_or(0, |last| (last + 1).saturating_sub(self.modern.len()))
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

    pub(super) fn frames(&self, out: &mut impl Write, frames: &[Frame]) -> io::Result<()> {
        let shown: Vec<_> = frames.iter().filter(|frame| frame.what != What::Ended).collect();
        if self.side_by_side { self.columns(out, &shown) } else { self.stacked(out, &shown) }
    }

    fn columns(&self, out: &mut impl Write, frames: &[&Frame]) -> io::Result<()> {
        let width = (self.width - GUTTER.len()) / 2;
        let mut put = |left: &str, right: &str| {
            let pad = width.saturating_sub(left.chars().count());
            writeln!(out, "{}", format!("{left}{}{GUTTER}{right}", " ".repeat(pad)).trim_end())
        };
        put("MODERN   client <-> proxy", "LEGACY   proxy <-> server")?;
        put(&"-".repeat(width), &"-".repeat(width))?;
        for row in rows(frames) {
            // One by one, so that what belongs together stays on one height.
            let down = row.down();
            for at in 0..(down + row.modern.len()).max(row.legacy.len()) {
                let block =
                    |frame: Option<&&Frame>| frame.map(|frame| self.block(frame, width)).unwrap_or_default();
                let left = block(at.checked_sub(down).and_then(|at| row.modern.get(at)));
                let right = block(row.legacy.get(at));
                for line in 0..left.len().max(right.len()) {
                    let of = |block: &[String]| block.get(line).cloned().unwrap_or_default();
                    put(&of(&left), &of(&right))?;
                }
            }
        }
        Ok(())
    }

    fn stacked(&self, out: &mut impl Write, frames: &[&Frame]) -> io::Result<()> {
        for frame in frames {
            writeln!(out, "{}", name(frame))?;
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
            (Way::ToServer, Wire::Modern) => !row.legacy.is_empty(),
            (Way::ToClient, Wire::Legacy) => !row.modern.is_empty(),
            (Way::ToServer, Wire::Legacy) | (Way::ToClient, Wire::Modern) => false,
        });
        if way != Some(frame.way) || repeats {
            rows.push(Row::default());
            way = Some(frame.way);
        }
        if let Some(row) = rows.last_mut() {
            match frame.wire {
                Wire::Modern => row.modern.push(frame),
                Wire::Legacy => row.legacy.push(frame),
            }
        }
    }
    rows
}

fn name(frame: &Frame) -> &'static str {
    match (frame.wire, frame.way) {
        (Wire::Modern, Way::ToServer) => "MODERN client --> proxy",
        (Wire::Legacy, Way::ToServer) => "       LEGACY proxy --> server",
        (Wire::Legacy, Way::ToClient) => "       LEGACY proxy <-- server",
        (Wire::Modern, Way::ToClient) => "MODERN client <-- proxy",
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
        let lines = layout.block(&frame(Wire::Modern, Way::ToServer, &text), 58);
        assert!(lines.iter().all(|line| line.chars().count() <= 58), "{lines:?}");
        let joined: String = lines.iter().map(|line| line.trim()).collect();
        assert!(joined.contains(&"0123456789".repeat(30)), "{joined}");
    }

    #[test]
    fn answers_stand_beside_what_they_were_made_from() {
        use Way::{ToClient, ToServer};
        use Wire::{Legacy, Modern};
        let order = [
            (Modern, ToServer),
            (Legacy, ToServer),
            (Legacy, ToClient),
            (Modern, ToClient),
            (Legacy, ToClient),
        ];
        let frames: Vec<_> = order.into_iter().map(|(wire, way)| frame(wire, way, "1")).collect();
        let counts: Vec<_> = rows(&frames.iter().collect::<Vec<_>>())
            .iter()
            .map(|row| (row.modern.len(), row.legacy.len()))
            .collect();
        assert_eq!(counts, [(1, 1), (1, 1), (0, 1)]);
    }

    #[test]
    fn an_answer_that_was_made_of_several_pieces_stands_beside_the_last() {
        use Way::{ToClient, ToServer};
        use Wire::{Legacy, Modern};
        let down = |order: &[(Wire, Way)]| {
            let frames: Vec<_> = order.iter().map(|(wire, way)| frame(*wire, *way, "1")).collect();
            rows(&frames.iter().collect::<Vec<_>>()).iter().map(Row::down).collect::<Vec<_>>()
        };
        assert_eq!(down(&[(Legacy, ToClient), (Legacy, ToClient), (Modern, ToClient)]), [1]);
        assert_eq!(down(&[(Legacy, ToClient), (Modern, ToClient), (Modern, ToClient)]), [0]);
        assert_eq!(down(&[(Legacy, ToClient), (Legacy, ToClient)]), [0]);
        assert_eq!(down(&[(Modern, ToServer), (Legacy, ToServer), (Legacy, ToServer)]), [0]);
        let accepted = Head { line: "HTTP/1.1 202 Accepted".to_owned(), headers: Vec::new() };
        let accepted = What::Message { head: accepted, body: String::new() };
        let frames = [
            frame(Legacy, ToClient, "1"),
            Frame { wire: Legacy, way: ToClient, what: accepted },
            frame(Modern, ToClient, "1"),
        ];
        assert_eq!(rows(&frames.iter().collect::<Vec<_>>())[0].down(), 0, "nothing is made of a bare 202");
        let mut page = Vec::new();
        let pieces =
            [frame(Legacy, ToClient, "10"), frame(Legacy, ToClient, "11"), frame(Modern, ToClient, "12")];
        Layout::new(110, false).frames(&mut page, &pieces).unwrap();
        let page = String::from_utf8(page).unwrap();
        let line = |part: &str| page.lines().find(|line| line.contains(part)).unwrap().to_owned();
        assert!(line("data: 12").contains("data: 11"), "{page}");
        assert!(line("data: 10").trim_start().starts_with('|'), "{page}");
    }
}
