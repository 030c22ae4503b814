//! The client of the benchmark: connections that ask again as soon as they are answered, and check each answer.
//!
//! Owns what counts as an answer. The first one to each work is taken apart; every other must have the same length, and
//! its own id at each place where the first one has its id, so that an error never passes for speed.

use super::http1::{Conn, Head};
use super::work::{self, Era, FIRST_ID, ID_DIGITS, LAST_ID, Template, Work};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How much of an answer is looked at for ids: the beginning of a large one, the whole of a stream.
const LOOKED_AT: usize = 4096;
const ROOM: usize = 256 * 1024;
/// Calls of each connection that are not counted.
const WARM: usize = 3;
const PATIENCE: Duration = Duration::from_secs(20);

/// Whom the calls go to.
#[derive(Debug, Clone)]
pub struct Target {
    pub address: SocketAddr,
    /// For contestants that pass paths on.
    pub path: &'static str,
    /// The client's era.
    pub era: Era,
    /// What a client can be asked.
    pub capabilities: &'static str,
}

/// What an answer looks like.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    length: usize,
    ids: Vec<usize>,
}

pub struct Slice {
    pub elapsed: Duration,
    pub latencies: Vec<Duration>,
}

/// Every id of a run is another.
static NEXT_ID: AtomicU64 = AtomicU64::new(FIRST_ID);

fn next_id() -> io::Result<u64> {
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    if id > LAST_ID { Err(io::Error::other("the ids have run out")) } else { Ok(id) }
}

/// A client's connection to one target.
pub struct Client {
    conn: Conn,
    target: Target,
    session: Option<String>,
}

impl Client {
    /// Connects, and initializes where the era has it.
    pub async fn new(target: &Target, room: usize) -> io::Result<Self> {
        Self::over(Conn::connect(target.address, room).await?, target).await
    }

    /// Takes over an open connection to the same target.
    pub async fn over(conn: Conn, target: &Target) -> io::Result<Self> {
        let mut client = Self { conn, target: target.clone(), session: None };
        if target.era == Era::Legacy {
            let head = client.send(work::initialize(target.capabilities)).await?;
            client.conn.body(&head, |_| {}).await?;
            let session = head.session.filter(|_| head.status == 200);
            let session = session.ok_or_else(|| io::Error::other(format!("no session: {}", head.line)))?;
            let head = client.send(work::initialized(&session)).await?;
            client.conn.body(&head, |_| {}).await?;
            client.session = Some(session);
        }
        Ok(client)
    }

    pub fn into_conn(self) -> Conn {
        self.conn
    }

    pub fn template(&self, work: &Work, credential: Option<&str>) -> Template {
        work.call(self.target.era, self.target.capabilities, credential, self.session.as_deref())
    }

    async fn send(&mut self, template: Template) -> io::Result<Head> {
        self.write(&template).await?;
        self.conn.head().await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    async fn write(&mut self, template: &Template) -> io::Result<()> {
        // The path of a template is the proxy's; the server's own stands in its place for who passes it on.
        let at = memchr::memchr(b'/', &template.bytes).unwrap_or(0);
        let (verb, rest) = template.bytes.split_at(at);
        let rest = rest.strip_prefix(b"/mcp").unwrap_or(rest);
        self.conn.write_pieces([verb, self.target.path.as_bytes(), rest]).await
    }

    /// One call; `seen` gets the beginning of the answer's body. Returns its length, and when its first byte came.
    pub async fn call(
        &mut self,
        template: &mut Template,
        id: u64,
        seen: &mut Vec<u8>,
    ) -> io::Result<(usize, Instant)> {
        template.set_id(id);
        self.write(template).await?;
        let head = self.conn.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        seen.clear();
        let mut first = None;
        let length = self
            .conn
            .body(&head, |piece| {
                first.get_or_insert_with(Instant::now);
                seen.extend_from_slice(&piece[..piece.len().min(LOOKED_AT - seen.len())]);
            })
            .await?;
        if head.status != 200 {
            let text = String::from_utf8_lossy(seen);
            return Err(io::Error::other(format!(
                "{}: {}",
                head.line,
                text.chars().take(300).collect::<String>()
            )));
        }
        let length = length - without_event_ids(seen);
        Ok((length, first.unwrap_or_else(Instant::now)))
    }

    /// Opens the stream of a legacy client's session, which says nothing that it would have to wait for.
    pub async fn get(&mut self) -> io::Result<()> {
        let session = self.session.as_deref().unwrap_or_default();
        let head = self.send(work::get(session)).await?;
        if head.status == 200 { Ok(()) } else { Err(io::Error::other(head.line)) }
    }

    /// Opens `subscriptions/listen`, and returns once it is acknowledged.
    pub async fn listen(&mut self) -> io::Result<()> {
        let head = self.send(work::listen()).await?;
        if head.status != 200 {
            return Err(io::Error::other(head.line));
        }
        let mut seen = Vec::new();
        let acknowledged = async { self.conn.body(&head, |piece| seen.extend_from_slice(piece)).await };
        // The stream stays open, so this never completes; the acknowledgement is its first event.
        let _ = tokio::time::timeout(Duration::from_millis(20), acknowledged).await;
        if memchr::memmem::find(&seen, b"subscriptions/acknowledged").is_some() {
            Ok(())
        } else {
            Err(io::Error::other("no acknowledgement"))
        }
    }
}

/// Takes lines `id: ...` out of an event stream, whose length differs from answer to answer; returns how much that was.
fn without_event_ids(seen: &mut Vec<u8>) -> usize {
    if seen.first() == Some(&b'{') {
        return 0;
    }
    let before = seen.len();
    let mut at = 0;
    while at < seen.len() {
        let end = memchr::memchr(b'\n', &seen[at..]).map_or(seen.len(), |end| at + end + 1);
        if seen[at..end].starts_with(b"id:") {
            seen.drain(at..end);
        } else {
            at = end;
        }
    }
    before - seen.len()
}

impl Shape {
    fn of(length: usize, seen: &[u8], id: u64) -> Self {
        Self { length, ids: memchr::memmem::find_iter(seen, &id.to_string()).collect() }
    }

    fn fits(&self, length: usize, seen: &[u8], id: u64) -> bool {
        let id = id.to_string();
        self.length == length
            && self.ids.iter().all(|at| seen.get(*at..*at + ID_DIGITS) == Some(id.as_bytes()))
    }
}

/// Calls over all connections of the work, for `span`. `begin` is called when every connection is warm.
pub async fn slice(target: &Target, work: &Work, span: Duration, begin: impl FnOnce()) -> io::Result<Slice> {
    let shape = Arc::new(first(target, work).await?);
    let mut clients = Vec::new();
    for _ in 0..work.connections {
        let client = Client::new(target, ROOM).await?;
        let template = client.template(work, None);
        clients.push((client, template));
    }
    let mut warm = tokio::task::JoinSet::new();
    for (client, template) in clients {
        let shape = shape.clone();
        warm.spawn(async move { repeat(client, template, &shape, |calls| calls < WARM).await });
    }
    let clients: Vec<_> = warm.join_all().await.into_iter().collect::<io::Result<_>>()?;
    begin();
    let start = Instant::now();
    let mut counted = tokio::task::JoinSet::new();
    for (client, template, _) in clients {
        let shape = shape.clone();
        counted.spawn(async move { repeat(client, template, &shape, |_| start.elapsed() < span).await });
    }
    let done: Vec<_> = counted.join_all().await.into_iter().collect::<io::Result<_>>()?;
    let elapsed = start.elapsed();
    let mut latencies: Vec<_> = done.into_iter().flat_map(|(_, _, latencies)| latencies).collect();
    latencies.sort_unstable();
    Ok(Slice { elapsed, latencies })
}

async fn repeat(
    mut client: Client,
    mut template: Template,
    shape: &Shape,
    more: impl Fn(usize) -> bool,
) -> io::Result<(Client, Template, Vec<Duration>)> {
    let mut latencies = Vec::with_capacity(16 * 1024);
    let mut seen = Vec::with_capacity(LOOKED_AT);
    while more(latencies.len()) {
        let id = next_id()?;
        let began = Instant::now();
        let call = client.call(&mut template, id, &mut seen);
        let (length, _) =
            tokio::time::timeout(PATIENCE, call).await.map_err(|_| io::ErrorKind::TimedOut)??;
        latencies.push(began.elapsed());
        if !shape.fits(length, &seen, id) {
            let text = String::from_utf8_lossy(&seen[..seen.len().min(300)]).into_owned();
            return Err(io::Error::other(format!("a wrong answer of {length} bytes to {id}: {text}")));
        }
    }
    Ok((client, template, latencies))
}

/// The first answer, taken apart.
async fn first(target: &Target, work: &Work) -> io::Result<Shape> {
    let mut client = Client::new(target, ROOM).await?;
    let mut template = client.template(work, None);
    let id = next_id()?;
    let mut whole = Vec::new();
    template.set_id(id);
    let head = client.send(template).await?;
    client.conn.body(&head, |piece| whole.extend_from_slice(piece)).await?;
    without_event_ids(&mut whole);
    check(work, id, &whole).map_err(|why| {
        let text = String::from_utf8_lossy(&whole[..whole.len().min(500)]).into_owned();
        io::Error::other(format!("{}: {why}: {} {text}", work.title, head.line))
    })?;
    Ok(Shape::of(whole.len(), &whole[..whole.len().min(LOOKED_AT)], id))
}

fn check(work: &Work, id: u64, body: &[u8]) -> Result<(), String> {
    let messages: Vec<serde_json::Value> = if work.progress > 0 || body.first() != Some(&b'{') {
        let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        // An event without data is there for its id.
        let data = data.filter(|data| !data.trim().is_empty());
        data.map(serde_json::from_str).collect::<Result<_, _>>().map_err(|error| error.to_string())?
    } else {
        vec![serde_json::from_slice(body).map_err(|error| error.to_string())?]
    };
    let Some((answer, notifications)) = messages.split_last() else { return Err("nothing came".into()) };
    let progress = notifications.iter().enumerate().all(|(index, message)| {
        message["method"] == "notifications/progress"
            && message["params"]["progressToken"] == id
            && message["params"]["progress"] == index + 1
    });
    if !progress || notifications.len() != work.progress {
        return Err(format!("{} notifications, or wrong ones", notifications.len()));
    }
    if answer["id"] != id || answer["result"]["isError"] != false {
        return Err("not the answer".into());
    }
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let expected: String =
        serde_json::from_str(&format!("\"{}\"", work::text(work.result))).unwrap_or_default();
    if text == expected { Ok(()) } else { Err(format!("a text of {} bytes", text.len())) }
}
