//! How a socket is closed: a last frame with the reason, then the close code.

use std::time::Duration;

use nexo_chat::Reason;
use nexo_chat::ids::Millis;
use nexo_wire::codes::{self, CLOSE_PROTOCOL, Close};
use nexo_wire::dialect::{Dialect, Echo, Frame};

use crate::socket::outbox::OutFrame;
use crate::websocket::{Incoming, Violation, WebSocket};

/// How long a client may take to receive its last frames and to close its side.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// "Internal error" of RFC 6455.
const CLOSE_INTERNAL: u16 = 1011;

/// The last frame and the close code of a socket.
pub(crate) struct SocketClose {
    frame: Option<Frame>,
    code: u16,
    /// The reason in the metrics, in the log and in the WebSocket close frame.
    pub(crate) label: &'static str,
}

impl SocketClose {
    /// The client has closed or lost the connection: there is nothing to send.
    pub(crate) const GONE: Self = Self { frame: None, code: 1000, label: "gone" };

    pub(crate) fn error(dialect: Dialect, reason: Reason, echo: &Echo, now: Millis) -> Self {
        Self::new(reason, dialect.close_notice(reason, echo, now))
    }

    /// The token was refused.
    pub(crate) fn auth_fail(dialect: Dialect, reason: Reason, echo: &Echo, now: Millis) -> Self {
        Self::new(reason, dialect.auth_fail(reason, echo, now))
    }

    /// The client violated the WebSocket protocol. Only an oversized frame is well-formed enough for
    /// the client to be sent an error frame.
    pub(crate) fn violation(violation: Violation, dialect: Dialect, now: Millis) -> Self {
        match violation {
            Violation::TooLarge => {
                Self::error(dialect, Reason::FrameTooLarge, &Echo::default(), now)
            }
            Violation::NotUtf8 => Self { frame: None, code: 1007, label: "not_utf8" },
            Violation::Other => Self { frame: None, code: 1002, label: "protocol" },
        }
    }

    /// Too many frames of this connection could not be decoded.
    pub(crate) fn strikes(dialect: Dialect, reason: Reason, echo: &Echo, now: Millis) -> Self {
        Self { code: CLOSE_PROTOCOL, ..Self::error(dialect, reason, echo, now) }
    }

    /// The session panicked: a bug of the server. The client may connect again.
    pub(crate) fn panicked(dialect: Dialect, now: Millis) -> Self {
        Self {
            code: CLOSE_INTERNAL,
            ..Self::error(dialect, Reason::InternalError, &Echo::default(), now)
        }
    }

    fn new(reason: Reason, frame: Frame) -> Self {
        let row = codes::row(reason);
        // 4000 stands for a missing row: each reason that closes a session must have a close code.
        let code = if let Close::Ends(code) = row.close { code } else { 4000 };
        Self { frame: Some(frame), code, label: row.typed }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.label == Self::GONE.label
    }

    /// Sends the last frame and the close code, then waits for the client to close: closing a TCP
    /// socket with unread input makes the kernel reset it and discard what was not sent yet.
    pub(crate) async fn send(self, socket: &mut WebSocket) {
        let is_gone = self.is_gone();
        let sending = async {
            if is_gone {
                return socket.flush().await; // the reply to its close frame
            }
            if let Some(frame) = self.frame {
                OutFrame::from(frame).write(socket);
            }
            socket.queue_close(Some(self.code), self.label);
            socket.flush().await?;
            while socket.next().await != Incoming::Closed {}
            Ok(())
        };
        if !matches!(tokio::time::timeout(CLOSE_TIMEOUT, sending).await, Ok(Ok(()))) {
            tracing::debug!(word = self.label, "the client did not take the close frame");
        }
    }
}
