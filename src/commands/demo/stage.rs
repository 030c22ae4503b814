//! The parts of the demo on loopback: client, tap, proxy, tap, server.
//!
//! Owns starting and ending them, and running one step or turn with what was on the wires in it. Does not own the scripts
//! (`steps`, `old`) nor the page.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::DemoError;
use super::client::{self, Answer};
use super::frames::{Frame, Wire};
use super::old::{Client, Turn};
use super::seen::Seen;
use super::steps::Step;
use super::tap::{Tap, Tape};
use crate::app::App;
use crate::config::{self, Config, EraSetting};
use crate::shutdown::{Ending, Shutdown};

/// For one step. They take a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(5);
const GRACE: Duration = Duration::from_secs(2);

/// What was on the wires, and whether that is as it must be.
pub(super) type Ran = (Vec<Frame>, Result<(), String>);

/// The parts, running.
pub(super) struct Stage {
    pub(super) tape: Arc<Tape>,
    /// Where the client goes: the tap in front of the proxy.
    pub(super) front: SocketAddr,
    proxy: Shutdown,
    serving: JoinHandle<Ending>,
    /// Dropped, it stops the server.
    _server: oneshot::Sender<()>,
}

impl Stage {
    /// The proxy before a legacy server, whose generation it finds out.
    pub(super) async fn legacy() -> Result<Self, DemoError> {
        Self::build(EraSetting::Auto, |listener, stop| async move {
            crate::demo::serve(listener, stop).await;
        })
        .await
    }

    /// The proxy before a modern server. It is told so, to leave out what the first part has shown.
    pub(super) async fn modern() -> Result<Self, DemoError> {
        Self::build(EraSetting::Modern, |listener, stop| async move {
            crate::demo::modern::serve(listener, stop).await;
        })
        .await
    }

    async fn build<F: Future<Output = ()> + Send + 'static>(
        era: EraSetting,
        serve: impl FnOnce(TcpListener, oneshot::Receiver<()>) -> F,
    ) -> Result<Self, DemoError> {
        let tape = Arc::new(Tape::default());
        let (front, back) =
            (Tap::bind().await.map_err(DemoError::Socket)?, Tap::bind().await.map_err(DemoError::Socket)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(DemoError::Socket)?;
        let server = listener.local_addr().map_err(DemoError::Socket)?;
        let (keep, stop) = oneshot::channel::<()>();
        // Ends with the stage.
        tokio::spawn(serve(listener, stop));

        let mut upstream = config::Upstream::for_url(&format!("http://{}/mcp", back.address))?;
        upstream.era = era;
        let mut settings = Config::single(upstream);
        settings.listen.address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        settings.shutdown_grace = GRACE;
        let app = App::new(settings, None).await?;
        let sockets = app.bind().await?;
        let (proxy, address) = (app.shutdown().clone(), sockets.clients.local_addr());
        // Ends with the drain.
        let serving = tokio::spawn(async move { app.serve(sockets).await });

        back.start(server, Wire::Back, tape.clone());
        let client = front.address;
        front.start(address, Wire::Front, tape.clone());
        Ok(Self { tape, front: client, proxy, serving, _server: keep })
    }

    /// One step of the modern client. `before` is the answer of the step before.
    pub(super) async fn step(&self, step: &Step, before: &mut Value) -> Ran {
        let mark = self.tape.mark();
        let running = async {
            let answer = client::call(self.front, &step.request, step.most, before).await?;
            self.tape.wait(mark, step.settled).await;
            Ok(answer)
        };
        let answer = in_time(running).await;
        *before = answer.as_ref().ok().and_then(|answer| answer.messages.last().cloned()).unwrap_or_default();
        self.checked(mark, answer, step.check)
    }

    /// One turn of the legacy client.
    pub(super) async fn turn(&self, turn: &Turn, client: &mut Client) -> Ran {
        let mark = self.tape.mark();
        let answer = in_time(client.act(turn.act)).await;
        self.checked(mark, answer, turn.check)
    }

    fn checked(
        &self,
        mark: usize,
        answer: Result<Answer, String>,
        check: fn(&Seen<'_>) -> Result<(), String>,
    ) -> Ran {
        let frames = self.tape.since(mark);
        let verdict = answer.and_then(|answer| check(&Seen { answer: &answer, frames: &frames }));
        (frames, verdict)
    }

    /// Drains the proxy, and stops the server.
    pub(super) async fn end(self) -> Result<(), String> {
        self.proxy.drain();
        match timeout(PATIENCE, self.serving).await {
            Ok(Ok(Ending::Drained)) => Ok(()),
            Ok(Ok(Ending::OutOfTime | Ending::CutShort)) => Err("the proxy cut something short".to_owned()),
            Ok(Err(error)) => Err(format!("the proxy broke: {error}")),
            Err(_) => Err("the proxy did not stop".to_owned()),
        }
    }
}

async fn in_time(running: impl Future<Output = io::Result<Answer>>) -> Result<Answer, String> {
    match timeout(PATIENCE, running).await {
        Ok(answer) => answer.map_err(|error| format!("the client got no answer: {error}")),
        Err(_) => Err(format!("the step was not over after {PATIENCE:?}")),
    }
}
