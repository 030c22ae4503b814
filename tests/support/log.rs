//! What the program writes to its log while a test runs, on the test's own thread.
//!
//! Owns the capture: one subscriber for the process, which hands each line to the test whose thread it comes from. Does not
//! own the program's own form of lines (`binary` looks at that).

use std::cell::RefCell;
use std::io::Write;
use std::sync::{Arc, Mutex, Once};

use tracing_subscriber::Layer;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

type Text = Arc<Mutex<Vec<u8>>>;

thread_local! {
    static OWN: RefCell<Option<Text>> = const { RefCell::new(None) };
}

/// Everything that has been logged since it was made, at every level, until it is dropped.
pub struct Log(Text);

impl Log {
    pub fn open() -> Self {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let wanted = dynamic_filter_fn(|_, _| OWN.with_borrow(Option::is_some));
            let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Lines);
            tracing_subscriber::registry().with(lines.with_filter(wanted)).init();
        });
        let text = Text::default();
        OWN.set(Some(text.clone()));
        Self(text)
    }

    /// The lines of the program so far.
    pub fn lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned();
        text.lines().filter(|line| line.contains("mcp_janus")).map(str::to_owned).collect()
    }

    /// Those that contain all of these.
    pub fn with(&self, words: &[&str]) -> Vec<String> {
        self.lines().into_iter().filter(|line| words.iter().all(|word| line.contains(word))).collect()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        OWN.set(None);
    }
}

struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        OWN.with_borrow(|text| {
            text.iter().for_each(|text| text.lock().unwrap().extend_from_slice(bytes));
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}
