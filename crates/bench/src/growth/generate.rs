//! Fills a data folder through the domain, with so many messages in flight that the store's
//! batches are full.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nexo_chat::Chat;
use nexo_chat::group::{self, generate_join_code};
use nexo_chat::ids::UserId;
use nexo_chat::membership::{GroupAction, GroupProfile, HistoryPolicy, JoinPolicy, NewGroup};
use nexo_chat::model::{AccountDetails, Caller, Profile, User};
use serde::Serialize;

use super::GrowthHooks;
use super::compare::Comparison;
use super::folders::Folders;
use super::meter::{cpu, micros_each};
use super::plan::{self, DataPlan, LISTED, Length, PlannedGroup};
use super::sender::{PipelinedSender, SeededRng, WINDOW};
use crate::accounts::PASSWORD;
use crate::progress::{ProgressDisplay, run_all};

/// Accounts and groups created at a time.
const MAKING_AT_ONCE: usize = 1024;
/// Users that one request may invite.
const INVITED_AT_ONCE: usize = 500;
/// The progress bar moves every so many messages.
const BAR_EVERY: u64 = 10_000;

/// How long generating the large store took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Generated {
    /// Messages stored.
    pub messages: u64,
    /// Without the time for accounts and groups.
    pub seconds: f64,
    /// Messages per second.
    pub per_second: f64,
    /// Each tenth of the messages: does it become slower as the store fills?
    pub tenths: Vec<Tenth>,
}

/// A tenth of the messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tenth {
    /// Messages per second.
    pub per_second: f64,
    /// Processor time per message, including the store's compaction.
    pub cpu_us: f64,
}

impl Generated {
    /// Processor time per message in the first and in the last tenth. Unlike a short measurement on an
    /// idle store, this includes the compaction that each message causes. `None` for few messages, where
    /// it would only show how the window fills.
    pub(super) fn comparison(&self) -> Option<Comparison> {
        let (first, last) = (self.tenths.first()?, self.tenths.last()?);
        let tenth = self.messages / 10;
        if tenth < 4 * WINDOW as u64 {
            return None;
        }
        let names = (
            "send, processor time with all tidying up",
            format!("the first {tenth}"),
            format!("the last {tenth} of {}", self.messages),
        );
        Some(Comparison::of(names, &[(first.cpu_us, last.cpu_us)]))
    }
}

/// Generates the small and the large store, unless an earlier run did.
pub(super) async fn both(
    hooks: &GrowthHooks,
    plan: &DataPlan,
    folders: &Folders,
    progress: ProgressDisplay,
) -> Result<Option<Generated>> {
    if folders.is_made() {
        return Ok(None);
    }
    one(hooks, &plan.small(), &folders.small(), progress).await?;
    let generated = one(hooks, plan, &folders.large(), progress).await?;
    folders.mark_made(plan)?;
    Ok(Some(generated))
}

async fn one(
    hooks: &GrowthHooks,
    plan: &DataPlan,
    folder: &Path,
    progress: ProgressDisplay,
) -> Result<Generated> {
    let chat = (hooks.open)(folder)?;
    let filled = fill(&chat, plan, progress).await;
    // Close it even after a failure: the folder may be removed next.
    let closed = chat.store.close().await;
    let generated = filled.with_context(|| format!("filling {}", folder.display()))?;
    closed?;
    Ok(generated)
}

async fn fill(chat: &Chat, plan: &DataPlan, progress: ProgressDisplay) -> Result<Generated> {
    // One hash for all: hashing passwords is not what is measured.
    let hash = chat.passwords.hash(PASSWORD.to_owned()).await?;
    let accounts = plan.people().into_iter().map(|name| account(chat, name, hash.clone()));
    run_all(accounts, MAKING_AT_ONCE, "accounts", progress).await?;

    let mut groups: Vec<PlannedGroup> = plan.small_and_large_group()?.into();
    for k in 0..plan.conversations {
        groups.extend(plan.group(k)?);
    }
    let groups = groups.into_iter().map(|group| create_group(chat, group));
    run_all(groups, MAKING_AT_ONCE, "groups", progress).await?;
    messages(chat, plan, progress).await
}

async fn account(chat: &Chat, name: String, hash: String) -> Result<()> {
    let user = User {
        id: UserId::parse(&name)?,
        profile: Profile { nickname: name, ..Profile::default() },
        created_at: chat.clock.now(),
        updated_at: chat.clock.now(),
        password_hash: hash,
        session_version: 1,
        details: AccountDetails::default(),
    };
    chat.store.create_user(user).await?;
    Ok(())
}

async fn create_group(chat: &Chat, group: PlannedGroup) -> Result<()> {
    let PlannedGroup { id, members } = group;
    let (owner, rest) = members.split_first().context("a group without members")?;
    let owner: Caller = plan::caller(owner.as_str())?;
    let mut batches = rest.chunks(INVITED_AT_ONCE);
    let new = NewGroup {
        profile: GroupProfile { name: id.as_str().to_owned(), ..GroupProfile::default() },
        joining: JoinPolicy::Open,
        history: HistoryPolicy::default(),
        members: batches.next().unwrap_or_default().to_vec(),
        members_min: 1,
        code: generate_join_code(chat),
    };
    group::apply(chat, &owner, &id, GroupAction::Create(new)).await?;
    for batch in batches {
        group::apply(chat, &owner, &id, GroupAction::Invite(batch.to_vec())).await?;
    }
    Ok(())
}

/// The conversations of fixed length first, then the rest, mixed: of forty messages, four go to the
/// long conversation, ten to the long list, and the others to the ordinary ones.
async fn messages(chat: &Chat, plan: &DataPlan, progress: ProgressDisplay) -> Result<Generated> {
    let bar = progress.counting("messages", usize::try_from(plan.messages)?);
    let mut pace = TenthRecorder::new(plan.messages);
    let mut sender = PipelinedSender::new(chat, String::new());
    let mut count = |saved: u64| {
        pace.at(saved);
        if saved.is_multiple_of(BAR_EVERY) {
            bar.set_position(saved);
        }
    };
    let exact = plan.fixed_length_conversations()?;
    let rest = plan.messages - exact.iter().map(|(_, count)| count).sum::<u64>();
    for (conversation, times) in &exact {
        for _ in 0..*times {
            sender.send(conversation).await?;
            count(sender.saved());
        }
    }
    let long = Length::Long.conversation()?;
    let listed: Vec<_> =
        (0..LISTED).map(|n| Length::Long.listed_conversation(n)).collect::<Result<_>>()?;
    let ordinary: Vec<_> =
        (0..plan.conversations).map(|k| plan.ordinary(k)).collect::<Result<_>>()?;
    let mut rng = SeededRng::new(plan.messages);
    for n in 0..rest {
        let conversation = match n % 40 {
            0..4 => &long,
            slot @ 4..14 => &listed[usize::try_from((n / 40 * 10 + slot) % LISTED)?],
            _ => &ordinary[usize::try_from(rng.skewed(plan.conversations))?],
        };
        sender.send(conversation).await?;
        count(sender.saved());
    }
    sender.finish().await?;
    count(sender.saved());
    bar.finish_and_clear();
    Ok(pace.close())
}

/// Measures each tenth of the messages.
struct TenthRecorder {
    messages: u64,
    began: Instant,
    /// Time, processor time and messages at the beginning of this tenth.
    since: (Instant, Duration, u64),
    /// The message count that ends this tenth.
    end: u64,
    tenths: Vec<Tenth>,
}

impl TenthRecorder {
    fn new(messages: u64) -> Self {
        let began = Instant::now();
        Self { messages, began, since: (began, cpu(), 0), end: messages / 10, tenths: Vec::new() }
    }

    /// Takes the number of messages that are durable by now.
    fn at(&mut self, saved: u64) {
        if saved < self.end {
            return;
        }
        let (began, used, from) = self.since;
        let part = saved - from;
        let per_second = 1e6 / micros_each(began.elapsed(), part);
        let cpu_us = micros_each(cpu().saturating_sub(used), part);
        self.tenths.push(Tenth { per_second, cpu_us });
        self.since = (Instant::now(), cpu(), saved);
        self.end = (saved * 10 / self.messages + 1) * self.messages / 10;
    }

    fn close(self) -> Generated {
        let took = self.began.elapsed();
        Generated {
            messages: self.messages,
            seconds: took.as_secs_f64(),
            per_second: 1e6 / micros_each(took, self.messages),
            tenths: self.tenths,
        }
    }
}
