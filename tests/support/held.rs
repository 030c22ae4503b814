//! One answer of a server in the hands of the test: nothing, then what it is told to write, until it is ended or cut.
//!
//! Owns the way from the test to the connection, and whether the other side still holds it open. Does not own what is
//! written (`gets`, `calls`, or the test).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::mpsc;

use super::Reply;

const JSON_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

enum Order {
    Head,
    JsonHead,
    Bytes(Vec<u8>),
    Whole(u16, String),
    End,
    Reset,
    Cut,
}

pub struct Held {
    orders: mpsc::UnboundedSender<Order>,
    open: AtomicBool,
    written: AtomicUsize,
}

pub struct Orders(mpsc::UnboundedReceiver<Order>);

impl Held {
    pub fn new(open: bool) -> (Self, Orders) {
        let (orders, ordered) = mpsc::unbounded_channel();
        (Self { orders, open: AtomicBool::new(open), written: AtomicUsize::new(0) }, Orders(ordered))
    }

    /// Neither side has ended it.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    pub fn set_open(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
    }

    /// The head of an event stream, with nothing on it yet.
    pub fn head(&self) {
        self.order(Order::Head);
    }

    /// The head of a JSON body that is written bit by bit.
    pub fn json_head(&self) {
        self.order(Order::JsonHead);
    }

    /// Bytes of the body that have found room on the connection.
    pub fn written(&self) -> usize {
        self.written.load(Ordering::SeqCst)
    }

    pub fn event(&self, message: &str) {
        self.bytes(format!("event: message\ndata: {message}\n\n").as_bytes());
    }

    /// In a write of their own, on an event stream if nothing has begun.
    pub fn bytes(&self, bytes: &[u8]) {
        self.order(Order::Bytes(bytes.to_vec()));
    }

    /// A JSON body instead of an event stream.
    pub fn whole(&self, status: u16, body: &str) {
        self.order(Order::Whole(status, body.to_owned()));
    }

    pub fn end(&self) {
        self.order(Order::End);
    }

    pub fn reset(&self) {
        self.order(Order::Reset);
    }

    /// Closes the connection in the middle of the body.
    pub fn cut(&self) {
        self.order(Order::Cut);
    }

    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Does what is ordered; `begun` says whether the head of the stream is out.
    pub async fn follow(&self, mut reply: Reply, Orders(mut ordered): Orders, mut begun: bool) {
        loop {
            let order = tokio::select! {
                biased;
                order = ordered.recv() => order,
                () = reply.closed() => break,
            };
            if !begun && matches!(order, Some(Order::Head | Order::Bytes(_) | Order::End)) {
                reply.stream().await;
                begun = true;
            }
            match order {
                Some(Order::Head) => {}
                Some(Order::JsonHead) => {
                    reply.raw(JSON_HEAD).await;
                    begun = true;
                }
                Some(Order::Bytes(bytes)) => {
                    reply.chunk(&bytes).await;
                    self.written.fetch_add(bytes.len(), Ordering::SeqCst);
                }
                Some(Order::Whole(status, body)) => {
                    self.set_open(false);
                    return reply.json(status, &body).await;
                }
                Some(Order::End) => {
                    self.set_open(false);
                    return reply.end().await;
                }
                Some(Order::Reset) => {
                    self.set_open(false);
                    return reply.reset();
                }
                Some(Order::Cut) | None => break,
            }
        }
        self.set_open(false);
    }
}
