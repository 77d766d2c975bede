//! Every sender writes to every client that is offline.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use tokio::time::timeout;

use crate::accounts::Account;
use crate::codec::{Codec, Incoming};
use crate::dialects::{DialectChoice, Recipient};
use crate::options::CatchupOptions;
use crate::progress::{ProgressDisplay, run_all};
use crate::socket::Socket;

/// Messages a sender has in flight.
const WINDOW: u64 = 32;
const SENDING_AT_ONCE: usize = 100;
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of a conversation's first message. Each conversation has its own range, since a sender
/// may not use a number twice.
pub(super) fn first_of(options: &CatchupOptions, client: u64, conversation: u64) -> u64 {
    (client * options.conversations + conversation) * options.messages_of(0)
}

/// Each sender has one conversation with each client.
pub(super) async fn fill(
    authority: &str,
    options: &CatchupOptions,
    senders: &[Account],
    clients: &[Account],
    progress: ProgressDisplay,
) -> Result<()> {
    let filling = senders.iter().enumerate().map(|(conversation, sender)| async move {
        let mut socket = DialectChoice::Typed.connect(authority, sender).await?;
        for (client, account) in clients.iter().enumerate() {
            let to = Recipient::Person { from: &sender.user, to: &account.user };
            let codec = DialectChoice::Typed.codec(to, options.size);
            let first = first_of(options, client as u64, conversation as u64);
            let count = options.messages_of(conversation as u64);
            send(&mut socket, &*codec, first, count).await?;
        }
        Ok(())
    });
    run_all(filling, SENDING_AT_ONCE, "conversations filled", progress).await.map(drop)
}

async fn send(socket: &mut Socket, codec: &dyn Codec, first: u64, count: u64) -> Result<()> {
    let (mut sent, mut saved) = (0, 0);
    while saved < count {
        while sent < count && sent - saved < WINDOW {
            socket.feed(codec.message(first + sent)).await?;
            sent += 1;
        }
        socket.flush().await?;
        let frame = timeout(PATIENCE, socket.next()).await.context("no ACK(saved) in time")?;
        let frame = frame.context("closed by the server")??;
        let mut refusal = None;
        codec.read(&frame, &mut |incoming| match incoming {
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
