//! A workload of pairs of clients on different nodes, who send to each other and to one group while a test breaks
//! something. In the end, acknowledgements, stored messages and received messages are compared.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinHandle;

use crate::group::TestGroup;
use crate::history::read_all;
use crate::http::Http;
use crate::person::Person;
use crate::process::Server;
use crate::retrying_client::RetryingClient;
use crate::socket::seq;

/// Pairs of a sender and a reader, connected to different nodes.
const PAIRS: usize = 4;
const NODES: usize = 3;

/// Clients that run until [`Workload::finish`].
pub struct Workload {
    senders: Vec<JoinHandle<(Vec<Value>, RetryingClient)>>,
    readers: Vec<JoinHandle<RetryingClient>>,
    is_over: Arc<AtomicBool>,
    has_all: Arc<AtomicBool>,
    group: TestGroup,
    people: Vec<(Person, Person)>,
}

/// What happened during the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkloadReport {
    pub acked: usize,
    /// How often the server answered `server_busy`.
    pub busy: usize,
    /// Messages that a reader received before they were saved.
    pub previewed: usize,
}

impl Workload {
    /// Starts on a server of three nodes; each client stays on one node.
    pub async fn start(server: &Server) -> Self {
        Self::start_at(server, |which| &server.node(which % NODES).authority, false).await
    }

    /// Starts behind the balancer: a client that reconnects may reach another node, and readers request
    /// messages that are missing.
    pub async fn start_balanced(server: &Server) -> Self {
        Self::start_at(server, |_| &server.http.authority, true).await
    }

    async fn start_at<'a>(
        server: &Server,
        authority_of: impl Fn(usize) -> &'a str,
        requests_gaps: bool,
    ) -> Self {
        let mut people = Vec::new();
        for pair in 0..PAIRS {
            let (s, r) = (format!("s{pair}"), format!("r{pair}"));
            people.push((server.person(&s).await, server.person(&r).await));
        }
        let others: Vec<&Person> = people.iter().flat_map(|(s, r)| [s, r]).skip(1).collect();
        let group = TestGroup::new(&server.http, &people[0].0, &others).await;
        let (is_over, has_all) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let (mut senders, mut readers) = (Vec::new(), Vec::new());
        for (pair, (sender, reader)) in people.iter().enumerate() {
            let client = RetryingClient::new(authority_of(pair), sender);
            let (to, group) = (reader.id.clone(), group.clone());
            senders.push(tokio::spawn(run_sender(client, to, group, Arc::clone(&is_over))));
            let mut client = RetryingClient::new(authority_of(pair + 1), reader);
            client.requests_gaps = requests_gaps;
            readers.push(tokio::spawn(run_reader(client, Arc::clone(&has_all))));
        }
        Self { senders, readers, is_over, has_all, group, people }
    }

    /// Stops the senders, gives the readers time, and compares what each has with what is stored.
    pub async fn finish(self, http: &Http, converge_within: Duration) -> WorkloadReport {
        let Self { senders, readers, is_over, has_all, group, people } = self;
        is_over.store(true, Ordering::SeqCst);
        let mut report = WorkloadReport::default();
        for (sender, (me, peer)) in senders.into_iter().zip(&people) {
            let (acks, client) = sender.await.expect("the client task succeeds");
            report.acked += acks.len();
            report.busy += client.busy;
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
        let in_group = group.read_all(&people[0].0).await;
        let seqs: Vec<u64> = in_group.iter().map(seq).collect();
        assert_eq!(seqs, (1..=in_group.len() as u64).collect::<Vec<_>>(), "dense");
        assert_eq!(in_group.len(), report.acked / 2, "each once");
        tokio::time::sleep(converge_within).await;
        has_all.store(true, Ordering::SeqCst);
        for (reader, (sender, me)) in readers.into_iter().zip(&people) {
            let client = reader.await.expect("the client task succeeds");
            report.previewed += client.previewed;
            assert!(client.previews.is_empty(), "{} waits for {:?}", me.id, client.previews);
            let private = read_all(http, me, &sender.id).await.len() as u64;
            assert_complete(&client, &sender.id, private);
            assert_complete(&client, &group.id, in_group.len() as u64);
        }
        eprintln!("{report:?}");
        report
    }
}

async fn run_sender(
    mut client: RetryingClient,
    to: String,
    group: TestGroup,
    is_over: Arc<AtomicBool>,
) -> (Vec<Value>, RetryingClient) {
    let mut acks = Vec::new();
    for number in 0.. {
        acks.push(client.send(&to, &format!("p{number}"), "words").await);
        acks.push(client.send_until_saved(&group.chat(&format!("g{number}"), "to all")).await);
        if is_over.load(Ordering::SeqCst) {
            break;
        }
    }
    (acks, client)
}

async fn run_reader(mut client: RetryingClient, has_all: Arc<AtomicBool>) -> RetryingClient {
    while !has_all.load(Ordering::SeqCst) {
        client.listen(Duration::from_millis(50)).await;
    }
    client
}

fn assert_complete(client: &RetryingClient, conversation: &str, count: u64) {
    let received = client.received.keys().filter(|(at, _)| at == conversation).map(|(_, seq)| *seq);
    let received: BTreeSet<u64> = received.collect();
    let missing: Vec<u64> = (1..=count).filter(|seq| !received.contains(seq)).collect();
    assert!(missing.is_empty(), "{} lacks {missing:?} of {conversation}", client.person.id);
    assert_eq!(
        received.len() as u64,
        count,
        "{} has more than there is of {conversation}",
        client.person.id
    );
}
