//! The bytes that a client sends become messages. Frames are unmasked where they were read, and a
//! message of one frame is never copied.

use std::io;
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::frame::{self, FrameHead, Opcode, Violation};

/// Room for a read: a few frames.
const READ_BYTES: usize = 4 * 1024;
/// Frames that one message may have. Far more than any client needs: it ends an endless message of
/// empty frames.
const FRAMES_MAX: usize = 16 * 1024;

/// What was found in the bytes. Its payload is [`MessageReader::payload`] until the next one is
/// looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Text,
    Binary,
    Ping,
    Pong,
    /// A close frame, with the code to reply with.
    Close(Option<u16>),
}

pub(super) struct MessageReader {
    /// What was read and not taken; no buffer while it is empty.
    buffer: Vec<u8>,
    /// Where the unread bytes begin.
    start: usize,
    /// The payload of the last frame that was found.
    payload: Range<usize>,
    /// A message of several frames.
    fragments: Option<Box<Fragments>>,
    message_bytes_max: usize,
}

struct Fragments {
    kind: Found,
    payload: Vec<u8>,
    frames: usize,
    is_complete: bool,
}

impl MessageReader {
    /// Starts with the bytes that came together with the HTTP request.
    pub(super) fn new(first: Bytes, message_bytes_max: usize) -> Self {
        let (buffer, payload) = (first.into(), 0..0);
        Self { buffer, start: 0, payload, fragments: None, message_bytes_max }
    }

    /// The payload of what was found last.
    pub(super) fn payload(&self) -> &[u8] {
        match &self.fragments {
            Some(fragments) if fragments.is_complete => &fragments.payload,
            _ => &self.buffer[self.payload.clone()],
        }
    }

    /// The next message or control frame in the bytes; `None` if more bytes are needed.
    pub(super) fn find(&mut self) -> Result<Option<Found>, Violation> {
        if self.fragments.as_ref().is_some_and(|fragments| fragments.is_complete) {
            self.fragments = None;
        }
        while let Some(head) = self.next_frame()? {
            let found = match head.opcode {
                Opcode::Ping => Found::Ping,
                Opcode::Pong => Found::Pong,
                Opcode::Close => Found::Close(frame::check_close(self.payload())?),
                Opcode::Text => Found::Text,
                Opcode::Binary => Found::Binary,
                Opcode::Continuation => {
                    if let Some(found) = self.add_fragment(head.is_final)? {
                        return Ok(Some(found));
                    }
                    continue;
                }
            };
            match found {
                Found::Text | Found::Binary if self.fragments.is_some() => {
                    return Err(Violation::Other);
                }
                Found::Text | Found::Binary if !head.is_final => {
                    let payload = self.buffer[self.payload.clone()].to_vec();
                    let fragments =
                        Fragments { kind: found, payload, frames: 1, is_complete: false };
                    self.fragments = Some(Box::new(fragments));
                }
                found => return Ok(Some(found)),
            }
        }
        Ok(None)
    }

    /// Takes a whole frame from the bytes and unmasks it.
    fn next_frame(&mut self) -> Result<Option<FrameHead>, Violation> {
        let so_far = self.fragments.as_ref().map_or(0, |fragments| fragments.payload.len());
        let unread = &mut self.buffer[self.start..];
        let Some(head) = FrameHead::parse(unread, self.message_bytes_max - so_far)? else {
            return Ok(None);
        };
        let Some(payload) = unread.get_mut(head.bytes..head.bytes + head.payload_bytes) else {
            return Ok(None);
        };
        frame::unmask(payload, head.mask);
        let payload_start = self.start + head.bytes;
        self.start = payload_start + head.payload_bytes;
        self.payload = payload_start..self.start;
        Ok(Some(head))
    }

    /// Adds a frame to the message that began before; returns the message if it is complete.
    fn add_fragment(&mut self, is_final: bool) -> Result<Option<Found>, Violation> {
        let Some(fragments) = &mut self.fragments else { return Err(Violation::Other) };
        fragments.payload.extend_from_slice(&self.buffer[self.payload.clone()]);
        fragments.frames += 1;
        fragments.is_complete = is_final;
        if fragments.frames > FRAMES_MAX {
            return Err(Violation::Other);
        }
        Ok(is_final.then_some(fragments.kind))
    }

    /// Forgets what was read and not taken.
    pub(super) fn discard(&mut self) {
        self.buffer.clear();
        (self.start, self.payload, self.fragments) = (0, 0..0, None);
    }

    /// Reads more bytes. Returns `false` at the end of the stream.
    pub(super) fn poll_fill(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        self.buffer.drain(..self.start);
        (self.start, self.payload) = (0, 0..0);
        self.buffer.reserve(READ_BYTES);
        let read = pin!(stream.read_buf(&mut self.buffer)).poll(cx);
        if read.is_pending() && self.buffer.is_empty() {
            self.buffer = Vec::new();
        }
        Poll::Ready(Ok(ready!(read)? > 0))
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
