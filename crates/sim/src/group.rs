//! A group, over HTTP and sockets.

use serde_json::{Value, json};

use crate::http::{Http, HttpResponse};
use crate::person::Person;
use crate::socket::{Socket, seq};

#[derive(Clone, Debug)]
pub struct TestGroup {
    pub http: Http,
    pub id: String,
}

impl TestGroup {
    /// Creates a group of these users; the first owns it.
    pub async fn new(http: &Http, owner: &Person, members: &[&Person]) -> Self {
        Self::with(http, owner, members, json!({})).await
    }

    /// The same with additional fields in the request.
    pub async fn with(http: &Http, owner: &Person, members: &[&Person], fields: Value) -> Self {
        let ids: Vec<&str> = members.iter().map(|person| person.id.as_str()).collect();
        let mut body = json!({ "name": "Test", "member_ids": ids });
        for (field, value) in fields.as_object().into_iter().flatten() {
            body[field] = value.clone();
        }
        let made = http.post("/group/create", &owner.token, body).await;
        let id = made.data()["group_id"].as_str().expect("an id").to_owned();
        Self { http: http.clone(), id }
    }

    /// The group's conversation.
    pub fn conversation(&self) -> String {
        format!("sg_{}", self.id)
    }

    /// Posts to `/group/{what}` with these fields and the group id.
    pub async fn ask(&self, by: &Person, what: &str, mut fields: Value) -> HttpResponse {
        fields["group_id"] = json!(self.id);
        self.http.post(&format!("/group/{what}"), &by.token, fields).await
    }

    /// Gets `/group/{what}?group_id=…`.
    pub async fn get(&self, by: &Person, what: &str) -> HttpResponse {
        let sign = if what.contains('?') { '&' } else { '?' };
        self.http.get(&format!("/group/{what}{sign}group_id={}", self.id), &by.token).await
    }

    /// A frame that sends a message to the group.
    pub fn chat(&self, client_id: &str, body: &str) -> Value {
        json!({ "type": "GROUP_CHAT", "clientMsgId": client_id, "groupId": self.id, "body": body })
    }

    /// Sends a message and returns the reply.
    pub async fn say(&self, socket: &mut Socket, client_id: &str, body: &str) -> Value {
        socket.say(self.chat(client_id, body)).await;
        socket.answer(client_id).await
    }

    /// Every message that a user may read, oldest first.
    pub async fn read_all(&self, by: &Person) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let since = all.last().map_or(0, seq);
            let id = &self.id;
            let path = format!("/group/message/since?groupId={id}&limit=200&sinceSeq={since}");
            let answer = self.http.get(&path, &by.token).await;
            all.extend(answer.data().as_array().expect("a list").iter().cloned());
            if answer.body["has_more"] != true {
                return all;
            }
        }
    }

    /// A user's entry of the conversation.
    pub async fn info(&self, by: &Person) -> Value {
        let path = format!("/conversation/info?conversation_id={}", self.conversation());
        self.http.get(&path, &by.token).await.data().clone()
    }
}
