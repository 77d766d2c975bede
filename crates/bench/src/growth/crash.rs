//! Kills the server under load, then checks that every acknowledged message is still stored.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use nexo_chat::Chat;
use nexo_chat::ids::{ClientMsgId, MessageId, UserId};
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::accounts::sign_up;
use crate::codec::{Codec, Incoming};
use crate::dialects::{DialectChoice, Recipient};
use crate::progress::ProgressDisplay;
use crate::socket::Socket;
use crate::started::Started;

const SENDERS: usize = 16;
/// Messages one sender has in flight: enough to keep the store busy all the time.
const WINDOW: u64 = 64;
const TEXT_BYTES: usize = 200;
/// How long the load lasts before the kill. Rounds differ, to hit different moments of the store's work.
const LASTS: Duration = Duration::from_millis(1500);
const LASTS_LONGER: Duration = Duration::from_micros(137_311);
/// How long to wait for the sockets of a killed process to end, which they do at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// The messages that the server acknowledged to one sender as saved.
#[derive(Debug)]
pub(super) struct Acknowledged {
    sender: String,
    indexes: Vec<u64>,
}

/// Whether messages acknowledged before a kill were found again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Crash {
    /// Messages acknowledged as saved.
    pub acknowledged: u64,
    /// Of these, missing after the restarts.
    pub lost: u64,
}

/// Tasks that send until the server dies.
pub(super) struct Senders(Vec<JoinHandle<Result<Acknowledged>>>);

/// Starts users who send as fast as they can to others who are offline.
pub(super) async fn begin(authority: &str, progress: ProgressDisplay) -> Result<Senders> {
    let users = sign_up(authority, 2 * SENDERS, progress).await?;
    let mut tasks = Vec::with_capacity(SENDERS);
    for pair in users.chunks_exact(2) {
        let socket = DialectChoice::Typed.connect(authority, &pair[0]).await?;
        let to = Recipient::Person { from: &pair[0].user, to: &pair[1].user };
        let codec = DialectChoice::Typed.codec(to, TEXT_BYTES);
        let sender = pair[0].user.clone();
        tasks.push(tokio::spawn(async move {
            let indexes = send_until_the_end(socket, &*codec).await?;
            Ok(Acknowledged { sender, indexes })
        }));
    }
    Ok(Senders(tasks))
}

impl Senders {
    /// Kills the server after a while, and returns what it had acknowledged.
    pub(super) async fn kill(self, server: Started, round: usize) -> Result<Vec<Acknowledged>> {
        sleep(LASTS + LASTS_LONGER * u32::try_from(round % 7)?).await;
        server.kill()?;
        let mut all = Vec::with_capacity(self.0.len());
        for task in self.0 {
            let ended = timeout(PATIENCE, task).await.context("a socket outlived its server")?;
            all.push(ended??);
        }
        Ok(all)
    }
}

/// Sends until the socket fails, which is what the kill causes.
async fn send_until_the_end(mut socket: Socket, codec: &dyn Codec) -> Result<Vec<u64>> {
    let (mut next, mut saved) = (0, Vec::new());
    loop {
        while next < saved.len() as u64 + WINDOW {
            if socket.feed(codec.message(next)).await.is_err() {
                return Ok(saved);
            }
            next += 1;
        }
        if socket.flush().await.is_err() {
            return Ok(saved);
        }
        let Some(Ok(frame)) = socket.next().await else { return Ok(saved) };
        let mut fault = None;
        codec.read(&frame, &mut |incoming| match incoming {
            Incoming::Saved { index, .. } => saved.push(index),
            Incoming::Refused { reason, .. } => fault = Some(reason.to_owned()),
            Incoming::Unreadable => fault = Some(format!("unreadable: {frame}")),
            _ => {}
        });
        if let Some(fault) = fault {
            bail!("a message was refused: {fault}");
        }
    }
}

/// Looks up every acknowledged message.
pub(super) async fn check(chat: &Chat, acknowledged: Vec<Acknowledged>) -> Result<Crash> {
    let mut crash = Crash::default();
    for Acknowledged { sender, indexes } in acknowledged {
        let sender = UserId::parse(&sender)?;
        for index in indexes {
            let id = MessageId::of(&sender, &ClientMsgId::parse(&index.to_string())?);
            crash.acknowledged += 1;
            crash.lost += u64::from(chat.store.message(id).await?.is_none());
        }
    }
    Ok(crash)
}
