//! A WebSocket: reads messages from its stream, writes frames to it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use nexo_wire::dialect::Packet;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

use super::frame::{self, Opcode, Violation};
use super::reader::{Found, MessageReader};

/// Frames are collected up to this many bytes before a write, unless nothing more is queued.
const WRITE_BYTES: usize = 16 * 1024;

/// What a client did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// It sent a message: [`WebSocket::packet`].
    Message,
    /// It sent a ping, which was answered, or a pong.
    Control,
    Violation(Violation),
    /// It has closed or lost the connection.
    Closed,
}

pub(crate) struct WebSocket {
    stream: TcpStream,
    reader: MessageReader,
    /// Whether the last message is text.
    is_text: bool,
    is_close_sent: bool,
    /// Whether the client violated the protocol: what follows cannot be read as frames.
    is_violated: bool,
    /// Frames to write; no buffer while there are none.
    out: Vec<u8>,
    /// How much of `out` is written.
    written: usize,
}

impl WebSocket {
    /// A stream after its handshake; `first` is what was read beyond that.
    pub(super) fn new(stream: TcpStream, first: Bytes, message_bytes_max: usize) -> Self {
        let reader = MessageReader::new(first, message_bytes_max);
        let (out, written) = (Vec::new(), 0);
        Self {
            stream,
            reader,
            is_text: false,
            is_close_sent: false,
            is_violated: false,
            out,
            written,
        }
    }

    /// The next thing that the client does. After a violation that is only [`Incoming::Closed`].
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Incoming> {
        if self.is_violated {
            return self.poll_discard(cx);
        }
        loop {
            match self.reader.find() {
                Err(violation) => {
                    self.is_violated = true;
                    return Poll::Ready(Incoming::Violation(violation));
                }
                Ok(Some(found)) => return Poll::Ready(self.handle(found)),
                Ok(None) => {}
            }
            let Ok(true) = ready!(self.reader.poll_fill(&mut self.stream, cx)) else {
                return Poll::Ready(Incoming::Closed);
            };
        }
    }

    /// Ends the server's side of the stream and discards all input until the client ends its side.
    /// Dropping a stream with unread input resets it, and the client may lose the close frame.
    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<Incoming> {
        let mut is_open = ready!(Pin::new(&mut self.stream).poll_shutdown(cx)).is_ok();
        while is_open {
            self.reader.discard();
            is_open = matches!(ready!(self.reader.poll_fill(&mut self.stream, cx)), Ok(true));
        }
        Poll::Ready(Incoming::Closed)
    }

    fn handle(&mut self, found: Found) -> Incoming {
        match found {
            Found::Text | Found::Binary => {
                self.is_text = found == Found::Text;
                Incoming::Message
            }
            Found::Ping => {
                // A client that takes nothing gets no pongs either: they would pile up.
                if self.has_room() && !self.is_close_sent {
                    frame::write(&mut self.out, Opcode::Pong, self.reader.payload());
                }
                Incoming::Control
            }
            Found::Pong => Incoming::Control,
            Found::Close(code) => {
                self.queue_close(code, "");
                Incoming::Closed
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Incoming {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The message of the last [`Incoming::Message`].
    pub(crate) fn packet(&self) -> Result<Packet<'_>, Violation> {
        let payload = self.reader.payload();
        if !self.is_text {
            return Ok(Packet::Binary(payload));
        }
        str::from_utf8(payload).map(Packet::Text).map_err(|_| Violation::NotUtf8)
    }

    /// Whether more frames should be queued before they are written.
    pub(crate) fn has_room(&self) -> bool {
        self.out.len() < WRITE_BYTES
    }

    pub(crate) fn queue(&mut self, opcode: Opcode, payload: &[u8]) {
        frame::write(&mut self.out, opcode, payload);
    }

    /// Queues a close frame, once.
    pub(crate) fn queue_close(&mut self, code: Option<u16>, reason: &str) {
        if !self.is_close_sent {
            self.is_close_sent = true;
            let payload = code.map(|code| frame::close_payload(code, reason)).unwrap_or_default();
            frame::write(&mut self.out, Opcode::Close, &payload);
        }
    }

    /// Writes all queued frames.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let stream = Pin::new(&mut self.stream);
            match ready!(stream.poll_write(cx, &self.out[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        (self.out, self.written) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }

    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_flush(cx)).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_client_that_goes_on_after_a_violation_is_not_reset() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let client = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let (mut input, mut output) = stream.split();
            let (mut received, unmasked) = (Vec::new(), vec![0; 4 * 1024 * 1024]);
            let reading = input.read_to_end(&mut received);
            let (read, written) = tokio::join!(reading, output.write_all(&unmasked));
            (read.unwrap(), written.unwrap(), received)
        };
        let server = async {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = WebSocket::new(stream, Bytes::new(), 1000);
            assert_eq!(socket.next().await, Incoming::Violation(Violation::Other));
            socket.queue_close(Some(1002), "");
            socket.flush().await.unwrap();
            assert_eq!(socket.next().await, Incoming::Closed);
        };
        let ((_, (), received), ()) = tokio::join!(client, server);
        assert_eq!(received, [0x88, 2, 0x03, 0xea]);
    }
}
