//! What a send, an unread count, a list and a page of history cost, with little and with much.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use nexo_chat::conversations::{self, Which};
use nexo_chat::ids::ConversationId;
use nexo_chat::model::Caller;
use nexo_chat::{Chat, read};

use super::Parts;
use super::compare::{Comparison, Side, in_turns, median};
use super::meter::{cpu, micros_each, settle};
use super::plan::{LISTED, LISTED_SHORT, Lane, Length, Plan, caller};
use super::talk::Talk;
use crate::accounts::run_name;
use crate::progress::Progress;

/// Sends of a round, one after the other, of which the median counts.
const ONE_BY_ONE: u64 = 200;
/// Sends of a round, many at a time; fewer in a small store, which they are not to outgrow.
const TOGETHER_MAX: u64 = 20_000;
/// Conversations the sends go to.
const SPOKEN_IN: u64 = 200;
const STANDINGS: u64 = 10_000;
const LISTS: u64 = 50;
const LIST_PAGE: usize = 20;
const PAGES: u64 = 200;
const PAGE: usize = 50;

/// An open store and what is in it.
pub(super) struct Grounds {
    chat: Chat,
    plan: Plan,
}

impl Grounds {
    pub(super) fn open(parts: &Parts, folder: &Path, plan: Plan) -> Result<Self> {
        Ok(Self { chat: (parts.open)(folder)?, plan })
    }

    pub(super) async fn close(self) -> Result<()> {
        Ok(self.chat.store.close().await?)
    }

    /// Some of the conversations between two people.
    fn pairs(&self) -> Result<Vec<Lane>> {
        let pairs = (0..self.plan.conversations).filter(|k| k % 4 != 3);
        pairs.take(usize::try_from(SPOKEN_IN)?).map(|k| self.plan.ordinary(k)).collect()
    }
}

/// All comparisons.
pub(super) async fn compare(
    small: &Grounds,
    large: &Grounds,
    rounds: usize,
    progress: Progress,
) -> Result<Vec<Comparison>> {
    let bar = progress.counting("comparisons", 9);
    let mut found = Vec::new();
    // First, while nothing has been looked at.
    found.extend(first_looks(large).await?);
    bar.inc(2);
    settle().await;
    let long = large.plan.messages / 10;
    let histories = || ("100 messages".to_owned(), format!("about {long} messages"));

    let (short, of_long) = histories();
    let names = ("unread count", short, of_long);
    found.push(
        in_turns(names, rounds, async |side| unread(&large.chat, side.length()).await).await?,
    );
    bar.inc(1);
    let (short, of_long) = histories();
    let names = ("newest 50 messages", short, of_long);
    found.push(
        in_turns(names, rounds, async |side| history(&large.chat, side.length()).await).await?,
    );
    bar.inc(1);
    let names = (
        "page of 20 of the conversation list",
        format!("{LISTED_SHORT} messages in each"),
        format!("about {} messages in each", large.plan.messages / 4 / LISTED),
    );
    found.push(in_turns(names, rounds, async |side| list(&large.chat, side.length()).await).await?);
    bar.inc(1);

    let stored = || {
        let count = |plan: &Plan| format!("{} stored", plan.messages);
        (count(&small.plan), count(&large.plan))
    };
    let at = |side: Side| if side == Side::Small { small } else { large };
    let lanes = [small.pairs()?, large.pairs()?];
    let (few, many) = stored();
    let mut sends = Sends::new();
    let names = ("send, one by one", few, many);
    let one_by_one =
        async |side: Side| sends.one_by_one(&at(side).chat, &lanes[side as usize]).await;
    found.push(in_turns(names, rounds, one_by_one).await?);
    bar.inc(1);
    let (few, many) = stored();
    let names = ("send, processor time of many", few, many);
    let count = (large.plan.messages / 10).min(TOGETHER_MAX);
    let together =
        async |side: Side| sends.together(&at(side).chat, &lanes[side as usize], count).await;
    found.push(in_turns(names, rounds, together).await?);
    bar.inc(1);

    let groups = large.plan.sizes()?;
    let members = || {
        let count = |group: usize| format!("{} members", groups[group].members.len());
        (count(0), count(1))
    };
    let lanes = [[groups[0].lane()], [groups[1].lane()]];
    let (few, many) = members();
    let names = ("send to a group, one by one", few, many);
    let one_by_one = async |side: Side| sends.one_by_one(&large.chat, &lanes[side as usize]).await;
    found.push(in_turns(names, rounds, one_by_one).await?);
    bar.inc(1);
    let (few, many) = members();
    let names = ("send to a group, processor time of many", few, many);
    let together =
        async |side: Side| sends.together(&large.chat, &lanes[side as usize], count).await;
    found.push(in_turns(names, rounds, together).await?);
    bar.finish_and_clear();
    Ok(found)
}

impl Side {
    fn length(self) -> Length {
        match self {
            Self::Small => Length::Short,
            Self::Large => Length::Long,
        }
    }
}

/// Sends, each under a client id that no run before has used.
struct Sends {
    run: String,
    rounds: u64,
}

impl Sends {
    fn new() -> Self {
        Self { run: run_name(), rounds: 0 }
    }

    fn talk<'a>(&mut self, chat: &'a Chat) -> Talk<'a> {
        self.rounds += 1;
        Talk::new(chat, format!("{}-{}-", self.run, self.rounds))
    }

    /// How long a send takes until it is durable.
    async fn one_by_one(&mut self, chat: &Chat, lanes: &[Lane]) -> Result<f64> {
        let mut talk = self.talk(chat);
        let mut lanes = lanes.iter().cycle();
        middle(ONE_BY_ONE, async || match lanes.next() {
            Some(lane) => talk.say_now(lane).await,
            None => anyhow::bail!("nobody to speak to"),
        })
        .await
    }

    /// What a send costs the processors.
    async fn together(&mut self, chat: &Chat, lanes: &[Lane], count: u64) -> Result<f64> {
        let mut talk = self.talk(chat);
        let before = cpu();
        for lane in lanes.iter().cycle().take(usize::try_from(count)?) {
            talk.say(lane).await?;
        }
        talk.finish().await?;
        Ok(micros_each(cpu().saturating_sub(before), count))
    }
}

/// The first look at conversations after a start, when nothing of them is in memory.
async fn first_looks(grounds: &Grounds) -> Result<[Comparison; 2]> {
    let (mut unreads, mut pages) = (Vec::new(), Vec::new());
    for n in 0..LISTED {
        let mut took = [(0.0, 0.0); 2];
        for length in Length::BOTH {
            let (who, conversation) = (caller(&length.lister())?, length.listed_conversation(n)?);
            let unread = one_unread(&grounds.chat, &who, &conversation, 1).await?;
            let page = one_page(&grounds.chat, &who, &conversation, 1).await?;
            took[length as usize] = (unread, page);
        }
        unreads.push((took[0].0, took[1].0));
        pages.push((took[0].1, took[1].1));
    }
    let small = format!("{LISTED_SHORT} messages");
    let large = format!("about {} messages", grounds.plan.messages / 4 / LISTED);
    Ok([
        Comparison::of(
            ("unread count, first after a start", small.clone(), large.clone()),
            &unreads,
        ),
        Comparison::of(("newest 50 messages, then", small, large), &pages),
    ])
}

async fn unread(chat: &Chat, length: Length) -> Result<f64> {
    let (who, conversation) = (caller(&length.reader())?, length.conversation()?);
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
    let (who, conversation) = (caller(&length.reader())?, length.conversation()?);
    one_page(chat, &who, &conversation, PAGES).await
}

async fn one_page(
    chat: &Chat,
    who: &Caller,
    conversation: &ConversationId,
    times: u64,
) -> Result<f64> {
    middle(times, async || {
        let page = read::history(chat, who, conversation, None, PAGE).await?;
        anyhow::ensure!(!page.items.is_empty(), "nothing was said in {conversation}");
        Ok(())
    })
    .await
}

async fn list(chat: &Chat, length: Length) -> Result<f64> {
    let who = caller(&length.lister())?;
    middle(LISTS, async || {
        let (page, _) = conversations::list(chat, &who, Which::All, None, LIST_PAGE).await?;
        anyhow::ensure!(page.items.len() == LIST_PAGE, "the list is short");
        Ok(())
    })
    .await
}

/// The median of so many times, in microseconds: on a shared machine a mean tells of the others.
async fn middle(times: u64, mut act: impl AsyncFnMut() -> Result<()>) -> Result<f64> {
    let mut took = Vec::new();
    for _ in 0..times {
        let since = Instant::now();
        act().await?;
        took.push(micros_each(since.elapsed(), 1));
    }
    Ok(median(took.into_iter()))
}
