//! What a client speaks, and that nothing of it is lost.
#![allow(clippy::unwrap_used)]

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

fn watched() -> (Watched, DuplexStream) {
    let (client, server) = duplex(1024);
    (Watched::new(Stream::Plain(Box::new(server)), Activity::new(), None), client)
}

/// In one piece, and byte by byte.
async fn spoken(text: &[u8], piece: usize) -> (Version, Vec<u8>) {
    let (mut watched, mut client) = watched();
    let text = text.to_vec();
    let writes = tokio::spawn(async move {
        for piece in text.chunks(piece) {
            client.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    let version = watched.version().await.unwrap();
    let mut read = Vec::new();
    watched.read_to_end(&mut read).await.unwrap();
    writes.await.unwrap();
    (version, read)
}

#[tokio::test]
async fn a_version_is_known_by_the_first_bytes_and_all_bytes_are_read_again() {
    let more = [PREFACE, b"and more"].concat();
    let cases: [(&[u8], Version); 7] = [
        (&more, Version::Http2),
        (PREFACE, Version::Http2),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", Version::Http1),
        (b"PUT / HTTP/1.1\r\n\r\n", Version::Http1),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r", Version::Http1),
        // Its end comes before it is known.
        (b"PRI * HTTP", Version::Http1),
        (b"", Version::Http1),
    ];
    for (text, version) in cases {
        for piece in [1, 5, 1024] {
            assert_eq!(spoken(text, piece).await, (version, text.to_vec()));
        }
    }
}

/// hyper would otherwise have the first bytes alone in a buffer that it then finds too small.
#[tokio::test]
async fn the_first_read_after_it_goes_on_with_what_has_come() {
    let (mut watched, mut client) = watched();
    let text = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
    client.write_all(text).await.unwrap();
    assert_eq!(watched.version().await.unwrap(), Version::Http1);
    let mut room = [0; 1024];
    assert_eq!(watched.read(&mut room).await.unwrap(), text.len());
    assert_eq!(room[..text.len()], text[..]);
}

#[tokio::test]
async fn a_small_buffer_takes_the_first_bytes_in_turns_and_an_open_client_is_not_waited_for() {
    let (mut watched, mut client) = watched();
    client.write_all(b"GET").await.unwrap();
    assert_eq!(watched.version().await.unwrap(), Version::Http1);
    let mut room = [0; 2];
    assert_eq!(watched.read(&mut room).await.unwrap(), 2);
    assert_eq!(watched.read(&mut room).await.unwrap(), 1);
}
