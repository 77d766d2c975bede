//! kill -9 under load, again and again: nothing acknowledged is lost, nothing is there twice.
//!
//! Three rounds in the ordinary test; `make crash ROUNDS=20` for more.

use std::time::Duration;

use nexo_sim::history::History;
use nexo_sim::process::Setup;
use nexo_sim::socket::{SocketEvent, chat};
use nexo_sim::{Http, Person, Socket};

const PAIRS: usize = 4;
const WINDOW: usize = 64;

/// Sends until the socket dies; notes what was tried and what was acknowledged.
async fn load(
    http: Http,
    sender: Person,
    peer: String,
    round: usize,
    mut history: History,
) -> History {
    let mut socket = Socket::open(&http.authority).await;
    socket.auth(&sender.token).await;
    // What the crash before left open is tried again first: the outcome must be one message.
    for (client_id, body) in history.open() {
        let ack = socket.send(&peer, &client_id, &body).await;
        history.acked(&ack);
    }
    let (mut next, mut in_flight) = (0, 0);
    loop {
        while in_flight < WINDOW {
            let (id, body) = (format!("r{round}-{next}"), format!("round {round} number {next}"));
            history.tried(&id, &body);
            if socket.try_text(&chat(&peer, &id, &body).to_string()).await.is_err() {
                return history;
            }
            next += 1;
            in_flight += 1;
        }
        match socket.hear().await {
            SocketEvent::Frame(frame) if frame["ackType"] == "saved" => {
                history.acked(&frame);
                in_flight -= 1;
            }
            SocketEvent::Frame(_) => {}
            SocketEvent::Closed(_) => return history,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_by_kill_9() {
    let rounds = std::env::var("NEXO_CRASH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let mut server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let mut pairs = Vec::new();
    for i in 0..PAIRS {
        let sender = server.person(&format!("sender{i}")).await;
        let receiver = server.person(&format!("receiver{i}")).await;
        pairs.push((sender, receiver, History::default()));
    }
    for round in 0..rounds {
        let tasks: Vec<_> = pairs
            .iter()
            .map(|(sender, receiver, history)| {
                let (http, sender) = (server.http.clone(), sender.clone());
                let (peer, history) = (receiver.id.clone(), history.clone());
                tokio::spawn(load(http, sender, peer, round, history))
            })
            .collect();
        // Different moments of the commit cycle: the rounds differ by an odd number of microseconds.
        let moment = Duration::from_micros(700_000 + 137_311 * (round as u64 % 7));
        tokio::time::sleep(moment).await;
        server.kill();
        for (task, pair) in tasks.into_iter().zip(&mut pairs) {
            pair.2 = task.await.unwrap();
        }
        let restart = server.start_again(|setup| setup);
        let mut acked = 0;
        for (_, receiver, history) in &pairs {
            let sender = format!("sender{}", receiver.id.trim_start_matches("receiver"));
            history.check(&server.http, receiver, &sender).await;
            acked += history.count();
        }
        println!("round {round}: {acked} acknowledged so far, all there; restart took {restart:?}");
        assert!(acked > 0, "there was load");
    }
    // In the end every retry has exactly one outcome.
    for (sender, receiver, mut history) in pairs {
        let (mut socket, _) = server.connect(&sender).await;
        for (client_id, body) in history.open() {
            let ack = socket.send(&receiver.id, &client_id, &body).await;
            history.acked(&ack);
        }
        history.check(&server.http, &receiver, &sender.id).await;
    }
}
