//! A client connects and fetches everything it missed.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::Message;

use crate::accounts::Account;
use crate::catchup::CatchupResult;
use crate::catchup::fill::first_of;
use crate::codec::{Codec, Incoming};
use crate::dialects::{DataForm, DialectChoice, Numbered, PULL_MAX, Recipient, Typed};
use crate::ledger::Counters;
use crate::options::{CatchupMethod, CatchupOptions};
use crate::socket::Socket;

const PATIENCE: Duration = Duration::from_mins(1);
/// How long to wait for duplicates after everything has arrived.
const SETTLE: Duration = Duration::from_millis(50);

/// The messages a client has received.
struct ReceivedMessages<'a> {
    options: &'a CatchupOptions,
    client: u64,
    /// By conversation: which messages were received, and the highest seq.
    got: Vec<(Vec<bool>, u64)>,
    missing: u64,
    counters: Counters,
}

/// Lets one client catch up.
pub(super) async fn fetch(
    authority: &str,
    options: &CatchupOptions,
    client: &Account,
    number: u64,
    senders: &[Account],
) -> Result<CatchupResult> {
    let got = (0..options.conversations)
        .map(|it| (vec![false; usize::try_from(options.messages_of(it)).unwrap_or_default()], 0));
    let mut store = ReceivedMessages {
        options,
        client: number,
        got: got.collect(),
        missing: options.messages,
        counters: Counters {
            sent: options.messages,
            saved: options.messages,
            ..Counters::default()
        },
    };
    let began = Instant::now();
    let (from_welcome, welcomed) = match options.way {
        CatchupMethod::Resend => {
            let mut socket = DialectChoice::Typed.connect(authority, client).await?;
            let welcomed = Instant::now();
            let codec = Typed::new(Recipient::Group(""), 0);
            let resend = || Some(Message::text(r#"{"type":"RESEND"}"#));
            (store.take_all(&mut socket, &codec, resend).await?, welcomed)
        }
        CatchupMethod::Pull => {
            let mut socket = DialectChoice::NumberedNested.connect(authority, client).await?;
            let welcomed = Instant::now();
            let codec = Numbered::new(Recipient::Group(""), 0, DataForm::Nested);
            pull(&mut socket, &codec, client, senders).await?;
            (store.take_all(&mut socket, &codec, || None).await?, welcomed)
        }
    };
    let from_welcome = from_welcome.duration_since(welcomed);
    let from_connect = from_welcome + welcomed.duration_since(began);
    store.counters.lost = store.missing;
    Ok(CatchupResult { from_connect, from_welcome, counters: store.counters })
}

/// Asks for the newest seq of all conversations, then for all of their messages without waiting in between.
async fn pull(
    socket: &mut Socket,
    codec: &Numbered,
    client: &Account,
    senders: &[Account],
) -> Result<()> {
    let ids = senders.iter().map(|sender| conversation(&sender.user, &client.user));
    socket.send(codec.newest(ids)).await?;
    let ends = newest(socket).await?;
    for (conversation, end) in &ends {
        let mut from = 1;
        while from <= *end {
            socket.feed(codec.pull(conversation, from)).await?;
            from += PULL_MAX;
        }
    }
    Ok(socket.flush().await?)
}

/// The id of a private conversation.
fn conversation(one: &str, two: &str) -> String {
    let (first, second) = if one < two { (one, two) } else { (two, one) };
    format!("si_{first}_{second}")
}

async fn newest(socket: &mut Socket) -> Result<BTreeMap<String, u64>> {
    #[derive(Deserialize)]
    struct NewestSeqsFrame {
        data: NewestSeqs,
    }
    #[derive(Deserialize)]
    struct NewestSeqs {
        seqs: BTreeMap<String, u64>,
    }
    let end = Instant::now() + PATIENCE;
    loop {
        let frame = timeout_at(end, socket.next()).await.context("no answer to 1001")?;
        if let Message::Text(text) = frame.context("closed by the server")?? {
            let frame: NewestSeqsFrame = serde_json::from_str(text.as_str())
                .with_context(|| format!("not an answer to 1001: {text}"))?;
            return Ok(frame.data.seqs);
        }
    }
}

impl ReceivedMessages<'_> {
    /// Receives all messages; returns when the last one arrived. `next` asks for the next page.
    async fn take_all(
        &mut self,
        socket: &mut Socket,
        codec: &dyn Codec,
        next: impl Fn() -> Option<Message>,
    ) -> Result<Instant> {
        let mut end = Instant::now() + PATIENCE;
        let mut done_at = Instant::now();
        loop {
            let Ok(frame) = timeout_at(end, socket.next()).await else { return Ok(done_at) };
            let frame = frame.context("closed by the server")??;
            let before = self.missing;
            let (mut ask, mut refusal) = (None, None);
            codec.read(&frame, &mut |incoming| match incoming {
                Incoming::Pushed { index, seq, .. } => self.take(index, seq),
                Incoming::Resent { has_more: true } => ask = next(),
                Incoming::Refused { reason, .. } => refusal = Some(reason.to_owned()),
                Incoming::Unreadable => self.counters.error("unreadable frame"),
                _ => {}
            });
            if let Some(reason) = refusal {
                bail!("refused: {reason}");
            }
            if before > 0 && self.missing == 0 {
                done_at = Instant::now();
                end = done_at + SETTLE;
            }
            if let Some(ask) = ask {
                socket.send(ask).await?;
            }
        }
    }

    fn take(&mut self, index: u64, seq: u64) {
        let first = first_of(self.options, self.client, 0);
        let each = self.options.messages_of(0);
        let endpoint = index.checked_sub(first).map(|it| (it / each, it % each));
        let endpoint = endpoint.and_then(|(conversation, number)| {
            let number = usize::try_from(number).ok()?;
            let (got, highest) = self.got.get_mut(usize::try_from(conversation).ok()?)?;
            Some((got.get_mut(number)?, highest))
        });
        let Some((got, highest)) = endpoint else {
            self.counters.unexpected += 1;
            return;
        };
        if std::mem::replace(got, true) {
            self.counters.duplicates += 1;
            return;
        }
        self.counters.pushed += 1;
        self.counters.reordered_by_seq += u64::from(seq < *highest);
        *highest = seq.max(*highest);
        self.missing -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::TargetOptions;

    #[test]
    fn what_comes_twice_late_or_for_others_is_found() {
        let options = CatchupOptions {
            target: TargetOptions::default(),
            messages: 5,
            conversations: 2,
            clients: 2,
            at_once: 1,
            way: CatchupMethod::Pull,
            size: 1,
        };
        let mut store = ReceivedMessages {
            options: &options,
            client: 1,
            got: vec![(vec![false; 3], 0), (vec![false; 2], 0)],
            missing: 5,
            counters: Counters::default(),
        };
        // The second client's conversations begin at 6 and 9.
        for (index, seq) in [(6, 1), (8, 3), (7, 2), (7, 2), (9, 1), (5, 3), (11, 3), (99, 1)] {
            store.take(index, seq);
        }
        let counters = &store.counters;
        assert_eq!((counters.pushed, store.missing), (4, 1));
        assert_eq!((counters.duplicates, counters.reordered_by_seq), (1, 1));
        assert_eq!(counters.unexpected, 3);
    }
}
