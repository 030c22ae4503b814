//! Child processes that are none: their streams are in memory and their time is a paused clock.

use super::*;
use crate::config::Command;
use crate::net::Processes;
use crate::telemetry::metrics::Metrics;
use crate::upstream::transport::peer;
use crate::wire::jsonrpc::Id;
use bytes::Bytes;
use std::borrow::Cow;
use tokio::sync::mpsc;

#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Text(Bytes),
    TooLong(Option<Id>),
    Ended(String),
}

struct Ear(mpsc::UnboundedSender<Heard>);

impl Inbox for Ear {
    fn text(&self, text: Bytes) {
        let _ = self.0.send(Heard::Text(text));
    }

    fn too_long(&self, id: Option<Id>) {
        let _ = self.0.send(Heard::TooLong(id));
    }

    fn ended(&self, why: Cow<'static, str>) {
        let _ = self.0.send(Heard::Ended(why.into_owned()));
    }
}

fn command(program: &str, args: &[&str]) -> Command {
    Command {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        env: Vec::new(),
        inherit_env: Vec::new(),
        cwd: None,
    }
}

fn child(command: &Command, launch: Arc<dyn Launch>) -> Child {
    let metrics = Metrics::new().unwrap().upstream("up");
    Child::new(&peer::upstream("http://a/"), command, launch, Shutdown::new(Duration::from_secs(1)), metrics)
}

#[cfg(unix)]
#[tokio::test]
async fn a_real_process_answers_and_ends() {
    let child = child(&command("cat", &[]), Arc::new(Processes::new(None)));
    let (ear, mut heard) = mpsc::unbounded_channel();
    let pipe = child.open(&HeaderMap::new(), Arc::new(Ear(ear))).await.ok().unwrap();
    pipe.send(Payload::from("{\n}"), &HeaderMap::new()).await.ok().unwrap();
    assert_eq!(heard.recv().await, Some(Heard::Text(Bytes::from_static(b"{ }"))));
    pipe.end();
    let ended = Heard::Ended("the server's process: exit status: 0".to_owned());
    assert_eq!(heard.recv().await, Some(ended));
    child.close().await;
}
