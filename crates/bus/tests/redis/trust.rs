//! A process that can reach Redis is not yet a node of this system.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use futures_util::StreamExt;
use nexo_chat::bus::Bus;

use crate::scene::{Node, ended, eventually, options, private, registration};
use crate::server::Server;

const CHANNEL_OF_B: &str = "nexo:to:02020202020202020202020202020202";

async fn a_and_b(server: &Server) -> (Node, Node) {
    let a = Node::reached(options(&server.url(), 1, "nexo")).await;
    let b = Node::reached(options(&server.url(), 2, "nexo")).await;
    b.bus.register(registration("bob", 1)).await;
    (a, b)
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_payloads_are_refused() {
    let server = Server::start();
    let (a, b) = a_and_b(&server).await;
    for forged in ["", "\u{1}", "hello", &"\u{1}".repeat(100)] {
        assert_eq!(server.cli(&["PUBLISH", CHANNEL_OF_B, forged]).trim(), "1", "b listens");
    }
    let stranger = Node::start_with_key(options(&server.url(), 3, "nexo"), [1; 32]);
    stranger.reach().await;
    stranger.bus.publish(private("ann", "bob", 6));
    stranger.bus.leave().await; // By then it is sent.
    a.bus.publish(private("ann", "bob", 7));
    b.hears("si_ann_bob 7").await;
    assert_eq!(b.received.events(), ["si_ann_bob 7"]);
    assert_eq!(b.received.losses(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_payloads_are_of_no_use_again() {
    let server = Server::start();
    let (a, b) = a_and_b(&server).await;
    let c = Node::reached(options(&server.url(), 3, "nexo")).await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut pubsub = client.get_async_pubsub().await.unwrap();
    pubsub.subscribe(CHANNEL_OF_B).await.unwrap();
    a.bus.publish(ended("bob"));
    b.hears("bob ended").await;
    let recorded = loop {
        let message = pubsub.on_message().next().await.unwrap();
        let payload = message.get_payload_bytes().to_vec();
        // The heartbeats of b are shorter.
        if payload.len() > 40 {
            break payload;
        }
    };
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    for to in ["02", "02", "03"] {
        let channel = format!("nexo:to:{}", to.repeat(16));
        let mut publish = redis::cmd("PUBLISH");
        publish.arg(channel).arg(&recorded);
        let receivers: i32 = publish.query_async(&mut connection).await.unwrap();
        assert!(receivers > 0);
    }
    c.bus.register(registration("cat", 2)).await;
    a.bus.publish(private("ann", "bob", 1));
    a.bus.publish(private("ann", "cat", 1));
    b.hears("si_ann_bob 1").await;
    c.hears("si_ann_cat 1").await;
    assert_eq!(b.received.events(), ["bob ended", "si_ann_bob 1"]);
    assert_eq!(c.received.events(), ["si_ann_cat 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_given_and_never_told() {
    let server = Server::start_with(&["--requirepass", "s3cret"], &["-a", "s3cret"]);
    let url = |password: &str| format!("redis://:{password}@{}/0", server.host());
    let node = Node::reached(options(&url("s3cret"), 1, "nexo")).await;
    assert!(node.bus.register(registration("ann", 1)).await.is_empty());
    let wrong = Node::start(options(&url("wr0ng"), 2, "nexo"));
    eventually("it says what is wrong", async || {
        wrong.bus.health().is_err_and(|why| !why.contains("not connected yet"))
    })
    .await;
    let why = wrong.bus.health().unwrap_err();
    assert!(!why.contains("wr0ng") && !why.contains("s3cret"), "{why}");
    assert!(why.to_lowercase().contains("password"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn encryption_with_an_authority_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (authority(folder.path(), "ours"), authority(folder.path(), "theirs"));
    let (certificate, key) = certificate(folder.path(), "ours");
    let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (file, key, ca) = (text(&certificate), text(&key), text(&ours));
    let files = ["--tls-cert-file", &file, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let more = ["--tls-port", &port, "--tls-auth-clients", "no"];
    let _server = Server::start_with(&[&more[..], &files[..]].concat(), &[]);
    let with = |id, ca_file: &PathBuf| {
        let mut options = options(&format!("rediss://127.0.0.1:{port}"), id, "nexo");
        options.redis.ca_file = Some(ca_file.clone());
        options
    };
    let a = Node::reached(with(1, &ours)).await;
    let b = Node::reached(with(2, &ours)).await;
    b.bus.register(registration("bob", 1)).await;
    a.bus.publish(private("ann", "bob", 1));
    b.hears("si_ann_bob 1").await;
    let wary = Node::start(with(3, &theirs));
    eventually("another authority is not trusted", async || {
        wary.bus.health().is_err_and(|why| why.contains("certificate"))
    })
    .await;
}

fn openssl(folder: &Path, words: &str) {
    let mut command = Command::new("openssl");
    let output = command.current_dir(folder).args(words.split(' ')).output().expect("openssl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn authority(folder: &Path, name: &str) -> PathBuf {
    let subject = format!("-subj /CN={name} -keyout {name}.key -out {name}.crt");
    openssl(folder, &format!("req -x509 -newkey rsa:2048 -nodes -days 2 {subject}"));
    folder.join(format!("{name}.crt"))
}

fn certificate(folder: &Path, by: &str) -> (PathBuf, PathBuf) {
    openssl(folder, "req -newkey rsa:2048 -nodes -subj /CN=redis -keyout redis.key -out redis.csr");
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\n").expect("a file");
    let signed = format!("-CA {by}.crt -CAkey {by}.key -CAcreateserial -out redis.crt -days 2");
    openssl(folder, &format!("x509 -req -in redis.csr -extfile names {signed}"));
    (folder.join("redis.crt"), folder.join("redis.key"))
}
