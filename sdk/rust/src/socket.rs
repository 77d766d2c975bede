//! One connection.
use futures_util::{SinkExt, StreamExt};
use hyper::Uri;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::dial::{Io, Server};
use crate::frames::{ClientFrame, ServerFrame};
use crate::reason::{Close, Reason};
use crate::timing::{Timing, ms};

/// How a connection ended: a close code and a word.
pub(crate) type Ended = (u16, String);

const LOST: u16 = 1006;

/// Opens a connection to the server. Nobody hears us before we have said who we are.
pub(crate) async fn open(server: &Server, timing: &Timing) -> Result<Socket, Ended> {
    let until = Instant::now() + ms(timing.connect_timeout_ms);
    let opening = async {
        let stream = server.dial().await.map_err(|error| error.to_string())?;
        let uri = format!("ws://{}{}", server.name(), server.path("/ws"));
        let uri: Uri = uri.parse().map_err(|_| "not an address".to_owned())?;
        let opened = client_async(uri, stream).await.map_err(|error| error.to_string())?;
        Ok::<_, String>(opened.0)
    };
    let stream = match timeout_at(until, opening).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(why)) => return Err((LOST, why)),
        Err(_) => return Err((LOST, "no welcome".to_owned())),
    };
    let (ping_after, pong_timeout) = (ms(timing.ping_after_ms), ms(timing.pong_timeout_ms));
    let state = Watch { is_ready: false, pinged: true, due: until, ping_after, pong_timeout };
    Ok(Socket { stream, watch: state, last_word: None })
}

/// One connection: says who we are, keeps it alive, and tells how it ended.
pub(crate) struct Socket {
    stream: WebSocketStream<Box<dyn Io>>,
    watch: Watch,
    /// Why the server ends the connection, if its close frame does not arrive.
    last_word: Option<Reason>,
}

/// After a time of silence asks whether somebody is there. Any frame is an answer.
struct Watch {
    is_ready: bool,
    pinged: bool,
    due: Instant,
    ping_after: std::time::Duration,
    pong_timeout: std::time::Duration,
}

impl Socket {
    /// Talks until it is over, and tells what it hears, first the welcome. When nobody writes any
    /// more it is closed.
    pub(crate) async fn talk(
        mut self,
        token: &str,
        line: &mut mpsc::UnboundedReceiver<String>,
        mut tell: impl FnMut(ServerFrame),
    ) -> Ended {
        let hello = ClientFrame::Auth { token }.text();
        if self.write(hello, line).await.is_err() {
            return (LOST, String::new());
        }
        loop {
            tokio::select! {
                said = line.recv() => {
                    let Some(text) = said else {
                        self.stream.close(None).await.ok(); // we are leaving, whoever hears it
                        return (1000, String::new());
                    };
                    if self.write(text, line).await.is_err() {
                        return self.ended(LOST, String::new());
                    }
                }
                heard = self.stream.next() => match heard {
                    Some(Ok(Frame::Text(text))) => self.hear(&text, &mut tell).await,
                    Some(Ok(Frame::Close(word))) => return self.closed(word),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return self.ended(LOST, String::new()),
                },
                () = sleep_until(self.watch.due) => {
                    if self.watch.pinged {
                        return self.ended(LOST, "no answer".to_owned());
                    }
                    self.watch.pinged = true;
                    self.watch.due = Instant::now() + self.watch.pong_timeout;
                    self.say(&ClientFrame::Ping).await;
                }
            }
        }
    }

    /// Writes this and whatever else waits, and sends it all at once.
    async fn write(
        &mut self,
        text: String,
        line: &mut mpsc::UnboundedReceiver<String>,
    ) -> Result<(), tokio_tungstenite::tungstenite::Error> {
        self.stream.feed(Frame::text(text)).await?;
        while let Ok(more) = line.try_recv() {
            self.stream.feed(Frame::text(more)).await?;
        }
        self.stream.flush().await
    }

    async fn say(&mut self, frame: &ClientFrame<'_>) {
        // If it cannot be said the stream ends, and that is heard.
        self.stream.send(Frame::text(frame.text())).await.ok();
    }

    async fn hear(&mut self, text: &str, tell: &mut impl FnMut(ServerFrame)) {
        let Some(frame) = ServerFrame::read(text) else { return };
        if self.watch.is_ready {
            self.watch.heard();
        }
        match frame {
            ServerFrame::Ping => self.say(&ClientFrame::Pong).await,
            ServerFrame::AuthOk { ref limits } if !self.watch.is_ready => {
                let idle =
                    if limits.idle_timeout_ms == 0 { 90_000 } else { limits.idle_timeout_ms };
                self.watch.is_ready = true;
                self.watch.ping_after = self.watch.ping_after.min(ms(idle / 3));
                self.watch.heard();
                tell(frame);
            }
            ServerFrame::AuthOk { .. } => {} // the answer to REAUTH
            ServerFrame::AuthFail { reason } => self.last_word = Some(reason),
            ServerFrame::Error { reason, ref client_msg_id, .. }
                if matches!(reason.close(), Close::Ends(_)) =>
            {
                self.last_word = Some(reason); // the close follows, and that is what counts
                if client_msg_id.is_some() && self.watch.is_ready {
                    tell(frame);
                }
            }
            frame if self.watch.is_ready => tell(frame),
            _ => {}
        }
    }

    fn closed(&self, word: Option<CloseFrame>) -> Ended {
        match word {
            Some(CloseFrame { code, reason }) => self.ended(code.into(), reason.to_string()),
            None => self.ended(1005, String::new()),
        }
    }

    fn ended(&self, code: u16, word: String) -> Ended {
        match self.last_word.map(|reason| (reason, reason.close())) {
            Some((reason, Close::Ends(meant))) if code < 4000 => (meant, reason.to_string()),
            _ => (code, word),
        }
    }
}

impl Watch {
    fn heard(&mut self) {
        self.pinged = false;
        self.due = Instant::now() + self.ping_after;
    }
}
