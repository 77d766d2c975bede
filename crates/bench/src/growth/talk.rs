//! Saying things through the domain: policy, store and announcement, but no socket.

use std::collections::VecDeque;

use anyhow::Result;
use nexo_chat::Chat;
use nexo_chat::command::Outgoing;
use nexo_chat::ids::ClientMsgId;
use nexo_chat::model::Content;
use nexo_chat::send::{self, Saving};

use super::plan::Lane;

/// Messages on their way at once: several full batches of the store.
pub(super) const WINDOW: usize = 16_384;
/// About the length of a text.
const TEXT_BYTES: usize = 200;

const WORDS: [&str; 32] = [
    "about", "again", "because", "before", "between", "came", "could", "every", "first", "found",
    "great", "house", "little", "made", "might", "more", "never", "nothing", "only", "other",
    "people", "place", "right", "said", "should", "still", "there", "think", "through", "under",
    "where", "would",
];

/// Numbers that look random and are the same in every run.
#[derive(Clone, Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The upper half: the lower bits of such a sequence repeat soon.
        self.0 >> 32
    }

    /// Somewhere below `end`, more often near the beginning: few conversations are busy.
    pub(super) fn skewed(&mut self, end: u64) -> u64 {
        let part = (self.next() * self.next()) >> 32;
        (part * end) >> 32
    }
}

/// Says many things without waiting for each.
pub(super) struct Talk<'a> {
    chat: &'a Chat,
    /// What client ids of this talk begin with; without it they are the numbers that the load tool's
    /// own clients understand.
    prefix: String,
    said: u64,
    numbers: Numbers,
    waiting: VecDeque<Saving>,
}

impl<'a> Talk<'a> {
    pub(super) fn new(chat: &'a Chat, prefix: String) -> Self {
        Self { chat, prefix, said: 0, numbers: Numbers::new(1), waiting: VecDeque::new() }
    }

    /// Says one thing; it is durable some time later, at the latest after [`Talk::finish`].
    pub(super) async fn say(&mut self, lane: &Lane) -> Result<()> {
        let saved = self.begin(lane).await?;
        self.waiting.push_back(saved);
        if self.waiting.len() >= WINDOW { self.wait_for_oldest().await } else { Ok(()) }
    }

    /// Says one thing and waits until it is durable.
    pub(super) async fn say_now(&mut self, lane: &Lane) -> Result<()> {
        self.begin(lane).await?.await?;
        Ok(())
    }

    /// Waits until everything is durable.
    pub(super) async fn finish(&mut self) -> Result<()> {
        while !self.waiting.is_empty() {
            self.wait_for_oldest().await?;
        }
        Ok(())
    }

    /// How many are known to be durable.
    pub(super) fn saved(&self) -> u64 {
        self.said - self.waiting.len() as u64
    }

    async fn wait_for_oldest(&mut self) -> Result<()> {
        if let Some(oldest) = self.waiting.pop_front() {
            oldest.await?;
        }
        Ok(())
    }

    async fn begin(&mut self, lane: &Lane) -> Result<Saving> {
        let n = self.said;
        self.said += 1;
        let (caller, to) = lane.turn(n);
        let outgoing = Outgoing {
            to: to.clone(),
            client_id: ClientMsgId::parse(&format!("{}{n}", self.prefix))?,
            content: Content::text(text(&mut self.numbers)),
            reply_to: None,
            marks_read: true,
        };
        Ok(send::save(self.chat, caller, outgoing).await?)
    }
}

/// Words, so that it compresses as texts do.
fn text(numbers: &mut Numbers) -> String {
    let mut text = String::with_capacity(TEXT_BYTES + 16);
    while text.len() < TEXT_BYTES {
        let mut draw = numbers.next();
        // Five words of five bits each from one draw.
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
        let mut numbers = Numbers::new(1);
        let (one, two) = (text(&mut numbers), text(&mut numbers));
        assert_ne!(one, two);
        assert_eq!((one.len(), two.len()), (TEXT_BYTES, TEXT_BYTES));
    }

    #[test]
    fn skewed_numbers_stay_below_the_end() {
        let mut numbers = Numbers::new(7);
        let drawn: Vec<u64> = (0..1000).map(|_| numbers.skewed(300)).collect();
        assert!(drawn.iter().all(|n| *n < 300));
        assert!(drawn.iter().filter(|n| **n < 100).count() > 500, "most are near the beginning");
    }
}
