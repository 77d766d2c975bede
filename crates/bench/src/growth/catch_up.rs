//! An offline user connects and fetches everything they missed, over a real socket.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::plan::{DataPlan, MISSED_CONVERSATIONS, MISSED_PEOPLE, missed};
use crate::accounts::{PASSWORD, sign_in};
use crate::codec::{Codec, Incoming};
use crate::dialects::{DialectChoice, Recipient, Typed};
use crate::measure::Percentiles;
use crate::socket::Socket;

const PATIENCE: Duration = Duration::from_mins(1);

/// How long catching up took. The users acknowledge nothing, so their backlog stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissedReport {
    /// The users who were offline; each has the same backlog.
    pub users: Vec<String>,
    /// Their password, to sign in on a kept folder.
    pub password: String,
    pub conversations: u64,
    /// Messages that each user missed.
    pub messages: u64,
    /// Messages received, by round.
    pub received: Vec<u64>,
    /// From connecting to the end of the last page.
    pub took: Percentiles,
}

impl MissedReport {
    pub(super) fn new(plan: &DataPlan, catchups: &[CatchupRun]) -> Result<Self> {
        Ok(Self {
            users: (0..MISSED_PEOPLE).map(missed).collect(),
            password: PASSWORD.to_owned(),
            conversations: MISSED_CONVERSATIONS,
            messages: MISSED_CONVERSATIONS * plan.missed_each(),
            received: catchups.iter().map(|it| it.received).collect(),
            took: Percentiles::of_times(catchups.iter().map(|it| it.took))?,
        })
    }

    /// Whether every round received all messages.
    pub fn is_complete(&self) -> bool {
        self.received.iter().all(|received| *received == self.messages)
    }
}

/// One user catching up.
pub(super) struct CatchupRun {
    took: Duration,
    received: u64,
}

/// Signs in one of the users and fetches everything.
pub(super) async fn catch_up(authority: &str, round: usize) -> Result<CatchupRun> {
    let account = sign_in(authority, missed(round as u64 % MISSED_PEOPLE)).await?;
    let since = Instant::now();
    let mut socket = DialectChoice::Typed.connect(authority, &account).await?;
    let received = timeout(PATIENCE, count_messages(&mut socket)).await;
    let received = received.context("catching up takes too long")??;
    let took = since.elapsed();
    // The answer to a close is not worth waiting for.
    drop(socket.close(None).await);
    Ok(CatchupRun { took, received })
}

/// Counts the messages up to the end of the last page.
async fn count_messages(socket: &mut Socket) -> Result<u64> {
    let codec = Typed::new(Recipient::Group(""), 0);
    let mut received = 0;
    loop {
        let frame = socket.next().await.context("closed by the server")??;
        let (mut page_ends, mut fault) = (None, None);
        codec.read(&frame, &mut |incoming| match incoming {
            Incoming::Pushed { .. } => received += 1,
            Incoming::Resent { has_more } => page_ends = Some(has_more),
            Incoming::Refused { reason, .. } => fault = Some(reason.to_owned()),
            Incoming::Unreadable => fault = Some(format!("unreadable: {frame}")),
            _ => {}
        });
        if let Some(fault) = fault {
            bail!("catching up was refused: {fault}");
        }
        match page_ends {
            Some(true) => socket.send(Message::text(r#"{"type":"RESEND"}"#)).await?,
            Some(false) => return Ok(received),
            None => {}
        }
    }
}
