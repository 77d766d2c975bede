//! Clients that send, recall and retry until the server dies, and what must be there after it came back.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::group::TestGroup;
use crate::history::{History, read_all};
use crate::http::Http;
use crate::person::Person;
use crate::socket::{Socket, SocketEvent, chat};

const PAIRS: usize = 3;
/// Sends of one client that wait for their acknowledgement.
const WINDOW: usize = 24;
/// One message of so many is recalled.
const RECALL_EVERY: usize = 8;
/// A server that is to die must do so within this time.
const DIES_WITHIN: Duration = Duration::from_secs(90);
/// Large enough that memtables fill quickly.
const BODY_CHARS: usize = 3_000;

/// Some private conversations and a group, each with one sender.
pub struct CrashLoad {
    talks: Vec<Talk>,
    members: Vec<Person>,
    group: String,
    round: usize,
}

/// The messages of one sender in one conversation.
#[derive(Clone)]
struct Talk {
    sender: Person,
    to: Destination,
    history: History,
}

#[derive(Clone)]
enum Destination {
    Person(Person),
    Group(String),
}

impl CrashLoad {
    pub async fn new(http: &Http) -> Self {
        let mut talks = Vec::new();
        let mut members = Vec::new();
        for pair in 0..PAIRS {
            let sender = Person::new(http, &format!("sender{pair}")).await;
            let receiver = Person::new(http, &format!("receiver{pair}")).await;
            members.extend([sender.clone(), receiver.clone()]);
            let to = Destination::Person(receiver);
            talks.push(Talk { sender, to, history: History::default() });
        }
        let others: Vec<&Person> = members.iter().skip(1).collect();
        let group = TestGroup::new(http, &members[0], &others).await.id;
        let to = Destination::Group(group.clone());
        talks.push(Talk { sender: members[0].clone(), to, history: History::default() });
        Self { talks, members, group, round: 0 }
    }

    /// Starts sending. The clients end when the server does.
    pub fn start(&mut self, http: &Http) -> RunningLoad {
        self.round += 1;
        let run = |talk: &Talk| tokio::spawn(talk.clone().run(http.clone(), self.round));
        RunningLoad(self.talks.iter().map(run).collect())
    }

    /// Waits until the server is dead.
    pub async fn until_dead(&mut self, running: RunningLoad) {
        for (talk, task) in self.talks.iter_mut().zip(running.0) {
            let ended = tokio::time::timeout(DIES_WITHIN, task).await;
            *talk = ended.expect("the server dies in time").expect("a client that works");
        }
    }

    /// How many messages were acknowledged so far.
    pub fn count(&self) -> usize {
        self.talks.iter().map(|talk| talk.history.count()).sum()
    }

    /// Compares everything that was acknowledged with what a server holds.
    pub async fn check(&self, http: &Http) {
        for talk in &self.talks {
            let stored = match &talk.to {
                Destination::Person(receiver) => read_all(http, receiver, &talk.sender.id).await,
                Destination::Group(id) => {
                    let group = TestGroup { http: http.clone(), id: id.clone() };
                    group.read_all(&self.members[1]).await
                }
            };
            talk.history.check_stored(&stored);
        }
        let info = TestGroup { http: http.clone(), id: self.group.clone() };
        let info = info.get(&self.members[0], "info").await;
        assert_eq!(info.data()["member_count"], self.members.len(), "{}", info.text);
    }
}

/// Clients that send.
pub struct RunningLoad(Vec<JoinHandle<Talk>>);

impl Talk {
    fn frame(&self, id: &str, body: &str) -> Value {
        match &self.to {
            Destination::Person(person) => chat(&person.id, id, body),
            Destination::Group(group) => json!({
                "type": "GROUP_CHAT", "clientMsgId": id, "groupId": group, "body": body,
            }),
        }
    }

    /// Sends until the server closes the socket.
    async fn run(mut self, http: Http, round: usize) -> Self {
        let Some(mut socket) = Socket::try_open(&http.authority).await else { return self };
        if socket
            .try_text(&json!({ "type": "AUTH", "token": self.sender.token }).to_string())
            .await
            .is_err()
        {
            return self;
        }
        // What the last crash left open is sent again first: there must be one outcome.
        let mut waiting = self.history.open();
        let (mut next, mut in_flight) = (0, 0);
        loop {
            while in_flight < WINDOW {
                let (id, body) = waiting.pop().unwrap_or_else(|| {
                    next += 1;
                    let id = format!("r{round}-{next}");
                    let body = format!("{id} {}", "x".repeat(BODY_CHARS));
                    (id, body)
                });
                self.history.tried(&id, &body);
                let frame = self.frame(&id, &body).to_string();
                if socket.try_text(&frame).await.is_err() {
                    return self;
                }
                in_flight += 1;
            }
            match socket.hear_forever().await {
                SocketEvent::Frame(frame) => {
                    in_flight -= usize::from(frame["ackType"] == "saved");
                    if !self.hear(&mut socket, &frame).await {
                        return self;
                    }
                }
                SocketEvent::Closed(_) => return self,
            }
        }
    }

    /// Records an acknowledgement, and recalls some of the messages; `false` if the socket is closed.
    async fn hear(&mut self, socket: &mut Socket, frame: &Value) -> bool {
        let id = frame["clientMsgId"].as_str().unwrap_or_default();
        if frame["ackType"] == "revoked" {
            self.history.recall_acked(id.trim_start_matches("recall "));
        }
        if frame["ackType"] != "saved" {
            return true;
        }
        self.history.acked(frame);
        if !self.history.count().is_multiple_of(RECALL_EVERY) {
            return true;
        }
        self.history.recall_tried(id);
        let recall = json!({
            "type": "MESSAGE_REVOKE",
            "clientMsgId": format!("recall {id}"),
            "serverMsgId": frame["serverMsgId"],
        });
        socket.try_text(&recall.to_string()).await.is_ok()
    }
}
