//! Somebody who speaks one of the dialects: the same few things said and heard in each, so that one
//! scenario can be played in all of them, and by people of different dialects with each other.

mod dotted;
mod numbered;
mod protobuf;
mod typed;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message as Packet;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::http::Http;
use crate::person::Person;

const PATIENCE: Duration = Duration::from_secs(20);

/// A way to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tongue {
    /// Text by `type`.
    Typed,
    /// By number, `data` as base64.
    Numbered,
    /// By number, `data` nested.
    NumberedJs,
    /// By `cmd`, as JSON.
    Dotted,
    /// By `cmd`, as protobuf.
    DottedBinary,
}

impl Tongue {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Typed, Self::Numbered, Self::NumberedJs, Self::Dotted, Self::DottedBinary];
}

/// To whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// One person.
    User(String),
    /// A group.
    Group(String),
}

/// A message as anybody sees it, whatever they speak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Its id.
    pub id: String,
    /// Its place.
    pub seq: u64,
    /// Who said it.
    pub from: String,
    /// Where.
    pub conversation: String,
    /// What.
    pub text: String,
    /// What their app added to it.
    pub extra: Extra,
}

/// An app's own strings by name.
pub type Extra = BTreeMap<String, String>;

/// What a message has of it.
fn extra(message: &Value) -> Extra {
    let entries = message["extra"].as_object().into_iter().flatten();
    let entries = entries.map(|(name, it)| (name.clone(), it.as_str().unwrap_or("?").to_owned()));
    entries.collect()
}

/// What comes unasked, or as an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Somebody said something.
    Said(Said),
    /// An own message is saved: its name, id, place and conversation.
    Saved(String, Said),
    /// A request was refused: what it was called, and the reason's word.
    Refused(String, String),
    /// A message was taken back.
    Recalled(String),
    /// Somebody read up to a message.
    Read(String, String),
    /// Something happened to a group.
    Changed(String),
    /// Somebody is called and looks otherwise.
    Person(String, String, String),
    /// Messages that were asked for.
    Messages(Vec<Said>),
    /// Something else was done.
    Done,
    /// This connection has to go.
    Kicked(String),
    /// Something this page has no word for.
    Other,
    /// The end.
    Closed(Option<u16>),
}

/// Somebody with a socket.
pub struct Talker {
    tongue: Tongue,
    /// Who.
    pub person: Person,
    http: Http,
    stream: WebSocketStream<TcpStream>,
    waiting: VecDeque<Heard>,
    calls: u64,
}

impl Talker {
    /// Connects and is let in. Those whose dialect brings what they missed have it waiting.
    pub async fn connect(http: &Http, person: &Person, tongue: Tongue) -> Self {
        let query = match tongue {
            Tongue::Numbered => numbered::query(person, "go"),
            Tongue::NumberedJs => numbered::query(person, "js"),
            _ => String::new(),
        };
        let tcp = TcpStream::connect(&http.authority).await.expect("a connection");
        tcp.set_nodelay(true).expect("a live socket");
        let url = format!("ws://{}/ws{query}", http.authority);
        let (stream, _) = client_async(url, tcp).await.expect("a handshake");
        let (person, http) = (person.clone(), http.clone());
        let mut talker = Self { tongue, person, http, stream, waiting: VecDeque::new(), calls: 0 };
        talker.introduce().await;
        talker
    }

    async fn introduce(&mut self) {
        let token = self.person.token.clone();
        match self.tongue {
            Tongue::Typed => {
                self.write(typed::auth(&token)).await;
                self.find(|heard| *heard == Heard::Done).await; // RESEND_DONE
            }
            // Whatever is said after the first answer is pushed; what came before is pulled.
            Tongue::Numbered | Tongue::NumberedJs => {
                let packet = numbered::newest("hello", self.tongue == Tongue::NumberedJs);
                self.write(packet).await;
                self.find(|heard| *heard == Heard::Done).await;
            }
            Tongue::Dotted | Tongue::DottedBinary => {
                let packet = dotted::validate(&token, self.tongue == Tongue::DottedBinary);
                self.write(packet).await;
                self.find(|heard| *heard == Heard::Done).await;
            }
        }
    }

    async fn write(&mut self, packet: Packet) {
        self.stream.send(packet).await.expect("the socket is open");
    }

    fn call(&mut self) -> String {
        self.calls += 1;
        format!("call-{}", self.calls)
    }

    /// The next thing that fits, keeping the others for later.
    pub async fn find(&mut self, fits: impl Fn(&Heard) -> bool) -> Heard {
        if let Some(at) = self.waiting.iter().position(&fits) {
            return self.waiting.remove(at).expect("it was there");
        }
        loop {
            let heard = tokio::time::timeout(PATIENCE, self.receive()).await;
            let heard = heard.unwrap_or_else(|_| {
                panic!("{:?} heard nothing that fits; kept: {:?}", self.tongue, self.waiting)
            });
            if fits(&heard) {
                return heard;
            }
            assert!(!matches!(heard, Heard::Closed(_)), "{:?} closed: {heard:?}", self.tongue);
            self.waiting.push_back(heard);
        }
    }

    async fn receive(&mut self) -> Heard {
        loop {
            match self.stream.next().await {
                Some(Ok(Packet::Text(text))) => {
                    let frame = serde_json::from_str(&text).expect("frames are JSON");
                    return match self.tongue {
                        Tongue::Typed => typed::hear(&frame),
                        Tongue::Numbered | Tongue::NumberedJs => numbered::hear(&frame),
                        Tongue::Dotted | Tongue::DottedBinary => dotted::hear(&frame),
                    };
                }
                Some(Ok(Packet::Binary(bytes))) => {
                    assert_eq!(self.tongue, Tongue::DottedBinary, "only this one is binary");
                    return dotted::hear(&protobuf::read_server(&bytes));
                }
                Some(Ok(Packet::Close(close))) => {
                    return Heard::Closed(close.map(|close| close.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Heard::Closed(None),
            }
        }
    }

    /// Says something; its id and place, or the reason it was refused.
    pub async fn say(&mut self, to: &To, name: &str, text: &str) -> Result<Said, String> {
        self.say_with(to, name, text, &Extra::new()).await
    }

    /// The same, with what an app adds to it.
    pub async fn say_with(
        &mut self,
        to: &To,
        name: &str,
        text: &str,
        extra: &Extra,
    ) -> Result<Said, String> {
        let call = self.call();
        let packet = match self.tongue {
            Tongue::Typed => typed::say(to, name, text, extra),
            Tongue::Numbered => numbered::say(&call, to, name, text, extra, false),
            Tongue::NumberedJs => numbered::say(&call, to, name, text, extra, true),
            Tongue::Dotted => dotted::say(&call, to, name, text, extra, false),
            Tongue::DottedBinary => dotted::say(&call, to, name, text, extra, true),
        };
        self.write(packet).await;
        let mine = |heard: &Heard| match heard {
            Heard::Saved(of, _) | Heard::Refused(of, _) => of == name || *of == call,
            _ => false,
        };
        match self.find(mine).await {
            Heard::Saved(_, said) => Ok(said),
            Heard::Refused(_, reason) => Err(reason),
            other => panic!("{other:?}"),
        }
    }

    /// Whether something came that fits, and was not looked for yet.
    pub fn has_heard(&self, fits: impl Fn(&Heard) -> bool) -> bool {
        self.waiting.iter().any(fits)
    }

    /// The next message somebody said.
    pub async fn hear_message(&mut self) -> Said {
        match self.find(|heard| matches!(heard, Heard::Said(_))).await {
            Heard::Said(said) => said,
            other => panic!("{other:?}"),
        }
    }

    /// Takes a message back.
    pub async fn recall(&mut self, id: &str) -> Result<(), String> {
        let call = self.call();
        let packet = match self.tongue {
            Tongue::Typed => typed::recall(id),
            Tongue::Dotted => dotted::recall(&call, id, false),
            Tongue::DottedBinary => dotted::recall(&call, id, true),
            Tongue::Numbered | Tongue::NumberedJs => {
                let body = serde_json::json!({ "server_msg_id": id });
                let answer = self.http.post("/msg/recall", &self.person.token, body).await;
                let word = answer.reason().to_owned();
                return if answer.status == 200 { Ok(()) } else { Err(word) };
            }
        };
        self.write(packet).await;
        let mine = |heard: &Heard| match heard {
            Heard::Done => true,
            Heard::Refused(of, _) => of == id || *of == call,
            _ => false,
        };
        match self.find(mine).await {
            Heard::Refused(_, reason) => Err(reason),
            _ => Ok(()),
        }
    }

    /// Everything up to a message is read.
    pub async fn read(&mut self, said: &Said, with: &To) {
        let call = self.call();
        match self.tongue {
            Tongue::Typed => self.write(typed::read(said)).await,
            Tongue::Numbered | Tongue::NumberedJs => {
                let body = serde_json::json!({
                    "conversation_id": said.conversation, "read_seq": said.seq });
                let path = "/conversation/mark_read";
                self.http.post(path, &self.person.token, body).await.data();
            }
            Tongue::Dotted | Tongue::DottedBinary => {
                let binary = self.tongue == Tongue::DottedBinary;
                self.write(dotted::read(&call, said, with, binary)).await;
                self.find(|heard| *heard == Heard::Done).await;
            }
        }
    }

    /// What was said in a conversation, the oldest first.
    pub async fn history(&mut self, conversation: &str, with: &To) -> Vec<Said> {
        let call = self.call();
        let packet = match self.tongue {
            Tongue::Typed => return typed::history(&self.http, &self.person, with).await,
            Tongue::Numbered => numbered::pull(&call, conversation, false),
            Tongue::NumberedJs => numbered::pull(&call, conversation, true),
            Tongue::Dotted => dotted::history(&call, with, false),
            Tongue::DottedBinary => dotted::history(&call, with, true),
        };
        self.write(packet).await;
        match self.find(|heard| matches!(heard, Heard::Messages(_))).await {
            Heard::Messages(mut messages) => {
                messages.sort_by_key(|said| said.seq);
                messages
            }
            other => panic!("{other:?}"),
        }
    }

    /// What was said while this person was away, as their dialect brings or pulls it.
    pub async fn missed(&mut self, conversation: &str) -> Vec<Said> {
        let call = self.call();
        let packet = match self.tongue {
            Tongue::Typed => {
                let waiting = std::mem::take(&mut self.waiting);
                let said = waiting.into_iter().filter_map(|heard| match heard {
                    Heard::Said(said) => Some(said),
                    _ => None,
                });
                return said.collect();
            }
            Tongue::Numbered => numbered::pull(&call, conversation, false),
            Tongue::NumberedJs => numbered::pull(&call, conversation, true),
            Tongue::Dotted => dotted::offline(&call, false),
            Tongue::DottedBinary => dotted::offline(&call, true),
        };
        self.write(packet).await;
        match self.find(|heard| matches!(heard, Heard::Messages(_))).await {
            Heard::Messages(messages) => messages,
            other => panic!("{other:?}"),
        }
    }
}
