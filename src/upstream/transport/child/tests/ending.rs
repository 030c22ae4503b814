//! How a process comes to its end, and what is heard of it.

use super::*;
use std::future::pending;
use tokio::time::{sleep, timeout};

const MOMENT: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn a_polite_process_ends_with_its_input() {
    let mut play = play("server", 1 << 20);
    let mut channel = play.open().await;
    channel.send("{\"method\":\"notifications/cancelled\"}").await.unwrap();
    let start = Instant::now();
    channel.pipe.end();
    // What was handed over before the end arrives.
    channel.stage.reads(b"{\"method\":\"notifications/cancelled\"}\n").await;
    channel.stage.reads_the_end().await;
    channel.stage.says("last words\nno end").await;
    let signals = channel.stage.signals.clone();
    channel.stage.exits("exit status: 0");
    drop(channel.stage);
    for heard in [text("last words"), text("no end"), ended("exit status: 0")] {
        assert_eq!(channel.heard.recv().await, Some(heard));
    }
    assert_eq!(channel.heard.recv().await, None);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(signals.lock().unwrap().is_empty());
    play.child.close().await;
    assert_eq!(play.metric("process_exits_total{how=\"asked\",upstream=\"u\"}"), "1");
    assert_eq!(play.metric("processes{upstream=\"u\"}"), "0");
}

#[tokio::test(start_paused = true)]
async fn a_stubborn_process_is_signalled_in_steps() {
    let mut play = play("server", 1 << 20);
    let mut channel = play.open().await;
    let start = Instant::now();
    drop(channel.pipe);
    channel.stage.reads_the_end().await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    sleep(3 * STOP).await;
    assert_eq!(channel.stage.signals(start), [("TERM", STOP), ("KILL", 2 * STOP)]);
    channel.stage.exits("signal: 9 (SIGKILL)");
    drop(channel.stage);
    assert_eq!(channel.heard.recv().await, Some(ended("signal: 9 (SIGKILL)")));
    play.child.close().await;
    assert_eq!(play.metric("process_exits_total{how=\"killed\",upstream=\"u\"}"), "1");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_read_is_ended_all_the_same() {
    let mut play = play("server", 1 << 20);
    let channel = play.open().await;
    // More than the pipe holds: the end of file cannot be seen before it.
    channel.send("x".repeat(4 * PIPE)).await.unwrap();
    let start = Instant::now();
    channel.pipe.end();
    sleep(STOP + MOMENT).await;
    assert_eq!(channel.stage.signals(start), [("TERM", STOP)]);
    channel.stage.exits("signal: 15 (SIGTERM)");
    play.child.close().await;
    assert_eq!(start.elapsed(), STOP + 2 * MOMENT);
}

#[tokio::test(start_paused = true)]
async fn what_is_stuck_in_the_kernel_is_left_behind() {
    let mut play = play("server", 1 << 20);
    let mut channel = play.open().await;
    let start = Instant::now();
    play.child.close().await;
    assert_eq!(start.elapsed(), 2 * STOP + Duration::from_secs(5) + MOMENT);
    channel.hears(ended("it runs on after SIGKILL")).await;
}

#[tokio::test(start_paused = true)]
async fn an_exit_is_heard_at_once_after_all_that_was_said() {
    let mut play = play("server", 1 << 20);
    let mut channel = play.open().await;
    let start = Instant::now();
    channel.stage.says("{\"id\":1}\n{\"id\":2").await;
    channel.stage.exits("exit status: 3");
    drop(channel.stage);
    for heard in [text("{\"id\":1}"), text("{\"id\":2"), ended("exit status: 3")] {
        assert_eq!(channel.heard.recv().await, Some(heard));
    }
    assert_eq!(channel.heard.recv().await, None);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(channel.pipe.send("{}".into(), &HeaderMap::new()).await.is_err());
    play.child.close().await;
    assert_eq!(play.metric("process_exits_total{how=\"by_itself\",upstream=\"u\"}"), "1");
}

#[tokio::test(start_paused = true)]
async fn who_holds_the_streams_after_the_exit_delays_it_by_a_moment() {
    let mut play = play("server", 1 << 20);
    let mut channel = play.open().await;
    let start = Instant::now();
    channel.stage.exits("exit status: 0");
    channel.stage.says("{\"id\":1}\n{\"id\":2").await;
    channel.hears(text("{\"id\":1}")).await;
    channel.hears(text("{\"id\":2")).await;
    channel.hears(ended("exit status: 0")).await;
    assert_eq!(start.elapsed(), MOMENT);
    play.child.close().await;
}

#[tokio::test(start_paused = true)]
async fn who_goes_on_writing_after_the_exit_does_not_delay_it_for_ever() {
    let mut play = play("server", 1 << 20);
    let Channel { pipe: _pipe, mut heard, stage } = play.open().await;
    stage.exits("exit status: 0");
    let Stage { mut stdout, mut stderr, .. } = stage;
    let flood = async move {
        loop {
            let line = "x".repeat(PIPE / 2) + "\n";
            if stdout.write_all(line.as_bytes()).await.is_err() {
                let _ = stderr.write_all(line.as_bytes()).await;
                return pending::<()>().await;
            }
            // The clock only moves while nobody is at work.
            sleep(Duration::from_millis(1)).await;
        }
    };
    let over = async { while !matches!(heard.recv().await, Some(Heard::Ended(_))) {} };
    tokio::select! {
        () = flood => {}
        over = timeout(Duration::from_secs(1), over) => over.unwrap(),
    }
    play.child.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_its_output_is_ended() {
    let mut play = play("server", 1 << 20);
    let Channel { pipe: _pipe, mut heard, stage } = play.open().await;
    let start = Instant::now();
    let Stage { stdout, mut stdin, stderr, exit, signals } = stage;
    drop(stdout);
    assert_eq!(heard.recv().await, Some(ended("has closed its standard output")));
    assert_eq!(start.elapsed(), MOMENT);
    assert_eq!(stdin.read(&mut [0]).await.unwrap(), 0);
    sleep(STOP + MOMENT).await;
    assert_eq!(signals.lock().unwrap().len(), 1);
    exit.send_replace(Some("signal: 15 (SIGTERM)".to_owned()));
    drop(stderr);
    play.child.close().await;
    assert_eq!(heard.recv().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_its_input_may_still_answer() {
    let mut play = play("server", 1 << 20);
    let Channel { pipe, mut heard, stage } = play.open().await;
    let Stage { mut stdout, stdin, stderr, exit, .. } = stage;
    drop(stdin);
    pipe.send("{}".into(), &HeaderMap::new()).await.ok().unwrap();
    sleep(2 * MOMENT).await;
    assert!(pipe.send("{}".into(), &HeaderMap::new()).await.is_err());
    stdout.write_all(b"{\"id\":1}\n").await.unwrap();
    assert_eq!(heard.recv().await, Some(text("{\"id\":1}")));
    exit.send_replace(Some("exit status: 0".to_owned()));
    drop((stdout, stderr));
    let words = "exit status: 0, after it has closed its standard input";
    assert_eq!(heard.recv().await, Some(ended(words)));
}

#[tokio::test(start_paused = true)]
async fn all_end_side_by_side_and_none_begins() {
    let mut play = play("server", 1 << 20);
    let (first, second) = (play.open().await, play.open().await);
    let start = Instant::now();
    let stages = async {
        sleep(STOP / 2).await;
        first.stage.exits("exit status: 0");
        second.stage.exits("exit status: 0");
        drop((first.stage, second.stage));
    };
    tokio::join!(play.child.close(), stages);
    assert_eq!(start.elapsed(), STOP / 2);
    assert!(matches!(play.refused().await, SendError::Start { .. }));
    assert!(play.stages.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_shutdown_ends_them_and_is_in_a_hurry() {
    let mut play = play("server", 1 << 20);
    let channel = play.open().await;
    let start = Instant::now();
    play.shutdown.drain();
    sleep(STOP).await;
    assert!(channel.pipe.send("{}".into(), &HeaderMap::new()).await.is_ok());
    play.shutdown.end();
    sleep(STOP).await;
    let hurried = Duration::from_millis(500);
    assert_eq!(channel.stage.signals(start), [("TERM", STOP + hurried), ("KILL", STOP + 2 * hurried)]);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_start_is_said() {
    let mut missing = play("missing", 1 << 20);
    let error = missing.refused().await;
    assert_eq!(error.to_string(), "cannot start the server: `missing` is nowhere");
    assert!(error.did_not_run());
    assert_eq!(missing.metric("process_starts_total{result=\"failed\",upstream=\"u\"}"), "1");
    let start = Instant::now();
    let error = play("slow", 1 << 20).refused().await;
    assert_eq!(start.elapsed(), Duration::from_secs(60));
    assert_eq!(error.to_string(), "cannot start the server: its program does not run after 60s");
}
