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
    bytes: Vec<u8>,
    is_answered: bool,
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
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).bytes = Vec::new();
    }

    /// Whether a `Content-Length` came since the last answer. Asked of a request with
    /// `Transfer-Encoding` only; requests that come many at a time are taken together.
    pub(crate) fn tells_length(&self) -> bool {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        tells_length(&noted.bytes)
    }

    fn read(&self, bytes: &[u8]) {
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.is_answered {
            *noted = Noted::default();
        }
        let room = self.bytes_max.saturating_sub(noted.bytes.len());
        noted.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
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
