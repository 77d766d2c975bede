//! Fills a data folder through the domain, with so many messages on their way at once that the
//! store's batches are full.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nexo_chat::Chat;
use nexo_chat::group::{self, draw_code};
use nexo_chat::ids::UserId;
use nexo_chat::membership::{GroupAct, GroupProfile, History, Joining, NewGroup};
use nexo_chat::model::{Caller, Profile, User};
use serde::Serialize;

use super::Parts;
use super::compare::Comparison;
use super::folders::Folders;
use super::meter::{cpu, micros_each};
use super::plan::{self, Gathering, LISTED, Length, Plan};
use super::talk::{Numbers, Talk, WINDOW};
use crate::accounts::PASSWORD;
use crate::progress::{Progress, all};

/// Accounts and groups being made at once.
const MAKING_AT_ONCE: usize = 1024;
/// People one request may bring into a group.
const INVITED_AT_ONCE: usize = 500;
/// The bar moves this often.
const BAR_EVERY: u64 = 10_000;

/// How the large store was made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Generated {
    /// Messages stored.
    pub messages: u64,
    /// How long they took, accounts and groups left out.
    pub seconds: f64,
    /// Messages per second.
    pub per_second: f64,
    /// Each tenth of the way: does it become slower as the store fills?
    pub tenths: Vec<Tenth>,
}

/// A tenth of the messages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tenth {
    /// Messages per second.
    pub per_second: f64,
    /// Processor time per message, that of the store's tidying up included.
    pub cpu_us: f64,
}

impl Generated {
    /// What a message cost the processors in the first and in the last tenth. Unlike a short
    /// measurement on a store that is at rest, this counts the tidying up that each message causes.
    /// Of few messages it would only tell how the window fills.
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

/// Makes the small and the large store, unless they are there.
pub(super) async fn both(
    parts: &Parts,
    plan: &Plan,
    folders: &Folders,
    progress: Progress,
) -> Result<Option<Generated>> {
    if folders.is_made() {
        return Ok(None);
    }
    one(parts, &plan.small(), &folders.small(), progress).await?;
    let generated = one(parts, plan, &folders.large(), progress).await?;
    folders.made(plan)?;
    Ok(Some(generated))
}

async fn one(parts: &Parts, plan: &Plan, folder: &Path, progress: Progress) -> Result<Generated> {
    let chat = (parts.open)(folder)?;
    let filled = fill(&chat, plan, progress).await;
    // Closed also if it failed: the folder may be removed next.
    let closed = chat.store.close().await;
    let generated = filled.with_context(|| format!("filling {}", folder.display()))?;
    closed?;
    Ok(generated)
}

async fn fill(chat: &Chat, plan: &Plan, progress: Progress) -> Result<Generated> {
    // One hash for all: what is measured is not passwords.
    let hash = chat.passwords.hash(PASSWORD.to_owned()).await?;
    let accounts = plan.people().into_iter().map(|name| account(chat, name, hash.clone()));
    all(accounts, MAKING_AT_ONCE, "accounts", progress).await?;

    let mut gatherings: Vec<Gathering> = plan.sizes()?.into();
    for k in 0..plan.conversations {
        gatherings.extend(plan.gathering(k)?);
    }
    let groups = gatherings.into_iter().map(|gathering| gather(chat, gathering));
    all(groups, MAKING_AT_ONCE, "groups", progress).await?;
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
    };
    chat.store.create_user(user).await?;
    Ok(())
}

async fn gather(chat: &Chat, gathering: Gathering) -> Result<()> {
    let Gathering { id, members } = gathering;
    let (owner, rest) = members.split_first().context("a group of nobody")?;
    let owner: Caller = plan::caller(owner.as_str())?;
    let mut lots = rest.chunks(INVITED_AT_ONCE);
    let new = NewGroup {
        profile: GroupProfile { name: id.as_str().to_owned(), ..GroupProfile::default() },
        joining: Joining::Open,
        history: History::default(),
        members: lots.next().unwrap_or_default().to_vec(),
        least: 1,
        code: draw_code(chat),
    };
    group::act(chat, &owner, &id, GroupAct::Create(new)).await?;
    for lot in lots {
        group::act(chat, &owner, &id, GroupAct::Invite(lot.to_vec())).await?;
    }
    Ok(())
}

/// The exact conversations first, then the rest, mixed: of forty messages four go to the one long
/// conversation, ten to the long list, and the others to the ordinary ones.
async fn messages(chat: &Chat, plan: &Plan, progress: Progress) -> Result<Generated> {
    let bar = progress.counting("messages", usize::try_from(plan.messages)?);
    let mut pace = Pace::new(plan.messages);
    let mut talk = Talk::new(chat, String::new());
    let mut count = |saved: u64| {
        pace.at(saved);
        if saved.is_multiple_of(BAR_EVERY) {
            bar.set_position(saved);
        }
    };
    let exact = plan.exact()?;
    let rest = plan.messages - exact.iter().map(|(_, count)| count).sum::<u64>();
    for (lane, times) in &exact {
        for _ in 0..*times {
            talk.say(lane).await?;
            count(talk.saved());
        }
    }
    let long = Length::Long.lane()?;
    let listed: Vec<_> = (0..LISTED).map(|n| Length::Long.listed(n)).collect::<Result<_>>()?;
    let ordinary: Vec<_> =
        (0..plan.conversations).map(|k| plan.ordinary(k)).collect::<Result<_>>()?;
    let mut numbers = Numbers::new(plan.messages);
    for n in 0..rest {
        let lane = match n % 40 {
            0..4 => &long,
            slot @ 4..14 => &listed[usize::try_from((n / 40 * 10 + slot) % LISTED)?],
            _ => &ordinary[usize::try_from(numbers.skewed(plan.conversations))?],
        };
        talk.say(lane).await?;
        count(talk.saved());
    }
    talk.finish().await?;
    count(talk.saved());
    bar.finish_and_clear();
    Ok(pace.close())
}

/// How fast it goes, by tenths.
struct Pace {
    messages: u64,
    began: Instant,
    /// Where this tenth began.
    since: (Instant, Duration, u64),
    /// Where it ends.
    end: u64,
    tenths: Vec<Tenth>,
}

impl Pace {
    fn new(messages: u64) -> Self {
        let began = Instant::now();
        Self { messages, began, since: (began, cpu(), 0), end: messages / 10, tenths: Vec::new() }
    }

    /// So many are durable by now.
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
