//! Event streams read by hand, as the HTML standard defines them; comments and field names are kept for inspection.
//!
//! Owns the reading side of the test client. Does not own the writing side: servers in tests write exact bytes.

use std::collections::VecDeque;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    pub kind: String,
    pub data: String,
    /// The last id that the stream has sent.
    pub id: String,
}

#[derive(Debug, Default)]
pub struct Reader {
    rest: Vec<u8>,
    /// A CR ended the last line: an LF that follows belongs to it.
    after_cr: bool,
    kind: String,
    data: Option<String>,
    id: String,
    ready: VecDeque<Event>,
    /// How long to wait before coming again, as the stream said it last, in milliseconds.
    pub retry: Option<u64>,
    /// Every field name seen, in order; a comment counts as the empty name.
    pub fields: Vec<String>,
}

impl Reader {
    pub fn push(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let skip = self.after_cr && byte == b'\n';
            self.after_cr = byte == b'\r';
            match byte {
                _ if skip => {}
                b'\r' | b'\n' => {
                    let line = std::mem::take(&mut self.rest);
                    self.line(std::str::from_utf8(&line).expect("an event stream is UTF-8"));
                }
                other => self.rest.push(other),
            }
        }
    }

    pub fn next(&mut self) -> Option<Event> {
        self.ready.pop_front()
    }

    pub fn comments(&self) -> usize {
        self.fields.iter().filter(|f| f.is_empty()).count()
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let kind = std::mem::take(&mut self.kind);
            if let Some(data) = self.data.take() {
                self.ready.push_back(Event { kind, data, id: self.id.clone() });
            }
            return;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        self.fields.push(name.to_owned());
        match name {
            "id" => value.clone_into(&mut self.id),
            "event" => value.clone_into(&mut self.kind),
            "retry" => self.retry = value.parse().ok(),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            _ => {}
        }
    }
}
