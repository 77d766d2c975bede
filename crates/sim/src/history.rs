//! Compares acknowledgements with what is stored.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::http::Http;
use crate::person::Person;
use crate::socket::seq;

/// The status of a recalled message over HTTP.
const RECALLED: u8 = 4;

/// The sends and acknowledgements of one conversation's sender.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Every attempted send: client id → body.
    tried: HashMap<String, String>,
    /// Every acknowledgement: client id → (server id, seq).
    acked: HashMap<String, (String, u64)>,
    /// Every attempted recall: client id → whether it was acknowledged.
    recalls: HashMap<String, bool>,
}

impl History {
    /// Records a send before it goes out.
    pub fn tried(&mut self, client_id: &str, body: &str) {
        self.tried.insert(client_id.to_owned(), body.to_owned());
    }

    /// Records an ACK(saved). A second one must equal the first.
    pub fn acked(&mut self, ack: &Value) {
        let text = |field: &str| ack[field].as_str().expect("a string").to_owned();
        let promise = (text("serverMsgId"), seq(ack));
        let before = self.acked.insert(text("clientMsgId"), promise.clone());
        assert!(
            before.as_ref().is_none_or(|before| *before == promise),
            "two different ACKs for one message: {before:?} and {ack}"
        );
    }

    /// Records a recall before it goes out.
    pub fn recall_tried(&mut self, client_id: &str) {
        self.recalls.entry(client_id.to_owned()).or_default();
    }

    /// Records an ACK(revoked).
    pub fn recall_acked(&mut self, client_id: &str) {
        self.recalls.insert(client_id.to_owned(), true);
    }

    /// Sends without an acknowledgement.
    pub fn open(&self) -> Vec<(String, String)> {
        let open = self.tried.iter().filter(|(id, _)| !self.acked.contains_key(*id));
        open.map(|(id, body)| (id.clone(), body.clone())).collect()
    }

    /// Every attempted send: client id and body.
    pub fn all_tried(&self) -> Vec<(String, String)> {
        self.tried.iter().map(|(id, body)| (id.clone(), body.clone())).collect()
    }

    /// The number of acknowledged sends.
    pub fn count(&self) -> usize {
        self.acked.len()
    }

    /// Reads the whole conversation and checks it.
    pub async fn check(&self, http: &Http, reader: &Person, peer: &str) {
        self.check_stored(&read_all(http, reader, peer).await);
    }

    /// Checks a whole conversation: seqs are dense, every acknowledged message is stored under its seq, none is
    /// stored twice, none was never sent, and exactly those are recalled that were asked to be.
    pub fn check_stored(&self, stored: &[Value]) {
        let mut by_client_id = BTreeMap::new();
        for (message, expect) in stored.iter().zip(1..) {
            assert_eq!(seq(message), expect, "seqs are dense: {message}");
            let client_id = message["clientMsgId"].as_str().expect("a client id");
            let tried = self.tried.get(client_id).expect("invented");
            let (is_recalled, recall) =
                (message["status"] == RECALLED, self.recalls.get(client_id));
            assert!(is_recalled || recall != Some(&true), "not recalled: {client_id}");
            assert!(!is_recalled || recall.is_some(), "recalled by nobody: {client_id}");
            if !is_recalled {
                assert_eq!(message["content"].as_str(), Some(tried.as_str()), "other words");
            }
            assert!(by_client_id.insert(client_id, message).is_none(), "twice: {client_id}");
        }
        for (client_id, (server_id, promised)) in &self.acked {
            let message = by_client_id.get(client_id.as_str());
            let message = message.unwrap_or_else(|| panic!("acknowledged and lost: {client_id}"));
            assert_eq!(seq(message), *promised, "moved: {client_id}");
            assert_eq!(message["serverMsgId"], server_id.as_str(), "renamed: {client_id}");
        }
    }
}

/// A whole private conversation, read page by page, oldest first.
pub async fn read_all(http: &Http, reader: &Person, peer: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let since = all.last().map_or(0, seq);
        let path =
            format!("/single-chat/message/since?peerUserId={peer}&limit=200&sinceSeq={since}");
        let answer = http.get(&path, &reader.token).await;
        let page = answer.data().as_array().expect("a list");
        all.extend(page.iter().cloned());
        if answer.body["has_more"] != true {
            return all;
        }
        assert!(!page.is_empty(), "more was promised");
    }
}
