//! How a socket is told that it ends.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::SinkExt;
use nexo_chat::Reason;
use nexo_chat::ids::Millis;
use nexo_wire::codes::{self, CLOSE_PROTOCOL, Close};
use nexo_wire::dialect::{Dialect, Echo, Frame};

use crate::outbox;
use crate::pump::Broken;

/// How long a socket may take to hear why it ends.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The last frame, and the close code after it.
pub(crate) struct Farewell {
    frame: Option<Frame>,
    code: u16,
    /// Why, for the metrics.
    pub(crate) word: &'static str,
}

impl Farewell {
    /// The other side is gone: nothing to say.
    pub(crate) const GONE: Self = Self { frame: None, code: 1000, word: "gone" };

    /// Why it ends, and the reason's close code.
    pub(crate) fn error(dialect: Dialect, reason: Reason, echo: &Echo, now: Millis) -> Self {
        Self::new(reason, dialect.farewell(reason, echo, now))
    }

    /// That the token is not good, and the reason's close code.
    pub(crate) fn auth_fail(dialect: Dialect, reason: Reason, echo: &Echo, now: Millis) -> Self {
        Self::new(reason, dialect.auth_fail(reason, echo, now))
    }

    /// The WebSocket protocol was broken; only frames of the right form can be answered.
    pub(crate) fn broken(broken: Broken, dialect: Dialect, now: Millis) -> Self {
        match broken {
            Broken::TooLarge => Self::error(dialect, Reason::FrameTooLarge, &Echo::default(), now),
            Broken::NotText => Self { frame: None, code: 1007, word: "not_utf8" },
            Broken::Protocol => Self { frame: None, code: 1002, word: "protocol" },
        }
    }

    /// Whether the other side is already gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.word == Self::GONE.word
    }

    /// Too many protocol violations.
    pub(crate) fn strikes(dialect: Dialect, reason: Reason, echo: &Echo, now: Millis) -> Self {
        Self { code: CLOSE_PROTOCOL, ..Self::error(dialect, reason, echo, now) }
    }

    fn new(reason: Reason, frame: Frame) -> Self {
        let row = codes::row(reason);
        // Something that ends a session although its row lets connections stay is ours to mend.
        let code = if let Close::Ends(code) = row.close { code } else { 4000 };
        Self { frame: Some(frame), code, word: row.typed }
    }

    /// Says it, then waits a little for the other side to close, so that unread input does not
    /// make the kernel throw the last frame away.
    pub(crate) async fn say(self, socket: &mut WebSocket) {
        let is_gone = self.is_gone();
        let close = CloseFrame { code: self.code, reason: self.word.into() };
        let saying = async {
            if is_gone {
                return socket.flush().await; // the answer to its close
            }
            if let Some(frame) = self.frame {
                socket.feed(outbox::Frame::from(frame).into()).await?;
            }
            socket.send(Message::Close(Some(close))).await?;
            while let Some(Ok(_)) = socket.recv().await {}
            Ok::<_, axum::Error>(())
        };
        if !matches!(tokio::time::timeout(PATIENCE, saying).await, Ok(Ok(()))) {
            tracing::debug!(word = self.word, "the last word was not heard");
        }
    }
}
