//! Sends messages through the domain: policy, store and announcement, but no socket.

use std::collections::VecDeque;

use anyhow::Result;
use nexo_chat::Chat;
use nexo_chat::command::NewMessage;
use nexo_chat::ids::ClientMsgId;
use nexo_chat::model::Content;
use nexo_chat::send::{self, SaveFuture};

use super::plan::PlannedConversation;

/// Messages in flight: several full batches of the store.
pub(super) const WINDOW: usize = 16_384;
const TEXT_BYTES: usize = 200;

const WORDS: [&str; 32] = [
    "about", "again", "because", "before", "between", "came", "could", "every", "first", "found",
    "great", "house", "little", "made", "might", "more", "never", "nothing", "only", "other",
    "people", "place", "right", "said", "should", "still", "there", "think", "through", "under",
    "where", "would",
];

/// A linear congruential generator: the same numbers in every run.
#[derive(Clone, Debug)]
pub(super) struct SeededRng(u64);

impl SeededRng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The upper half: the lower bits of such a generator repeat soon.
        self.0 >> 32
    }

    /// A number below `end`, more often a small one: few conversations are busy.
    pub(super) fn skewed(&mut self, end: u64) -> u64 {
        let part = (self.next() * self.next()) >> 32;
        (part * end) >> 32
    }
}

/// Sends messages without waiting for each one to be saved.
pub(super) struct PipelinedSender<'a> {
    chat: &'a Chat,
    /// Every client message id begins with it. When empty, the ids are plain numbers, which the codecs of
    /// the benchmark's clients can parse.
    prefix: String,
    sent: u64,
    rng: SeededRng,
    waiting: VecDeque<SaveFuture>,
}

impl<'a> PipelinedSender<'a> {
    pub(super) fn new(chat: &'a Chat, prefix: String) -> Self {
        Self { chat, prefix, sent: 0, rng: SeededRng::new(1), waiting: VecDeque::new() }
    }

    /// Sends a message. It is durable some time later, at the latest after [`Self::finish`].
    pub(super) async fn send(&mut self, conversation: &PlannedConversation) -> Result<()> {
        let saved = self.begin(conversation).await?;
        self.waiting.push_back(saved);
        if self.waiting.len() >= WINDOW { self.wait_for_oldest().await } else { Ok(()) }
    }

    /// Sends a message and waits until it is durable.
    pub(super) async fn send_and_wait(&mut self, conversation: &PlannedConversation) -> Result<()> {
        self.begin(conversation).await?.await?;
        Ok(())
    }

    /// Waits until all messages are durable.
    pub(super) async fn finish(&mut self) -> Result<()> {
        while !self.waiting.is_empty() {
            self.wait_for_oldest().await?;
        }
        Ok(())
    }

    /// Messages known to be durable.
    pub(super) fn saved(&self) -> u64 {
        self.sent - self.waiting.len() as u64
    }

    async fn wait_for_oldest(&mut self) -> Result<()> {
        if let Some(oldest) = self.waiting.pop_front() {
            oldest.await?;
        }
        Ok(())
    }

    async fn begin(&mut self, conversation: &PlannedConversation) -> Result<SaveFuture> {
        let n = self.sent;
        self.sent += 1;
        let (caller, to) = conversation.sender(n);
        let outgoing = NewMessage {
            to: to.clone(),
            client_id: ClientMsgId::parse(&format!("{}{n}", self.prefix))?,
            content: Content::text(text(&mut self.rng)),
            reply_to: None,
            marks_read: true,
        };
        Ok(send::save(self.chat, caller, outgoing).await?)
    }
}

/// Real words, so that the text compresses like one.
fn text(rng: &mut SeededRng) -> String {
    let mut text = String::with_capacity(TEXT_BYTES + 16);
    while text.len() < TEXT_BYTES {
        let mut draw = rng.next();
        // Each number gives five words, five bits for each.
        for _ in 0..5 {
            text.push_str(WORDS[usize::try_from(draw & 31).unwrap_or_default()]);
            text.push(' ');
            draw >>= 5;
        }
    }
    text.truncate(TEXT_BYTES);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_differ_and_are_of_one_length() {
        let mut rng = SeededRng::new(1);
        let (one, two) = (text(&mut rng), text(&mut rng));
        assert_ne!(one, two);
        assert_eq!((one.len(), two.len()), (TEXT_BYTES, TEXT_BYTES));
    }

    #[test]
    fn skewed_numbers_stay_below_the_end() {
        let mut rng = SeededRng::new(7);
        let drawn: Vec<u64> = (0..1000).map(|_| rng.skewed(300)).collect();
        assert!(drawn.iter().all(|n| *n < 300));
        assert!(drawn.iter().filter(|n| **n < 100).count() > 500, "most are near the beginning");
    }
}
