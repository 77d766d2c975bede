//! Whether a request says its length in two ways. The HTTP library follows `Transfer-Encoding` and
//! hides a `Content-Length` beside it; a proxy before this server may have followed the other one and
//! seen another request. So the bytes of a head are looked at as they come.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A connection whose heads are looked at, until it becomes a WebSocket.
pub(crate) struct Watched {
    stream: TcpStream,
    window: Arc<Window>,
}

/// The beginning of what came since the last answer: the head of a request is in it.
pub(crate) struct Window {
    bytes_max: usize,
    is_over: AtomicBool,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    /// The first bytes, as many as a head may have.
    bytes: Vec<u8>,
    /// The last of those that came after them: the next head may begin there.
    tail: Vec<u8>,
    is_answered: bool,
}

impl Noted {
    /// What came after the last whole head: nothing of it may belong to what was answered.
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

impl Watched {
    pub(crate) fn new(stream: TcpStream, bytes_max: usize) -> (Self, Arc<Window>) {
        let (is_over, noted) = (AtomicBool::new(false), Mutex::default());
        let window = Arc::new(Window { bytes_max, is_over, noted });
        (Self { stream, window: Arc::clone(&window) }, window)
    }
}

impl Window {
    /// Nothing more is looked at.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = Noted::default();
    }

    /// Whether a `Content-Length` came since the last answer. Asked of a request with
    /// `Transfer-Encoding` only; requests that come many at a time are taken together.
    pub(crate) fn tells_length(&self) -> bool {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        tells_length(&noted.bytes) || tells_length(&noted.tail)
    }

    fn read(&self, bytes: &[u8]) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.is_answered {
            *noted = std::mem::take(&mut *noted).rest();
        }
        let room = self.bytes_max.saturating_sub(noted.bytes.len()).min(bytes.len());
        noted.bytes.extend_from_slice(&bytes[..room]);
        noted.tail.extend_from_slice(&bytes[room..]);
        let too_many = noted.tail.len().saturating_sub(self.bytes_max);
        noted.tail.drain(..too_many);
    }

    fn written(&self) {
        if !self.is_over.load(Ordering::Relaxed) {
            self.noted.lock().unwrap_or_else(PoisonError::into_inner).is_answered = true;
        }
    }
}

fn tells_length(head: &[u8]) -> bool {
    const NAME: &[u8] = b"content-length";
    head.split(|byte| *byte == b'\n').any(|line| {
        line.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME))
            && line.get(NAME.len()).is_some_and(|byte| matches!(byte, b':' | b' ' | b'\t'))
    })
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.window.read(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.window.written();
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.window.written();
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

    fn window(bytes_max: usize) -> Window {
        Window { bytes_max, is_over: AtomicBool::new(false), noted: Mutex::default() }
    }

    #[test]
    fn a_head_that_comes_in_parts_around_an_answer_is_seen_whole() {
        for before in ["GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "x".repeat(500)] {
            let window = window(100);
            window.read(before.as_bytes());
            window.read(b"\r\n\r\nPOST /x HTTP/1.1\r\nContent-Length: 4\r\n");
            window.written();
            window.read(b"Transfer-Encoding: chunked\r\n\r\n");
            assert!(window.tells_length(), "{before}");
        }
    }

    #[test]
    fn the_length_of_an_answered_request_is_forgotten() {
        let window = window(1000);
        window.read(b"POST /x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
        assert!(window.tells_length());
        window.written();
        window.read(b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert!(!window.tells_length());
    }

    #[test]
    fn only_a_header_line_tells_a_length() {
        let tells = |head: &str| tells_length(head.as_bytes());
        assert!(tells("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"));
        assert!(tells("POST / HTTP/1.1\ncontent-length:5\n\n"));
        assert!(!tells("POST /content-length: HTTP/1.1\r\nX-Content-Length: 5\r\n\r\n"));
        assert!(!tells("POST / HTTP/1.1\r\nContent-Lengths: 5\r\n\r\n"));
        assert!(!tells(""));
    }
}
