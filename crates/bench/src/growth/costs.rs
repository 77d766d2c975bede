//! What a send, an unread count, a list and a page of history cost in the small and in the large store.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use nexo_chat::conversations::{self, ListFilter};
use nexo_chat::ids::ConversationId;
use nexo_chat::model::Caller;
use nexo_chat::{Chat, read};

use super::GrowthHooks;
use super::compare::{Comparison, Scale, compare_alternating, median};
use super::meter::{cpu, micros_each, settle};
use super::plan::{DataPlan, LISTED, LISTED_SHORT, Length, PlannedConversation, caller};
use super::sender::PipelinedSender;
use crate::accounts::run_name;
use crate::progress::ProgressDisplay;

/// Sends of a round, one after the other; their median counts.
const ONE_BY_ONE: u64 = 200;
/// Sends of a round, many in flight; fewer in a small store, so that it stays small.
const TOGETHER_MAX: u64 = 20_000;
/// Conversations the sends go to.
const SPOKEN_IN: u64 = 200;
const STANDINGS: u64 = 10_000;
const LISTS: u64 = 50;
const LIST_PAGE: usize = 20;
const PAGES: u64 = 200;
const PAGE: usize = 50;

/// A store opened in this process, and its plan.
pub(super) struct MeasuredStore {
    chat: Chat,
    plan: DataPlan,
}

impl MeasuredStore {
    pub(super) fn open(hooks: &GrowthHooks, folder: &Path, plan: DataPlan) -> Result<Self> {
        Ok(Self { chat: (hooks.open)(folder)?, plan })
    }

    pub(super) async fn close(self) -> Result<()> {
        Ok(self.chat.store.close().await?)
    }

    /// Some of the conversations between two people.
    fn pairs(&self) -> Result<Vec<PlannedConversation>> {
        let pairs = (0..self.plan.conversations).filter(|k| k % 4 != 3);
        pairs.take(usize::try_from(SPOKEN_IN)?).map(|k| self.plan.ordinary(k)).collect()
    }
}

/// Runs all comparisons.
pub(super) async fn compare(
    small: &MeasuredStore,
    large: &MeasuredStore,
    rounds: usize,
    progress: ProgressDisplay,
) -> Result<Vec<Comparison>> {
    let bar = progress.counting("comparisons", 9);
    let mut found = Vec::new();
    // First, while no cache holds anything.
    found.extend(first_looks(large).await?);
    bar.inc(2);
    settle().await;
    let long = large.plan.messages / 10;
    let histories = || ("100 messages".to_owned(), format!("about {long} messages"));

    let (short, of_long) = histories();
    let names = ("unread count", short, of_long);
    found.push(
        compare_alternating(names, rounds, async |scale| unread(&large.chat, scale.length()).await)
            .await?,
    );
    bar.inc(1);
    let (short, of_long) = histories();
    let names = ("newest 50 messages", short, of_long);
    found.push(
        compare_alternating(names, rounds, async |scale| {
            history(&large.chat, scale.length()).await
        })
        .await?,
    );
    bar.inc(1);
    let names = (
        "page of 20 of the conversation list",
        format!("{LISTED_SHORT} messages in each"),
        format!("about {} messages in each", large.plan.messages / 4 / LISTED),
    );
    found.push(
        compare_alternating(names, rounds, async |scale| list(&large.chat, scale.length()).await)
            .await?,
    );
    bar.inc(1);

    let stored = || {
        let count = |plan: &DataPlan| format!("{} stored", plan.messages);
        (count(&small.plan), count(&large.plan))
    };
    let at = |scale: Scale| if scale == Scale::Small { small } else { large };
    let conversations = [small.pairs()?, large.pairs()?];
    let (few, many) = stored();
    let mut sends = Sends::new();
    let names = ("send, one by one", few, many);
    let one_by_one = async |scale: Scale| {
        sends.one_by_one(&at(scale).chat, &conversations[scale as usize]).await
    };
    found.push(compare_alternating(names, rounds, one_by_one).await?);
    bar.inc(1);
    let (few, many) = stored();
    let names = ("send, processor time of many", few, many);
    let count = (large.plan.messages / 10).min(TOGETHER_MAX);
    let together = async |scale: Scale| {
        sends.together(&at(scale).chat, &conversations[scale as usize], count).await
    };
    found.push(compare_alternating(names, rounds, together).await?);
    bar.inc(1);

    let groups = large.plan.small_and_large_group()?;
    let members = || {
        let count = |group: usize| format!("{} members", groups[group].members.len());
        (count(0), count(1))
    };
    let conversations = [[groups[0].conversation()], [groups[1].conversation()]];
    let (few, many) = members();
    let names = ("send to a group, one by one", few, many);
    let one_by_one =
        async |scale: Scale| sends.one_by_one(&large.chat, &conversations[scale as usize]).await;
    found.push(compare_alternating(names, rounds, one_by_one).await?);
    bar.inc(1);
    let (few, many) = members();
    let names = ("send to a group, processor time of many", few, many);
    let together = async |scale: Scale| {
        sends.together(&large.chat, &conversations[scale as usize], count).await
    };
    found.push(compare_alternating(names, rounds, together).await?);
    bar.finish_and_clear();
    Ok(found)
}

impl Scale {
    fn length(self) -> Length {
        match self {
            Self::Small => Length::Short,
            Self::Large => Length::Long,
        }
    }
}

/// Sends messages with client ids that no earlier run has used.
struct Sends {
    run: String,
    rounds: u64,
}

impl Sends {
    fn new() -> Self {
        Self { run: run_name(), rounds: 0 }
    }

    fn sender<'a>(&mut self, chat: &'a Chat) -> PipelinedSender<'a> {
        self.rounds += 1;
        PipelinedSender::new(chat, format!("{}-{}-", self.run, self.rounds))
    }

    /// The median time from sending a message to its being durable.
    async fn one_by_one(
        &mut self,
        chat: &Chat,
        conversations: &[PlannedConversation],
    ) -> Result<f64> {
        let mut sender = self.sender(chat);
        let mut conversations = conversations.iter().cycle();
        median_micros(ONE_BY_ONE, async || match conversations.next() {
            Some(conversation) => sender.send_and_wait(conversation).await,
            None => anyhow::bail!("no conversation to send to"),
        })
        .await
    }

    /// Processor time per message.
    async fn together(
        &mut self,
        chat: &Chat,
        conversations: &[PlannedConversation],
        count: u64,
    ) -> Result<f64> {
        let mut sender = self.sender(chat);
        let before = cpu();
        for conversation in conversations.iter().cycle().take(usize::try_from(count)?) {
            sender.send(conversation).await?;
        }
        sender.finish().await?;
        Ok(micros_each(cpu().saturating_sub(before), count))
    }
}

/// Reads conversations for the first time after a start, when no cache holds them.
async fn first_looks(store: &MeasuredStore) -> Result<[Comparison; 2]> {
    let (mut unreads, mut pages) = (Vec::new(), Vec::new());
    for n in 0..LISTED {
        let mut took = [(0.0, 0.0); 2];
        for length in Length::BOTH {
            let (who, conversation) =
                (caller(&length.lister())?, length.listed_conversation_id(n)?);
            let unread = one_unread(&store.chat, &who, &conversation, 1).await?;
            let page = one_page(&store.chat, &who, &conversation, 1).await?;
            took[length as usize] = (unread, page);
        }
        unreads.push((took[0].0, took[1].0));
        pages.push((took[0].1, took[1].1));
    }
    let small = format!("{LISTED_SHORT} messages");
    let large = format!("about {} messages", store.plan.messages / 4 / LISTED);
    Ok([
        Comparison::of(
            ("unread count, first after a start", small.clone(), large.clone()),
            &unreads,
        ),
        Comparison::of(("newest 50 messages, then", small, large), &pages),
    ])
}

async fn unread(chat: &Chat, length: Length) -> Result<f64> {
    let (who, conversation) = (caller(&length.reader())?, length.conversation_id()?);
    one_unread(chat, &who, &conversation, STANDINGS).await
}

async fn one_unread(
    chat: &Chat,
    who: &Caller,
    conversation: &ConversationId,
    times: u64,
) -> Result<f64> {
    let since = Instant::now();
    for _ in 0..times {
        let unread = read::standing(chat, who, conversation).await?.unread();
        anyhow::ensure!(unread > 0, "nothing is unread in {conversation}");
    }
    Ok(micros_each(since.elapsed(), times))
}

async fn history(chat: &Chat, length: Length) -> Result<f64> {
    let (who, conversation) = (caller(&length.reader())?, length.conversation_id()?);
    one_page(chat, &who, &conversation, PAGES).await
}

async fn one_page(
    chat: &Chat,
    who: &Caller,
    conversation: &ConversationId,
    times: u64,
) -> Result<f64> {
    median_micros(times, async || {
        let page = read::history(chat, who, conversation, None, PAGE).await?;
        anyhow::ensure!(!page.items.is_empty(), "nothing was said in {conversation}");
        Ok(())
    })
    .await
}

async fn list(chat: &Chat, length: Length) -> Result<f64> {
    let who = caller(&length.lister())?;
    median_micros(LISTS, async || {
        let (page, _) = conversations::list(chat, &who, ListFilter::All, None, LIST_PAGE).await?;
        anyhow::ensure!(page.items.len() == LIST_PAGE, "the list is short");
        Ok(())
    })
    .await
}

/// The median of so many calls, in microseconds: other load on a shared machine distorts a mean.
async fn median_micros(times: u64, mut act: impl AsyncFnMut() -> Result<()>) -> Result<f64> {
    let mut took = Vec::new();
    for _ in 0..times {
        let since = Instant::now();
        act().await?;
        took.push(micros_each(since.elapsed(), 1));
    }
    Ok(median(took.into_iter()))
}
