//! What the program writes to its log while a test runs, on the test's own thread.
//!
//! Owns the capture. Does not own the program's own form of lines (`binary` looks at that).

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing_subscriber::fmt::MakeWriter;

/// Everything that has been logged since it was made, at every level.
#[derive(Clone)]
pub struct Log {
    text: Arc<Mutex<Vec<u8>>>,
    _until: Arc<tracing::subscriber::DefaultGuard>,
}

#[derive(Clone)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// From now on, until it is dropped.
    pub fn open() -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::level_filters::LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(Lines(text.clone()))
            .finish();
        Self { text, _until: Arc::new(tracing::subscriber::set_default(subscriber)) }
    }

    /// The lines of the program so far.
    pub fn lines(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned();
        text.lines().filter(|line| line.contains("mcp_janus")).map(str::to_owned).collect()
    }

    /// Those that contain all of these.
    pub fn with(&self, words: &[&str]) -> Vec<String> {
        self.lines().into_iter().filter(|line| words.iter().all(|word| line.contains(word))).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
