//! One connection.
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::Uri;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, client_async, tungstenite};

use crate::dial::{Io, Server};
use crate::frames::{ClientFrame, ServerFrame};
use crate::link::FrameForwarder;
use crate::reason::{Close, Reason};
use crate::timing::{Timing, ms};

/// How a connection ended: a close code and a reason.
pub(crate) type CloseStatus = (u16, String);

const ABNORMAL_CLOSE: u16 = 1006;
/// How long the close handshake may take.
const CLOSE_TIMEOUT: Duration = ms(1_000);

type WsStream = WebSocketStream<Box<dyn Io>>;
type FrameReceiver = mpsc::UnboundedReceiver<String>;

/// Opens a WebSocket to the server, not yet authenticated.
pub(crate) async fn open(server: &Server, timing: &Timing) -> Result<Socket, CloseStatus> {
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
        Ok(Err(why)) => return Err((ABNORMAL_CLOSE, why)),
        Err(_) => return Err((ABNORMAL_CLOSE, "no AUTH_OK in time".to_owned())),
    };
    let (ping_after, pong_timeout) = (ms(timing.ping_after_ms), ms(timing.pong_timeout_ms));
    let heartbeat =
        Heartbeat { is_ready: false, pinged: true, due: until, ping_after, pong_timeout };
    Ok(Socket { stream, heartbeat })
}

/// One connection: authenticates, sends heartbeats, and returns how it ended.
pub(crate) struct Socket {
    stream: WsStream,
    heartbeat: Heartbeat,
}

impl Socket {
    /// Runs until the connection ends and forwards its frames, `AUTH_OK` first. Closes it when all
    /// senders of `outgoing` are dropped. Reading and writing are concurrent, so a slow write does
    /// not stop reading.
    pub(crate) async fn run(
        self,
        token: &str,
        outgoing: &mut FrameReceiver,
        forwarder: FrameForwarder,
    ) -> CloseStatus {
        let (sink, stream) = self.stream.split();
        let (sender, mut own) = mpsc::unbounded_channel();
        sender.send(ClientFrame::Auth { token }.text()).ok(); // the receiver is a local variable
        let reader = SocketReader {
            stream,
            heartbeat: self.heartbeat,
            outgoing: sender,
            close_reason: None,
        };
        tokio::select! {
            status = reader.run(forwarder) => status,
            () = write(sink, outgoing, &mut own) => (1000, String::new()),
        }
    }
}

/// Writes frames until all senders are dropped, then closes.
async fn write(
    mut sink: SplitSink<WsStream, tungstenite::Message>,
    outgoing: &mut FrameReceiver,
    own: &mut FrameReceiver,
) {
    loop {
        let frame = tokio::select! {
            frame = own.recv() => frame,
            frame = outgoing.recv() => frame,
        };
        let Some(text) = frame else {
            timeout(CLOSE_TIMEOUT, sink.close()).await.ok(); // closing anyway; the peer may be gone
            return;
        };
        if write_all(&mut sink, text, outgoing).await.is_err() {
            // The reader reports the reason: a close frame that came before, or the lost
            // connection.
            return std::future::pending().await;
        }
    }
}

/// Writes this frame and all that wait, with one flush.
async fn write_all(
    sink: &mut SplitSink<WsStream, tungstenite::Message>,
    text: String,
    outgoing: &mut FrameReceiver,
) -> tungstenite::Result<()> {
    sink.feed(tungstenite::Message::text(text)).await?;
    while let Ok(more) = outgoing.try_recv() {
        sink.feed(tungstenite::Message::text(more)).await?;
    }
    sink.flush().await
}

/// Reads frames from the server.
struct SocketReader {
    stream: SplitStream<WsStream>,
    heartbeat: Heartbeat,
    outgoing: mpsc::UnboundedSender<String>,
    /// Why the server closes the connection, in case its close frame does not arrive.
    close_reason: Option<Reason>,
}

/// Sends a ping after a time without frames, and gives up if none follows. Any frame counts as an
/// answer.
struct Heartbeat {
    is_ready: bool,
    pinged: bool,
    due: Instant,
    ping_after: Duration,
    pong_timeout: Duration,
}

impl SocketReader {
    async fn run(mut self, mut forwarder: FrameForwarder) -> CloseStatus {
        loop {
            tokio::select! {
                message = self.stream.next() => match message {
                    Some(Ok(tungstenite::Message::Text(text))) => {
                        if let Some(frame) = self.handle(&text) {
                            forwarder.forward(frame).await;
                        }
                    }
                    Some(Ok(tungstenite::Message::Close(frame))) => return self.close_status(frame),
                    Some(Ok(_)) => self.heartbeat.on_frame(),
                    Some(Err(_)) | None => return self.status_or_reason(ABNORMAL_CLOSE, String::new()),
                },
                () = sleep_until(self.heartbeat.due) => {
                    if self.heartbeat.pinged {
                        return self.status_or_reason(ABNORMAL_CLOSE, "no answer".to_owned());
                    }
                    self.heartbeat.pinged = true;
                    self.heartbeat.due = Instant::now() + self.heartbeat.pong_timeout;
                    self.send(&ClientFrame::Ping);
                }
            }
        }
    }

    fn send(&self, frame: &ClientFrame) {
        self.outgoing.send(frame.text()).ok(); // if the writer is gone, so is the connection
    }

    /// Handles a frame; returns it if the core needs it.
    fn handle(&mut self, text: &str) -> Option<ServerFrame> {
        let frame = ServerFrame::read(text)?;
        self.heartbeat.on_frame();
        match &frame {
            ServerFrame::Ping => self.send(&ClientFrame::Pong),
            ServerFrame::AuthOk { limits } if !self.heartbeat.is_ready => {
                self.heartbeat.on_auth_ok(limits.idle_timeout_ms);
                return Some(frame);
            }
            ServerFrame::AuthOk { .. } => {} // the answer to REAUTH
            ServerFrame::AuthFail { reason } => self.close_reason = Some(*reason),
            ServerFrame::Error { reason, client_msg_id, .. }
                if matches!(reason.close(), Close::Ends(_)) =>
            {
                self.close_reason = Some(*reason); // the close frame follows and decides
                let is_for_others = client_msg_id.is_some() && self.heartbeat.is_ready;
                return is_for_others.then_some(frame);
            }
            _ => return self.heartbeat.is_ready.then_some(frame),
        }
        None
    }

    fn close_status(&self, frame: Option<CloseFrame>) -> CloseStatus {
        match frame {
            Some(CloseFrame { code, reason }) => {
                self.status_or_reason(code.into(), reason.to_string())
            }
            None => self.status_or_reason(1005, String::new()),
        }
    }

    fn status_or_reason(&self, code: u16, word: String) -> CloseStatus {
        match self.close_reason.map(|reason| (reason, reason.close())) {
            Some((reason, Close::Ends(meant))) if code < 4000 => (meant, reason.to_string()),
            _ => (code, word),
        }
    }
}

impl Heartbeat {
    fn on_auth_ok(&mut self, idle_timeout_ms: u64) {
        let idle = if idle_timeout_ms == 0 { 90_000 } else { idle_timeout_ms };
        self.is_ready = true;
        self.ping_after = self.ping_after.min(ms(idle / 3));
        self.on_frame();
    }

    fn on_frame(&mut self) {
        // Before AUTH_OK the connect timeout applies.
        if self.is_ready {
            self.pinged = false;
            self.due = Instant::now() + self.ping_after;
        }
    }
}
