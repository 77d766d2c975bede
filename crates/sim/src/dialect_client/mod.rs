//! A client with the same interface in each dialect, so that one scenario runs in all of them, and between clients
//! of different dialects.

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

const TIMEOUT: Duration = Duration::from_secs(20);

/// A dialect with its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientDialect {
    Typed,
    /// `data` as base64.
    Numbered,
    /// `data` as nested JSON.
    NumberedJs,
    /// As JSON.
    Dotted,
    /// As protobuf.
    DottedBinary,
}

impl ClientDialect {
    pub const ALL: [Self; 5] =
        [Self::Typed, Self::Numbered, Self::NumberedJs, Self::Dotted, Self::DottedBinary];
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {
    User(String),
    Group(String),
}

/// A message, independent of the dialect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedMessage {
    pub id: String,
    pub seq: u64,
    pub from: String,
    pub conversation: String,
    pub text: String,
    pub extra: Extra,
}

/// The app's own options of a message.
pub type Extra = BTreeMap<String, String>;

fn extra(message: &Value) -> Extra {
    let entries = message["extra"].as_object().into_iter().flatten();
    let entries = entries.map(|(name, it)| (name.clone(), it.as_str().unwrap_or("?").to_owned()));
    entries.collect()
}

/// A push or a reply, independent of the dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    Message(ReceivedMessage),
    /// An own message is saved: its client id, and its id, seq and conversation.
    Saved(String, ReceivedMessage),
    /// A request was refused: its id or client message id, and the reason.
    Refused(String, String),
    /// A message was recalled.
    Recalled(String),
    /// A user read up to a message.
    Read(String, String),
    /// A group changed: the kind of change.
    GroupChanged(String),
    /// A user changed their profile: id, nickname, avatar.
    ProfileUpdated(String, String, String),
    /// Requested messages.
    Messages(Vec<ReceivedMessage>),
    /// Another request succeeded.
    Done,
    /// The server will close this connection.
    Kicked(String),
    /// Anything else.
    Other,
    Closed(Option<u16>),
}

/// A connected client.
pub struct DialectClient {
    dialect: ClientDialect,
    pub person: Person,
    http: Http,
    stream: WebSocketStream<TcpStream>,
    unclaimed: VecDeque<ClientEvent>,
    request_count: u64,
}

impl DialectClient {
    /// Connects and authenticates. In the typed dialect missed messages are received by then, for
    /// [`Self::missed`].
    pub async fn connect(http: &Http, person: &Person, dialect: ClientDialect) -> Self {
        let query = match dialect {
            ClientDialect::Numbered => numbered::query(person, "go"),
            ClientDialect::NumberedJs => numbered::query(person, "js"),
            _ => String::new(),
        };
        let tcp = TcpStream::connect(&http.authority).await.expect("a connection");
        tcp.set_nodelay(true).expect("a live socket");
        let url = format!("ws://{}/ws{query}", http.authority);
        let (stream, _) = client_async(url, tcp).await.expect("a handshake");
        let (person, http) = (person.clone(), http.clone());
        let mut client =
            Self { dialect, person, http, stream, unclaimed: VecDeque::new(), request_count: 0 };
        client.authenticate().await;
        client
    }

    async fn authenticate(&mut self) {
        let token = self.person.token.clone();
        match self.dialect {
            ClientDialect::Typed => {
                self.write(typed::auth(&token)).await;
                self.find(|event| *event == ClientEvent::Done).await; // RESEND_DONE
            }
            // Messages after the first reply are pushed; earlier ones have to be pulled.
            ClientDialect::Numbered | ClientDialect::NumberedJs => {
                let packet = numbered::newest("hello", self.dialect == ClientDialect::NumberedJs);
                self.write(packet).await;
                self.find(|event| *event == ClientEvent::Done).await;
            }
            ClientDialect::Dotted | ClientDialect::DottedBinary => {
                let packet = dotted::validate(&token, self.dialect == ClientDialect::DottedBinary);
                self.write(packet).await;
                self.find(|event| *event == ClientEvent::Done).await;
            }
        }
    }

    async fn write(&mut self, packet: Packet) {
        self.stream.send(packet).await.expect("the socket is open");
    }

    fn next_request_id(&mut self) -> String {
        self.request_count += 1;
        format!("request-{}", self.request_count)
    }

    /// The next event that matches; others are queued for later.
    pub async fn find(&mut self, matches: impl Fn(&ClientEvent) -> bool) -> ClientEvent {
        if let Some(at) = self.unclaimed.iter().position(&matches) {
            return self.unclaimed.remove(at).expect("it was there");
        }
        loop {
            let event = tokio::time::timeout(TIMEOUT, self.receive()).await;
            let event = event.unwrap_or_else(|_| {
                panic!("{:?} received no matching event; kept: {:?}", self.dialect, self.unclaimed)
            });
            if matches(&event) {
                return event;
            }
            assert!(
                !matches!(event, ClientEvent::Closed(_)),
                "{:?} closed: {event:?}",
                self.dialect
            );
            self.unclaimed.push_back(event);
        }
    }

    async fn receive(&mut self) -> ClientEvent {
        loop {
            match self.stream.next().await {
                Some(Ok(Packet::Text(text))) => {
                    let frame = serde_json::from_str(&text).expect("frames are JSON");
                    return match self.dialect {
                        ClientDialect::Typed => typed::decode(&frame),
                        ClientDialect::Numbered | ClientDialect::NumberedJs => {
                            numbered::decode(&frame)
                        }
                        ClientDialect::Dotted | ClientDialect::DottedBinary => {
                            dotted::decode(&frame)
                        }
                    };
                }
                Some(Ok(Packet::Binary(bytes))) => {
                    assert_eq!(
                        self.dialect,
                        ClientDialect::DottedBinary,
                        "only this one is binary"
                    );
                    return dotted::decode(&protobuf::read_server(&bytes));
                }
                Some(Ok(Packet::Close(close))) => {
                    return ClientEvent::Closed(close.map(|close| close.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return ClientEvent::Closed(None),
            }
        }
    }

    /// Sends a message; returns its id and seq, or the reason of the refusal.
    pub async fn say(
        &mut self,
        to: &Recipient,
        name: &str,
        text: &str,
    ) -> Result<ReceivedMessage, String> {
        self.say_with(to, name, text, &Extra::new()).await
    }

    /// The same with the app's own options.
    pub async fn say_with(
        &mut self,
        to: &Recipient,
        name: &str,
        text: &str,
        extra: &Extra,
    ) -> Result<ReceivedMessage, String> {
        let request_id = self.next_request_id();
        let packet = match self.dialect {
            ClientDialect::Typed => typed::say(to, name, text, extra),
            ClientDialect::Numbered => numbered::say(&request_id, to, name, text, extra, false),
            ClientDialect::NumberedJs => numbered::say(&request_id, to, name, text, extra, true),
            ClientDialect::Dotted => dotted::say(&request_id, to, name, text, extra, false),
            ClientDialect::DottedBinary => dotted::say(&request_id, to, name, text, extra, true),
        };
        self.write(packet).await;
        let is_reply = |event: &ClientEvent| match event {
            ClientEvent::Saved(of, _) | ClientEvent::Refused(of, _) => {
                of == name || *of == request_id
            }
            _ => false,
        };
        match self.find(is_reply).await {
            ClientEvent::Saved(_, message) => Ok(message),
            ClientEvent::Refused(_, reason) => Err(reason),
            other => panic!("{other:?}"),
        }
    }

    /// Whether a matching event is queued.
    pub fn has_received(&self, matches: impl Fn(&ClientEvent) -> bool) -> bool {
        self.unclaimed.iter().any(matches)
    }

    /// The next pushed message.
    pub async fn hear_message(&mut self) -> ReceivedMessage {
        match self.find(|event| matches!(event, ClientEvent::Message(_))).await {
            ClientEvent::Message(message) => message,
            other => panic!("{other:?}"),
        }
    }

    /// Recalls a message.
    pub async fn recall(&mut self, id: &str) -> Result<(), String> {
        let request_id = self.next_request_id();
        let packet = match self.dialect {
            ClientDialect::Typed => typed::recall(id),
            ClientDialect::Dotted => dotted::recall(&request_id, id, false),
            ClientDialect::DottedBinary => dotted::recall(&request_id, id, true),
            ClientDialect::Numbered | ClientDialect::NumberedJs => {
                let body = serde_json::json!({ "server_msg_id": id });
                let answer = self.http.post("/msg/recall", &self.person.token, body).await;
                let reason = answer.reason().to_owned();
                return if answer.status == 200 { Ok(()) } else { Err(reason) };
            }
        };
        self.write(packet).await;
        let is_reply = |event: &ClientEvent| match event {
            ClientEvent::Done => true,
            ClientEvent::Refused(of, _) => of == id || *of == request_id,
            _ => false,
        };
        match self.find(is_reply).await {
            ClientEvent::Refused(_, reason) => Err(reason),
            _ => Ok(()),
        }
    }

    /// Marks everything up to a message as read.
    pub async fn read(&mut self, message: &ReceivedMessage, with: &Recipient) {
        let request_id = self.next_request_id();
        match self.dialect {
            ClientDialect::Typed => self.write(typed::read(message)).await,
            ClientDialect::Numbered | ClientDialect::NumberedJs => {
                let body = serde_json::json!({
                    "conversation_id": message.conversation, "read_seq": message.seq });
                let path = "/conversation/mark_read";
                self.http.post(path, &self.person.token, body).await.data();
            }
            ClientDialect::Dotted | ClientDialect::DottedBinary => {
                let binary = self.dialect == ClientDialect::DottedBinary;
                self.write(dotted::read(&request_id, message, with, binary)).await;
                self.find(|event| *event == ClientEvent::Done).await;
            }
        }
    }

    /// The messages of a conversation, oldest first.
    pub async fn history(&mut self, conversation: &str, with: &Recipient) -> Vec<ReceivedMessage> {
        let request_id = self.next_request_id();
        let packet = match self.dialect {
            ClientDialect::Typed => return typed::history(&self.http, &self.person, with).await,
            ClientDialect::Numbered => numbered::pull(&request_id, conversation, false),
            ClientDialect::NumberedJs => numbered::pull(&request_id, conversation, true),
            ClientDialect::Dotted => dotted::history(&request_id, with, false),
            ClientDialect::DottedBinary => dotted::history(&request_id, with, true),
        };
        self.write(packet).await;
        match self.find(|event| matches!(event, ClientEvent::Messages(_))).await {
            ClientEvent::Messages(mut messages) => {
                messages.sort_by_key(|message| message.seq);
                messages
            }
            other => panic!("{other:?}"),
        }
    }

    /// The messages sent while this user was offline, pushed or pulled depending on the dialect.
    pub async fn missed(&mut self, conversation: &str) -> Vec<ReceivedMessage> {
        let request_id = self.next_request_id();
        let packet = match self.dialect {
            ClientDialect::Typed => {
                let unclaimed = std::mem::take(&mut self.unclaimed);
                let messages = unclaimed.into_iter().filter_map(|event| match event {
                    ClientEvent::Message(message) => Some(message),
                    _ => None,
                });
                return messages.collect();
            }
            ClientDialect::Numbered => numbered::pull(&request_id, conversation, false),
            ClientDialect::NumberedJs => numbered::pull(&request_id, conversation, true),
            ClientDialect::Dotted => dotted::offline(&request_id, false),
            ClientDialect::DottedBinary => dotted::offline(&request_id, true),
        };
        self.write(packet).await;
        match self.find(|event| matches!(event, ClientEvent::Messages(_))).await {
            ClientEvent::Messages(messages) => messages,
            other => panic!("{other:?}"),
        }
    }
}
