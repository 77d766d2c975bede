//! Somebody who was away comes back: everything missed, over a real socket.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use serde::Serialize;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::plan::{MISSED_CONVERSATIONS, MISSED_PEOPLE, Plan, missed};
use crate::accounts::{PASSWORD, sign_in};
use crate::dialect::{Dialect, Incoming};
use crate::measure::Percentiles;
use crate::socket::Socket;
use crate::speech::{Speech, To, Typed};

const PATIENCE: Duration = Duration::from_mins(1);

/// How long catching up took. Nothing is acknowledged, so the backlog stays as it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missed {
    /// Who was away; each has the same backlog.
    pub users: Vec<String>,
    /// Their password, for whoever wants to look at a kept folder.
    pub password: String,
    /// Conversations of each.
    pub conversations: u64,
    /// Messages each missed.
    pub messages: u64,
    /// How many messages came each time.
    pub received: Vec<u64>,
    /// From the beginning of the connection to the end of the last page.
    pub took: Percentiles,
}

impl Missed {
    pub(super) fn new(plan: &Plan, came_back: &[CameBack]) -> Result<Self> {
        Ok(Self {
            users: (0..MISSED_PEOPLE).map(missed).collect(),
            password: PASSWORD.to_owned(),
            conversations: MISSED_CONVERSATIONS,
            messages: MISSED_CONVERSATIONS * plan.missed_each(),
            received: came_back.iter().map(|it| it.received).collect(),
            took: Percentiles::of_times(came_back.iter().map(|it| it.took))?,
        })
    }

    /// Whether everything came every time.
    pub fn is_complete(&self) -> bool {
        self.received.iter().all(|received| *received == self.messages)
    }
}

/// One who was away and came back.
pub(super) struct CameBack {
    took: Duration,
    received: u64,
}

/// One of them signs in and takes everything.
pub(super) async fn come_back(authority: &str, round: usize) -> Result<CameBack> {
    let account = sign_in(authority, missed(round as u64 % MISSED_PEOPLE)).await?;
    let since = Instant::now();
    let mut socket = Speech::Typed.connect(authority, &account).await?;
    let received = timeout(PATIENCE, take_all(&mut socket)).await;
    let received = received.context("catching up takes too long")??;
    let took = since.elapsed();
    // The answer to a farewell is not worth waiting for.
    drop(socket.close(None).await);
    Ok(CameBack { took, received })
}

/// Counts the messages up to the end of the last page.
async fn take_all(socket: &mut Socket) -> Result<u64> {
    let dialect = Typed::new(To::Group(""), 0);
    let mut received = 0;
    loop {
        let frame = socket.next().await.context("closed by the server")??;
        let (mut page_ends, mut fault) = (None, None);
        dialect.read(&frame, &mut |incoming| match incoming {
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
