//! What everything is measured against: a relay of bytes that does nothing else, of the same parts as the proxy.
//!
//! Owns the least that a reverse proxy with pooled connections does on hyper: hop-by-hop headers off, bodies streamed,
//! no delay on either side. No limits, no times, no logs. The runtime is the default one, as the proxy's.

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONNECTION, HOST, HeaderValue, TRANSFER_ENCODING};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

pub async fn run(upstream: String) -> io::Result<()> {
    let uri: Uri = upstream.parse().map_err(io::Error::other)?;
    let host = uri.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let host = host.ok_or_else(|| io::Error::other("the upstream has no host"))?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Incoming> =
        Client::builder(TokioExecutor::new()).pool_max_idle_per_host(64).build(connector);
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (client, uri, host) = (client.clone(), uri.clone(), host.clone());
        let service = service_fn(move |request| {
            let (client, uri, host) = (client.clone(), uri.clone(), host.clone());
            async move { Ok::<_, Infallible>(pass(&client, uri, host, request).await) }
        });
        drop(tokio::spawn(async move {
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        }));
    }
}

async fn pass(
    client: &Client<HttpConnector, Incoming>,
    uri: Uri,
    host: HeaderValue,
    mut request: Request<Incoming>,
) -> Response<BoxBody<Bytes, hyper::Error>> {
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.remove(CONNECTION);
    headers.remove(TRANSFER_ENCODING);
    headers.insert(HOST, host);
    match client.request(request).await {
        Ok(mut response) => {
            response.headers_mut().remove(CONNECTION);
            response.headers_mut().remove(TRANSFER_ENCODING);
            response.map(BodyExt::boxed)
        }
        Err(_) => {
            let body = Empty::new().map_err(|never: Infallible| match never {}).boxed();
            let mut response = Response::new(body);
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    }
}
