//! A socket that opens while its owner is removed from a group receives nothing sent afterwards.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

use std::time::{Duration, Instant};

use nexo_sim::process::Setup;
use nexo_sim::socket::seq;
use nexo_sim::{Socket, TestGroup};
use serde_json::json;

/// Groups a user is in. The more there are, the longer a socket takes to subscribe to them.
const GROUPS: usize = 300;
const ROUNDS: u64 = 80;
const SAID: u64 = 80;

/// Shorter than a timer can.
async fn pause(how_long: Duration) {
    let since = Instant::now();
    while since.elapsed() < how_long {
        tokio::task::yield_now().await;
    }
}

/// Goes on speaking.
async fn speak(group: TestGroup, mut socket: Socket, round: u64) {
    for n in 0..SAID {
        socket.say(group.chat(&format!("{round}-{n}"), "on and on")).await;
        pause(Duration::from_micros(80)).await;
    }
    for n in 0..SAID {
        socket.answer(&format!("{round}-{n}")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_that_opens_while_its_owner_is_put_out_hears_nothing_more() {
    let server = Setup::new(env!("CARGO_BIN_EXE_nexo")).start();
    let [olga, max] = server.people(["olga", "max"]).await;
    let mut groups = Vec::new();
    for _ in 0..GROUPS {
        groups.push(TestGroup::new(&server.http, &olga, &[&max]).await);
    }
    // The first in order, so that the others are looked at after it.
    groups.sort_by(|a, b| a.id.cmp(&b.id));
    let group = groups[0].clone();
    for round in 0..ROUNDS {
        let (socket, _) = server.connect(&olga).await;
        let speaking = tokio::spawn(speak(group.clone(), socket, round));
        let kick = async {
            pause(Duration::from_micros(100 * (round % 40))).await;
            group.ask(&olga, "kick", json!({ "user_id": "max" })).await.data();
        };
        let ((mut socket, mut heard), ()) = tokio::join!(server.connect(&max), kick);
        speaking.await.unwrap();
        socket.say(json!({ "type": "PING" })).await;
        heard.extend(socket.until("PONG").await);
        let end = group.info(&max).await["max_seq"].as_u64().unwrap();
        let chats = heard.iter().filter(|frame| frame["type"] == "GROUP_CHAT");
        let beyond: Vec<u64> = chats.map(seq).filter(|seq| *seq > end).collect();
        assert!(beyond.is_empty(), "round {round}: out after {end}, and heard {beyond:?}");
        group.ask(&max, "join", json!({})).await.data();
    }
}
