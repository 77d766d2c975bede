//! Load until the server is killed in the middle of it, and what must be there afterwards.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use nexo_chat::Chat;
use nexo_chat::ids::{ClientMsgId, MessageId, UserId};
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::accounts::sign_up;
use crate::dialect::{Dialect, Incoming};
use crate::progress::Progress;
use crate::socket::Socket;
use crate::speech::{Speech, To};
use crate::started::Started;

const SENDERS: usize = 16;
/// Messages of one sender on their way: so many that the store is never without work.
const WINDOW: u64 = 64;
const TEXT_BYTES: usize = 200;
/// How long the load lasts; the rounds differ, to meet different moments of the store's work.
const LASTS: Duration = Duration::from_millis(1500);
const LASTS_LONGER: Duration = Duration::from_micros(137_311);
/// A socket of a killed process ends at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// What one sender was told is saved.
#[derive(Debug)]
pub(super) struct Acknowledged {
    sender: String,
    indexes: Vec<u64>,
}

/// What became of what was acknowledged before a kill.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Crash {
    /// Messages acknowledged as saved.
    pub acknowledged: u64,
    /// Of these, not found after the restarts.
    pub lost: u64,
}

/// Senders at work.
pub(super) struct Senders(Vec<JoinHandle<Result<Acknowledged>>>);

/// Lets some people send as fast as they can to others who are offline.
pub(super) async fn begin(authority: &str, progress: Progress) -> Result<Senders> {
    let users = sign_up(authority, 2 * SENDERS, progress).await?;
    let mut tasks = Vec::with_capacity(SENDERS);
    for pair in users.chunks_exact(2) {
        let socket = Speech::Typed.connect(authority, &pair[0]).await?;
        let to = To::Person { from: &pair[0].user, to: &pair[1].user };
        let dialect = Speech::Typed.dialect(to, TEXT_BYTES);
        let sender = pair[0].user.clone();
        tasks.push(tokio::spawn(async move {
            let indexes = send_until_the_end(socket, &*dialect).await?;
            Ok(Acknowledged { sender, indexes })
        }));
    }
    Ok(Senders(tasks))
}

impl Senders {
    /// Kills the server after a while, and tells what it had acknowledged.
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

/// A socket that fails is the end that is waited for.
async fn send_until_the_end(mut socket: Socket, dialect: &dyn Dialect) -> Result<Vec<u64>> {
    let (mut next, mut saved) = (0, Vec::new());
    loop {
        while next < saved.len() as u64 + WINDOW {
            if socket.feed(dialect.message(next)).await.is_err() {
                return Ok(saved);
            }
            next += 1;
        }
        if socket.flush().await.is_err() {
            return Ok(saved);
        }
        let Some(Ok(frame)) = socket.next().await else { return Ok(saved) };
        let mut fault = None;
        dialect.read(&frame, &mut |incoming| match incoming {
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

/// Looks for every message that was acknowledged.
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
