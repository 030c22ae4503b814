//! The binary as the launcher of its child processes: they end with it, whatever ends it.

use super::*;
use std::io::{BufRead, Read};

/// A parent that is killed, and its child that knows nothing of it: no stream ends, no signal is passed on.
#[test]
fn a_child_ends_with_its_parent() {
    let script = format!("'{BINARY}' __launch $$ /bin/sh sh -c 'echo $$; exec sleep 1000' & wait");
    let mut parent = Command::new("sh")
        .args(["-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = io::BufReader::new(parent.stdout.take().unwrap());
    let mut child = String::new();
    stdout.read_line(&mut child).unwrap();
    assert!(runs(child.trim()));
    parent.kill().unwrap();
    parent.wait().unwrap();
    // Held open by the child alone.
    let (done, read) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(stdout.read_to_end(&mut Vec::new())));
    read.recv_timeout(PATIENCE).expect("the child runs on").unwrap();
}

fn launch(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(BINARY).arg("__launch").args(args).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[test]
fn a_child_whose_parent_is_gone_already_does_not_begin() {
    assert_eq!(launch(&["1", "/bin/echo", "echo", "begun"]), (Some(125), String::new()));
}

#[test]
fn the_launcher_is_for_its_own_program() {
    for args in [&[][..], &["x", "/bin/echo", "echo"], &["1", "/bin/echo"]] {
        let (status, said) = launch(args);
        assert_eq!(status, Some(64), "{said}");
        assert_eq!(said, "mcp-janus: __launch is for this program's own use\n");
    }
}

/// The whole binary, whose file is gone (as in an upgrade) when it starts a server that minds no end of its input.
#[test]
fn a_server_ends_with_a_proxy_that_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let (copy, fifo) = (directory.path().join("mcp-janus"), directory.path().join("fifo"));
    fs::copy(BINARY, &copy).unwrap();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // It holds the file open for as long as it lives.
    let script = format!("exec 3>'{}'; echo begun >&3; exec sleep 1000", fifo.display());
    let mut proxy = Command::new(&copy)
        .args(["serve", "--listen", "127.0.0.1:0", "--", "sh", "-c", &script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = io::BufReader::new(proxy.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address = log.find_map(|line| {
        let at = line.find("http://")? + "http://".len();
        Some(line[at..].split('/').next()?.to_owned())
    });
    fs::remove_file(&copy).unwrap();
    let (done, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut fifo = io::BufReader::new(fs::File::open(fifo).unwrap());
        let mut line = String::new();
        fifo.read_line(&mut line).unwrap();
        done.send(line).unwrap();
        done.send(fifo.read_to_end(&mut Vec::new()).unwrap().to_string()).unwrap();
    });
    let address = address.unwrap();
    let mut client = std::net::TcpStream::connect(&address).unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    io::Write::write_all(&mut client, format!("{head}{body}").as_bytes()).unwrap();
    assert_eq!(heard.recv_timeout(PATIENCE).expect("no server is started"), "begun\n");
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    assert_eq!(heard.recv_timeout(PATIENCE).expect("the server runs on"), "0");
}
