//! Everybody writes to everybody who is away.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use tokio::time::timeout;

use crate::accounts::Account;
use crate::dialect::{Dialect, Incoming};
use crate::options::CatchupOptions;
use crate::progress::{Progress, all};
use crate::socket::Socket;
use crate::speech::{Speech, To};

/// Messages a sender has under way.
const WINDOW: u64 = 32;
const SENDING_AT_ONCE: usize = 100;
const PATIENCE: Duration = Duration::from_secs(30);

/// Numbers of messages: each client's conversations have a range of their own, since nobody may use
/// a number twice.
pub(super) fn first_of(options: &CatchupOptions, client: u64, conversation: u64) -> u64 {
    (client * options.conversations + conversation) * options.messages_of(0)
}

/// Each sender has one conversation with each client.
pub(super) async fn fill(
    authority: &str,
    options: &CatchupOptions,
    senders: &[Account],
    clients: &[Account],
    progress: Progress,
) -> Result<()> {
    let filling = senders.iter().enumerate().map(|(conversation, sender)| async move {
        let mut socket = Speech::Typed.connect(authority, sender).await?;
        for (client, account) in clients.iter().enumerate() {
            let to = To::Person { from: &sender.user, to: &account.user };
            let dialect = Speech::Typed.dialect(to, options.size);
            let first = first_of(options, client as u64, conversation as u64);
            let count = options.messages_of(conversation as u64);
            send(&mut socket, &*dialect, first, count).await?;
        }
        Ok(())
    });
    all(filling, SENDING_AT_ONCE, "conversations filled", progress).await.map(drop)
}

async fn send(socket: &mut Socket, dialect: &dyn Dialect, first: u64, count: u64) -> Result<()> {
    let (mut sent, mut saved) = (0, 0);
    while saved < count {
        while sent < count && sent - saved < WINDOW {
            socket.feed(dialect.message(first + sent)).await?;
            sent += 1;
        }
        socket.flush().await?;
        let frame = timeout(PATIENCE, socket.next()).await.context("no ACK(saved) in time")?;
        let frame = frame.context("closed by the server")??;
        let mut refusal = None;
        dialect.read(&frame, &mut |incoming| match incoming {
            Incoming::Saved { .. } => saved += 1,
            Incoming::Refused { reason, .. } => refusal = Some(reason.to_owned()),
            _ => {}
        });
        if let Some(reason) = refusal {
            bail!("a message was refused: {reason}");
        }
    }
    Ok(())
}
