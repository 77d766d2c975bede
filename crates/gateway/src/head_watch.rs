//! Detects requests with both `Transfer-Encoding` and `Content-Length` (request smuggling). The HTTP
//! library follows the first and hides the second; a proxy in front of this server may have followed
//! the second and seen another request. So the raw bytes of each head are captured as they are read.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP stream whose request heads are captured until it becomes a WebSocket.
pub(crate) struct WatchedStream {
    stream: TcpStream,
    head: Arc<HeadCapture>,
}

/// The bytes read since the last response, which contain the head of the current request.
pub(crate) struct HeadCapture {
    bytes_max: usize,
    is_stopped: AtomicBool,
    captured: Mutex<CapturedBytes>,
}

#[derive(Default)]
struct CapturedBytes {
    /// The first bytes, as many as a head may have.
    bytes: Vec<u8>,
    /// The last bytes after those: the next head may begin there.
    tail: Vec<u8>,
    is_answered: bool,
}

impl CapturedBytes {
    /// The bytes after the last complete head, which may belong to the next request.
    fn rest(self) -> Self {
        let mut bytes = self.bytes;
        bytes.extend(self.tail);
        let ends = |end: &[u8]| {
            bytes.windows(end.len()).rposition(|at| at == end).map(|at| at + end.len())
        };
        let end = ends(b"\n\r\n").max(ends(b"\n\n")).unwrap_or(0);
        bytes.drain(..end);
        Self { bytes, ..Self::default() }
    }
}

impl WatchedStream {
    pub(crate) fn new(stream: TcpStream, bytes_max: usize) -> (Self, Arc<HeadCapture>) {
        let (is_stopped, captured) = (AtomicBool::new(false), Mutex::default());
        let head = Arc::new(HeadCapture { bytes_max, is_stopped, captured });
        (Self { stream, head: Arc::clone(&head) }, head)
    }

    pub(crate) fn into_inner(self) -> TcpStream {
        self.stream
    }
}

impl HeadCapture {
    fn captured(&self) -> MutexGuard<'_, CapturedBytes> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Captures nothing more.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        *self.captured() = CapturedBytes::default();
    }

    /// Whether a `Content-Length` header was read since the last response. Only asked for requests
    /// with `Transfer-Encoding`; does not tell pipelined requests apart.
    pub(crate) fn has_content_length(&self) -> bool {
        let captured = self.captured();
        has_content_length(&captured.bytes) || has_content_length(&captured.tail)
    }

    fn on_read(&self, bytes: &[u8]) {
        if self.is_stopped.load(Ordering::Relaxed) {
            return;
        }
        let mut captured = self.captured();
        if captured.is_answered {
            *captured = std::mem::take(&mut *captured).rest();
        }
        let room = self.bytes_max.saturating_sub(captured.bytes.len()).min(bytes.len());
        captured.bytes.extend_from_slice(&bytes[..room]);
        captured.tail.extend_from_slice(&bytes[room..]);
        let too_many = captured.tail.len().saturating_sub(self.bytes_max);
        captured.tail.drain(..too_many);
    }

    fn on_write(&self) {
        if !self.is_stopped.load(Ordering::Relaxed) {
            self.captured().is_answered = true;
        }
    }
}

fn has_content_length(head: &[u8]) -> bool {
    const NAME: &[u8] = b"content-length";
    head.split(|byte| *byte == b'\n').any(|line| {
        line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME))
            && line.get(NAME.len()).is_some_and(|byte| matches!(byte, b':' | b' ' | b'\t'))
    })
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.head.on_read(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.head.on_write();
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.head.on_write();
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(bytes_max: usize) -> HeadCapture {
        HeadCapture { bytes_max, is_stopped: AtomicBool::new(false), captured: Mutex::default() }
    }

    #[test]
    fn a_head_that_comes_in_parts_around_an_answer_is_seen_whole() {
        for before in ["GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "x".repeat(500)] {
            let head = capture(100);
            head.on_read(before.as_bytes());
            head.on_read(b"\r\n\r\nPOST /x HTTP/1.1\r\nContent-Length: 4\r\n");
            head.on_write();
            head.on_read(b"Transfer-Encoding: chunked\r\n\r\n");
            assert!(head.has_content_length(), "{before}");
        }
    }

    #[test]
    fn the_length_of_an_answered_request_is_forgotten() {
        let head = capture(1000);
        head.on_read(b"POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
        assert!(head.has_content_length());
        head.on_write();
        head.on_read(b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert!(!head.has_content_length());
    }

    #[test]
    fn only_a_header_line_has_a_content_length() {
        let has = |head: &str| has_content_length(head.as_bytes());
        assert!(has("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"));
        assert!(has("POST / HTTP/1.1\ncontent-length:5\n\n"));
        assert!(!has("POST /content-length: HTTP/1.1\r\nX-Content-Length: 5\r\n\r\n"));
        assert!(!has("POST / HTTP/1.1\r\nContent-Lengths: 5\r\n\r\n"));
        assert!(!has(""));
    }
}
