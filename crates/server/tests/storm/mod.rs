//! Somebody in the middle of a storm, and what they were told.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nexo_sim::socket::seq;
use nexo_sim::{Http, Person, Socket, TestGroup};
use serde_json::{Value, json};

/// The same choices every time, whatever order they then take.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// What one user received.
pub(crate) struct Diary {
    pub(crate) me: Person,
    /// Client ids and places of what was saved.
    pub(crate) saved: BTreeMap<String, u64>,
    /// The seqs of messages saved through this socket, which gets ACKs instead of pushes.
    pub(crate) own: BTreeSet<u64>,
    /// Client ids of what was refused.
    pub(crate) refused: BTreeSet<String>,
    /// Places of what was found when they looked in the middle of it.
    pub(crate) read: BTreeSet<u64>,
    /// Frames, by connection.
    pub(crate) heard: Vec<Vec<Value>>,
}

/// A user with an open socket.
pub(crate) struct Live {
    pub(crate) group: TestGroup,
    pub(crate) socket: Socket,
    pub(crate) diary: Diary,
}

pub(crate) async fn connect(http: &Http, me: &Person) -> (Socket, Vec<Value>) {
    let mut socket = Socket::open(&http.authority).await;
    socket.auth(&me.token).await;
    let resent = socket.until("RESEND_DONE").await;
    (socket, resent)
}

impl Live {
    pub(crate) async fn new(group: TestGroup, me: Person) -> Self {
        let (socket, resent) = connect(&group.http, &me).await;
        let diary = Diary {
            me,
            saved: BTreeMap::new(),
            own: BTreeSet::new(),
            refused: BTreeSet::new(),
            read: BTreeSet::new(),
            heard: vec![resent],
        };
        Self { group, socket, diary }
    }

    /// Records everything received so far.
    pub(crate) async fn listen(&mut self) {
        self.socket.say(json!({ "type": "PING" })).await;
        let heard = self.socket.until("PONG").await;
        self.diary.heard.last_mut().unwrap().extend(heard);
    }

    async fn reconnect(&mut self) {
        self.listen().await;
        let (socket, resent) = connect(&self.group.http, &self.diary.me).await;
        self.socket = socket;
        self.diary.heard.push(resent);
    }

    pub(crate) async fn ask(&self, what: &str, fields: Value, refusals: &[&str]) {
        let answer = self.group.ask(&self.diary.me, what, fields).await;
        let is_known = answer.status == 200 || refusals.contains(&answer.reason());
        assert!(is_known, "{what} by {}: {}", self.diary.me.id, answer.text);
    }

    fn note(&mut self, client_id: String, place: Option<u64>, reason: &str) {
        if let Some(place) = place {
            self.diary.saved.insert(client_id, place);
        } else {
            assert!(matches!(reason, "not_group_member" | "member_not_active"), "{reason}");
            self.diary.refused.insert(client_id);
        }
    }

    pub(crate) async fn say(&mut self, client_id: String) {
        let answer = self.group.say(&mut self.socket, &client_id, &client_id).await;
        let place = (answer["ackType"] == "saved").then(|| seq(&answer));
        self.diary.own.extend(place);
        self.note(client_id, place, answer["reason"].as_str().unwrap_or_default());
    }

    /// Without reading what came before, and not through the socket.
    async fn say_quietly(&mut self, client_id: String) {
        let body = json!({
            "client_msg_id": client_id, "group_id": self.group.id, "session_type": 2,
            "msg_type": 1, "content": { "text": client_id },
        });
        let (http, token) = (&self.group.http, &self.diary.me.token);
        let answer = http.post("/msg/send_without_mark_read", token, body).await;
        let place = answer.body["data"]["seq"].as_u64();
        self.note(client_id, place, answer.reason());
    }

    /// Looks at the newest messages there are for them.
    async fn read(&mut self) {
        let path = format!("/group/message/cursor?limit=20&groupId={}", self.group.id);
        let found = self.group.http.get(&path, &self.diary.me.token).await;
        self.diary.read.extend(found.data().as_array().unwrap().iter().map(seq));
    }

    /// Acknowledges the last message received, if it is still in the user's window.
    async fn acknowledge(&mut self, ack_type: &str) {
        self.listen().await;
        let heard = self.diary.heard.last().unwrap();
        let last = heard.iter().rev().find(|frame| frame["type"] == "GROUP_CHAT").cloned();
        if let Some(message) = last {
            self.socket.ack(ack_type, message["from"].as_str().unwrap(), &message).await;
        }
    }

    pub(crate) async fn step(&mut self, dice: &mut Dice, client_id: String) {
        let may_reconnect = dice.below(2) == 0 && !self.is_constant();
        match dice.below(16) {
            0 | 1 => self.ask("quit", json!({}), &["not_group_member", "member_not_active"]).await,
            2..=5 => self.ask("join", json!({}), &["already_member"]).await,
            6 => self.acknowledge("delivered").await,
            7 => self.acknowledge("read").await,
            8 => self.say_quietly(client_id).await,
            9 | 10 => self.read().await,
            11 if may_reconnect => self.reconnect().await,
            _ => self.say(client_id).await,
        }
    }

    /// Goes on listening until something is so.
    pub(crate) async fn listen_until(&mut self, is_so: impl Fn() -> bool) {
        while !is_so() {
            self.listen().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.listen().await;
    }

    /// Half of the people keep their one socket, and are owed everything there.
    fn is_constant(&self) -> bool {
        self.diary.me.id.ends_with(['0', '2', '4', '6', '8'])
    }
}
