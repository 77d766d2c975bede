//! Everybody talks, in pairs and in one group, from one node to another, whatever happens; in the end
//! what was acknowledged is compared with what is stored and with what everybody has.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;

use crate::group::Group;
use crate::history::read_all;
use crate::http::Http;
use crate::person::Person;
use crate::process::Server;
use crate::socket::seq;
use crate::stubborn::Stubborn;

/// Pairs that talk: each has one on the first node and one on another.
const PAIRS: usize = 4;
const NODES: usize = 3;

/// A conversation that goes on until it is told to end.
pub struct Talk {
    senders: Vec<JoinHandle<(Vec<Value>, Stubborn)>>,
    readers: Vec<JoinHandle<Stubborn>>,
    is_over: Arc<AtomicBool>,
    has_all: Arc<AtomicBool>,
    group: Group,
    people: Vec<(Person, Person)>,
}

/// What it came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Talked {
    /// Messages that were acknowledged.
    pub acked: usize,
    /// How often the server was busy.
    pub busy: usize,
    /// Messages that were shown before they were saved.
    pub previewed: usize,
}

impl Talk {
    /// Begins on a server of three nodes, everybody on one of them.
    pub async fn begin(server: &Server) -> Self {
        Self::begin_at(server, |which| &server.node(which % NODES).authority, false).await
    }

    /// Begins behind a balancer: whoever has to connect again may find another node, and whoever
    /// notices that something is missing asks for it.
    pub async fn begin_balanced(server: &Server) -> Self {
        Self::begin_at(server, |_| &server.http.authority, true).await
    }

    async fn begin_at<'a>(
        server: &Server,
        place: impl Fn(usize) -> &'a str,
        fills_holes: bool,
    ) -> Self {
        let mut people = Vec::new();
        for pair in 0..PAIRS {
            let (s, r) = (format!("s{pair}"), format!("r{pair}"));
            people.push((server.person(&s).await, server.person(&r).await));
        }
        let others: Vec<&Person> = people.iter().flat_map(|(s, r)| [s, r]).skip(1).collect();
        let group = Group::new(&server.http, &people[0].0, &others).await;
        let (is_over, has_all) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let (mut senders, mut readers) = (Vec::new(), Vec::new());
        for (pair, (sender, reader)) in people.iter().enumerate() {
            let it = Stubborn::new(place(pair), sender);
            let (to, group) = (reader.id.clone(), group.clone());
            senders.push(tokio::spawn(speak(it, to, group, Arc::clone(&is_over))));
            let mut it = Stubborn::new(place(pair + 1), reader);
            it.fills_holes = fills_holes;
            readers.push(tokio::spawn(listen(it, Arc::clone(&has_all))));
        }
        Self { senders, readers, is_over, has_all, group, people }
    }

    /// Ends the sending, gives the readers a while, and compares what everybody has with what is
    /// stored.
    pub async fn end(self, http: &Http, converge_within: Duration) -> Talked {
        let Self { senders, readers, is_over, has_all, group, people } = self;
        is_over.store(true, Ordering::SeqCst);
        let mut talked = Talked::default();
        for (sender, (me, peer)) in senders.into_iter().zip(&people) {
            let (acks, it) = sender.await.expect("nobody gives up");
            talked.acked += acks.len();
            talked.busy += it.busy;
            let private: Vec<&Value> = acks.iter().step_by(2).collect();
            let stored = read_all(http, peer, &me.id).await;
            assert_eq!(stored.len(), private.len(), "each once");
            for (number, (message, ack)) in stored.iter().zip(private).enumerate() {
                assert_eq!(message["clientMsgId"], format!("p{number}"), "in the order of sending");
                assert_eq!(
                    (seq(message), &message["serverMsgId"]),
                    (seq(ack), &ack["serverMsgId"])
                );
            }
        }
        let said = group.read_all(&people[0].0).await;
        let seqs: Vec<u64> = said.iter().map(seq).collect();
        assert_eq!(seqs, (1..=said.len() as u64).collect::<Vec<_>>(), "dense");
        assert_eq!(said.len(), talked.acked / 2, "each once");
        tokio::time::sleep(converge_within).await;
        has_all.store(true, Ordering::SeqCst);
        for (reader, (sender, me)) in readers.into_iter().zip(&people) {
            let it = reader.await.expect("nobody gives up");
            talked.previewed += it.previewed;
            assert!(it.previews.is_empty(), "{} waits for {:?}", me.id, it.previews);
            let private = read_all(http, me, &sender.id).await.len() as u64;
            has_all_of(&it, &sender.id, private);
            has_all_of(&it, &group.id, said.len() as u64);
        }
        eprintln!("{talked:?}");
        talked
    }
}

async fn speak(
    mut it: Stubborn,
    to: String,
    group: Group,
    is_over: Arc<AtomicBool>,
) -> (Vec<Value>, Stubborn) {
    let mut acks = Vec::new();
    for number in 0.. {
        acks.push(it.send(&to, &format!("p{number}"), "words").await);
        acks.push(it.until_saved(&group.chat(&format!("g{number}"), "to all")).await);
        if is_over.load(Ordering::SeqCst) {
            break;
        }
    }
    (acks, it)
}

async fn listen(mut it: Stubborn, has_all: Arc<AtomicBool>) -> Stubborn {
    while !has_all.load(Ordering::SeqCst) {
        it.listen(Duration::from_millis(50)).await;
    }
    it
}

fn has_all_of(it: &Stubborn, place: &str, count: u64) {
    let heard = it.heard.keys().filter(|(at, _)| at == place).map(|(_, seq)| *seq);
    let heard: BTreeSet<u64> = heard.collect();
    let lacks: Vec<u64> = (1..=count).filter(|seq| !heard.contains(seq)).collect();
    assert!(lacks.is_empty(), "{} lacks {lacks:?} of {place}", it.person.id);
    assert_eq!(heard.len() as u64, count, "{} has more than there is of {place}", it.person.id);
}
