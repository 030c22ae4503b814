//! Messages to and from a process, and what it writes beside them.

use super::*;
use crate::upstream::transport::child::stderr;
use futures_util::future::join_all;
use tracing_subscriber::fmt::MakeWriter;

#[tokio::test(start_paused = true)]
async fn messages_go_both_ways_one_a_line() {
    let mut play = play("server", 1 << 20);
    let mut channel = play.open().await;
    channel.send("{\"id\":1,\r\n\"method\":\"ping\"}").await.unwrap();
    channel.send(["{\"id\"", ":\n2", "}"].into_iter().collect::<Payload>()).await.unwrap();
    channel.stage.reads(b"{\"id\":1,  \"method\":\"ping\"}\n{\"id\": 2}\n").await;
    channel.stage.says("{\"id\":1,").await;
    channel.stage.says("\"result\":{}}\r\nStarting...\n\n{\"id\":2}\n").await;
    for said in ["{\"id\":1,\"result\":{}}", "Starting...", "{\"id\":2}"] {
        channel.hears(text(said)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn long_and_short_messages_keep_their_order_and_their_bytes() {
    let mut play = play("server", 1 << 24);
    let Channel { pipe, stage: mut server, .. } = play.open().await;
    let long = |fill: char| fill.to_string().repeat(300_000);
    let parts: [&[String]; 5] = [
        &["1".to_owned()],
        &["2a".to_owned(), long('b'), "2c".to_owned()],
        &["3".to_owned(), "3".to_owned()],
        &[long('d'), long('e')],
        &["5".to_owned()],
    ];
    let expected: String = parts.iter().flat_map(|line| [line.concat(), "\n".to_owned()]).collect();
    let sends = async {
        for line in parts {
            let line = line.iter().map(|part| Bytes::from(part.clone())).collect();
            pipe.send(line, &HeaderMap::new()).await.ok().unwrap();
        }
    };
    tokio::join!(sends, server.reads(expected.as_bytes()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_read_holds_up_its_callers_alone() {
    let mut play = play("server", 1 << 20);
    let (mut deaf, mut other) = (play.open().await, play.open().await);
    let message = || Payload::from("x".repeat(100_000));
    // What the queue has room for, and what the writer holds.
    let mut taken = 0;
    while tokio::time::timeout(Duration::from_secs(9), deaf.send(message())).await.is_ok() {
        taken += 1;
    }
    assert!((10..=12).contains(&taken), "{taken} messages were taken");
    other.send("{}").await.unwrap();
    other.stage.reads(b"{}\n").await;
    deaf.stage.says("still speaking\n").await;
    deaf.hears(text("still speaking")).await;
    // The message that was given up has not been handed over, not even a part of it.
    let all = format!("{}last\n", format!("{}\n", "x".repeat(100_000)).repeat(taken));
    let (pipe, server) = (deaf.pipe.clone(), &mut deaf.stage);
    let sent = async {
        pipe.send("last".into(), &HeaderMap::new()).await.ok().unwrap();
    };
    tokio::join!(sent, server.reads(all.as_bytes()));
}

#[tokio::test(start_paused = true)]
async fn many_short_messages_are_bounded_in_number_too() {
    let mut play = play("server", 1 << 24);
    let channel = play.open().await;
    let sends = (0..3000).map(|_| channel.send("{}"));
    let sent = tokio::time::timeout(Duration::from_secs(9), async {
        let mut done = 0;
        for send in sends {
            send.await.unwrap();
            done += 1;
            assert!(done < 1600, "{done} messages wait");
        }
    });
    assert!(sent.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_hear_of_the_end() {
    let mut play = play("server", 4096);
    let mut channel = play.open().await;
    channel.send("x".repeat(4096)).await.unwrap();
    let waiting = join_all((0..3).map(|_| channel.send("{}")));
    let (refused, ()) = tokio::join!(waiting, async { channel.pipe.end() });
    for refused in refused {
        assert!(refused.is_err_and(|error| error.did_not_run()));
    }
    assert!(channel.send("{}").await.is_err_and(|error| error.did_not_run()));
    channel.stage.exits("exit status: 0");
    channel.hears(ended("exit status: 0")).await;
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_too_long_costs_that_line_alone() {
    let mut play = play("server", 1 << 16);
    let mut channel = play.open().await;
    let long = "x".repeat(1 << 17);
    channel.stage.says(&format!("{{\"result\":{{\"text\":\"{long}\"}},\"id\":7}}\n{{}}\n")).await;
    channel.hears(Heard::TooLong(Some(Id::number(7)))).await;
    channel.hears(text("{}")).await;
}

#[tokio::test(start_paused = true)]
async fn what_floods_stderr_speaks_on() {
    let mut play = play("server", 1 << 20);
    let (log, _guard) = watched();
    let mut channel = play.open().await;
    let Stage { stdout, stderr, .. } = &mut channel.stage;
    let flood = async {
        for number in 0..5000 {
            stderr.write_all(format!("line {number}\n").as_bytes()).await.unwrap();
        }
    };
    let answers = async {
        for number in 0..100 {
            stdout.write_all(format!("{{\"id\":{number}}}\n").as_bytes()).await.unwrap();
        }
    };
    tokio::join!(flood, answers);
    for number in 0..100 {
        channel.hears(text(format!("{{\"id\":{number}}}"))).await;
    }
    // The count comes when its second is over, and the next second is counted anew.
    tokio::time::sleep(Duration::from_secs(2)).await;
    channel.stage.stderr.write_all(b"later\n").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let log = log.text();
    assert_eq!(log.matches("stderr: line ").count(), 200, "{log}");
    assert!(log.contains("stderr: 4800 lines more") && log.contains("stderr: later"), "{log}");
    assert_eq!(play.metric("stderr_lines_total{upstream=\"u\"}"), "5001");
}

#[tokio::test(start_paused = true)]
async fn what_is_logged_of_a_line_is_bounded_and_harmless() {
    let play = play("server", 1 << 20);
    let (log, _guard) = watched();
    let (mut own, stderr) = duplex(PIPE);
    let lines = stderr::Log::new("u".into(), Some(1), play.metrics.upstream("u"));
    let reading = tokio::spawn(stderr::read(Box::new(stderr), lines, CancellationToken::new()));
    own.write_all(format!("{}\r\n", "y".repeat(10_000)).as_bytes()).await.unwrap();
    own.write_all(b"\x1b[31mred\x1b[0m\x07 \xff \xe2\x82\xac\r\n\n\r\nno end").await.unwrap();
    drop(own);
    let last = reading.await.unwrap();
    let cut = format!("{}...", "y".repeat(300));
    assert_eq!(last, [&*cut, "\\u{1b}[31mred\\u{1b}[0m\\u{7} \u{fffd} €", "no end"]);
    let log = log.text();
    assert!(log.contains(&format!("stderr: {}... (5905 bytes more)", "y".repeat(4096))), "{log}");
    assert!(!log.contains('\x1b') && !log.contains('\x07'), "{log}");
}

/// What is logged while the guard lives.
fn watched() -> (Watched, tracing::subscriber::DefaultGuard) {
    let log = Watched::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(log.clone()).finish();
    (log, tracing::subscriber::set_default(subscriber))
}

#[derive(Clone, Default)]
struct Watched(Arc<Mutex<Vec<u8>>>);

impl Watched {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Watched {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
