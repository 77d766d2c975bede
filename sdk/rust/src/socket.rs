//! One connection.
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::Uri;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message as Frame};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::dial::{Io, Server};
use crate::frames::{ClientFrame, ServerFrame};
use crate::link::Teller;
use crate::reason::{Close, Reason};
use crate::timing::{Timing, ms};

/// How a connection ended: a close code and a word.
pub(crate) type Ended = (u16, String);

const LOST: u16 = 1006;
/// How long saying good-bye may take.
const PARTING: Duration = ms(1_000);

type Stream = WebSocketStream<Box<dyn Io>>;
type Line = mpsc::UnboundedReceiver<String>;

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
    let watch = Watch { is_ready: false, pinged: true, due: until, ping_after, pong_timeout };
    Ok(Socket { stream, watch })
}

/// One connection: says who we are, keeps it alive, and tells how it ended.
pub(crate) struct Socket {
    stream: Stream,
    watch: Watch,
}

impl Socket {
    /// Talks until it is over, and tells what it hears, first the welcome. When nobody writes any
    /// more it is closed. Writing that takes long does not keep us from hearing.
    pub(crate) async fn talk(self, token: &str, line: &mut Line, teller: Teller) -> Ended {
        let (sink, stream) = self.stream.split();
        let (say, mut said) = mpsc::unbounded_channel();
        say.send(ClientFrame::Auth { token }.text()).ok(); // we hold the other end ourselves
        let ear = Ear { stream, watch: self.watch, say, last_word: None };
        tokio::select! {
            ended = ear.listen(teller) => ended,
            () = write(sink, line, &mut said) => (1000, String::new()),
        }
    }
}

/// Writes what is said until nobody says anything more.
async fn write(mut sink: SplitSink<Stream, Frame>, line: &mut Line, own: &mut Line) {
    loop {
        let said = tokio::select! {
            said = own.recv() => said,
            said = line.recv() => said,
        };
        let Some(text) = said else {
            timeout(PARTING, sink.close()).await.ok(); // we are leaving, whoever hears it
            return;
        };
        if write_all(&mut sink, text, line).await.is_err() {
            // Why, the server may have said before: whoever listens hears it, or that it is gone.
            return std::future::pending().await;
        }
    }
}

/// Writes this and whatever else waits, and sends it all at once.
async fn write_all(
    sink: &mut SplitSink<Stream, Frame>,
    text: String,
    line: &mut Line,
) -> Result<(), Error> {
    sink.feed(Frame::text(text)).await?;
    while let Ok(more) = line.try_recv() {
        sink.feed(Frame::text(more)).await?;
    }
    sink.flush().await
}

/// Hears what the server says.
struct Ear {
    stream: SplitStream<Stream>,
    watch: Watch,
    say: mpsc::UnboundedSender<String>,
    /// Why the server ends the connection, if its close frame does not arrive.
    last_word: Option<Reason>,
}

/// After a time of silence asks whether somebody is there. Any frame is an answer.
struct Watch {
    is_ready: bool,
    pinged: bool,
    due: Instant,
    ping_after: Duration,
    pong_timeout: Duration,
}

impl Ear {
    async fn listen(mut self, mut teller: Teller) -> Ended {
        loop {
            tokio::select! {
                heard = self.stream.next() => match heard {
                    Some(Ok(Frame::Text(text))) => {
                        if let Some(frame) = self.hear(&text) {
                            teller.tell(frame).await;
                        }
                    }
                    Some(Ok(Frame::Close(word))) => return self.closed(word),
                    Some(Ok(_)) => self.watch.heard(),
                    Some(Err(_)) | None => return self.ended(LOST, String::new()),
                },
                () = sleep_until(self.watch.due) => {
                    if self.watch.pinged {
                        return self.ended(LOST, "no answer".to_owned());
                    }
                    self.watch.pinged = true;
                    self.watch.due = Instant::now() + self.watch.pong_timeout;
                    self.say(&ClientFrame::Ping);
                }
            }
        }
    }

    fn say(&self, frame: &ClientFrame) {
        self.say.send(frame.text()).ok(); // if nobody writes any more it is over anyway
    }

    /// What of it is for others to know.
    fn hear(&mut self, text: &str) -> Option<ServerFrame> {
        let frame = ServerFrame::read(text)?;
        self.watch.heard();
        match &frame {
            ServerFrame::Ping => self.say(&ClientFrame::Pong),
            ServerFrame::AuthOk { limits } if !self.watch.is_ready => {
                self.watch.welcome(limits.idle_timeout_ms);
                return Some(frame);
            }
            ServerFrame::AuthOk { .. } => {} // the answer to REAUTH
            ServerFrame::AuthFail { reason } => self.last_word = Some(*reason),
            ServerFrame::Error { reason, client_msg_id, .. }
                if matches!(reason.close(), Close::Ends(_)) =>
            {
                self.last_word = Some(*reason); // the close follows, and that is what counts
                let is_for_others = client_msg_id.is_some() && self.watch.is_ready;
                return is_for_others.then_some(frame);
            }
            _ => return self.watch.is_ready.then_some(frame),
        }
        None
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
    fn welcome(&mut self, idle_timeout_ms: u64) {
        let idle = if idle_timeout_ms == 0 { 90_000 } else { idle_timeout_ms };
        self.is_ready = true;
        self.ping_after = self.ping_after.min(ms(idle / 3));
        self.heard();
    }

    fn heard(&mut self) {
        // Before the welcome only the welcome counts.
        if self.is_ready {
            self.pinged = false;
            self.due = Instant::now() + self.ping_after;
        }
    }
}
