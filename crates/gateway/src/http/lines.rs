//! A body of lines, read one at a time: it may be longer than what fits in memory.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use nexo_chat::{DetailedReason, Error, Reason};
use serde_json::json;

use crate::gateway::Gateway;
use crate::http::openapi::describe::{DescribeExtractor, Operation};

/// Bytes of a line.
const LINE_MAX: usize = 64 << 10;

/// The lines of a body.
pub(super) struct Lines(pub(super) LineReader);

pub(super) struct LineReader {
    body: BodyDataStream,
    buffer: BytesMut,
    /// A client that sends nothing for so long is given up.
    patience: Duration,
    is_done: bool,
}

impl FromRequest<Arc<Gateway>> for Lines {
    type Rejection = Infallible;

    async fn from_request(request: Request, gateway: &Arc<Gateway>) -> Result<Self, Infallible> {
        let patience = gateway.options.header_timeout;
        Ok(Self(LineReader::new(request.into_body(), patience)))
    }
}

impl LineReader {
    fn new(body: Body, patience: Duration) -> Self {
        let body = body.into_data_stream();
        Self { body, buffer: BytesMut::new(), patience, is_done: false }
    }

    /// The next line, without its end; `None` after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let mut line = self.buffer.split_to(end + 1);
                line.truncate(end);
                return Ok(Some(line.freeze()));
            }
            if self.buffer.len() > LINE_MAX {
                let detail = format!("a line has more than {LINE_MAX} bytes");
                return Err(DetailedReason::new(Reason::FrameTooLarge, detail).into());
            }
            if self.is_done {
                let rest = self.buffer.split().freeze();
                return Ok(Some(rest).filter(|rest| !rest.is_empty()));
            }
            match tokio::time::timeout(self.patience, self.body.next()).await {
                Ok(Some(Ok(chunk))) => self.buffer.extend_from_slice(&chunk),
                Ok(Some(Err(_))) => return Err(Reason::BadJson.into()), // cut off
                Ok(None) => self.is_done = true,
                Err(_) => return Err(Reason::IdleTimeout.into()),
            }
        }
    }
}

impl DescribeExtractor for Lines {
    fn describe(operation: &mut Operation) {
        operation.lines =
            Some(json!({ "type": "string", "description": "One JSON object per line." }));
        operation.reasons.extend([Reason::BadJson, Reason::FrameTooLarge, Reason::IdleTimeout]);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    async fn lines(chunks: &[&'static str]) -> Result<Vec<String>, Reason> {
        let chunks: Vec<Result<&[u8], Infallible>> =
            chunks.iter().map(|chunk| Ok(chunk.as_bytes())).collect();
        let mut reader =
            LineReader::new(Body::from_stream(stream::iter(chunks)), Duration::from_secs(1));
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.map_err(|error| error.reason())? {
            lines.push(String::from_utf8(line.to_vec()).unwrap());
        }
        Ok(lines)
    }

    #[tokio::test]
    async fn lines_end_anywhere_in_a_chunk() {
        let expect = Ok(["ab", "", "c"].map(str::to_owned).to_vec());
        assert_eq!(lines(&["ab\n\nc"]).await, expect);
        assert_eq!(lines(&["a", "b", "\n", "\nc\n"]).await, expect);
        assert_eq!(lines(&[]).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_line_has_a_limit() {
        let long: &'static str = "x".repeat(LINE_MAX + 1).leak();
        assert_eq!(lines(&[long]).await, Err(Reason::FrameTooLarge));
    }
}
