//! Measures whether cost grows with the amount stored, with the number of offline members, or with
//! the length of a conversation.
//!
//! In reading order:
//!
//! - `plan`: the users, groups and conversations of a generated store;
//! - `sender`: sends messages through the domain, one by one or many at a time;
//! - `folders`, `generate`: the folders of the two stores, and what fills them;
//! - `compare`, `costs`: the small store against the large one, alternating;
//! - `start`, `crash`, `catch_up`: a real server on the generated folder;
//! - `meter`: processor time and disk space;
//! - `report`: the printed report.

mod catch_up;
mod compare;
mod costs;
mod crash;
mod folders;
mod generate;
mod meter;
mod plan;
mod report;
mod sender;
mod start;

use std::path::Path;

use anyhow::{Context, Result};
use nexo_chat::Chat;

use self::catch_up::MissedReport;
use self::costs::MeasuredStore;
use self::folders::Folders;
use self::plan::DataPlan;
use crate::options::GrowthOptions;
use crate::progress::ProgressDisplay;
use crate::started::Started;

pub use self::report::GrowthReport;

/// What the server crate provides, since this crate cannot depend on it.
pub struct GrowthHooks {
    /// Opens a data folder in this process, without rate limits.
    pub open: fn(&Path) -> Result<Chat>,
    /// Starts a server process on a data folder, without rate limits.
    pub start: fn(&Path) -> Result<Started>,
}

/// Generates both stores in a folder, measures them in this process, then measures servers on the large one.
pub async fn growth(
    options: &GrowthOptions,
    hooks: &GrowthHooks,
    folder: &Path,
) -> Result<GrowthReport> {
    options.check()?;
    let progress = ProgressDisplay::new(!options.output.json);
    let plan = DataPlan::new(options);
    let folders = Folders::prepare(folder, &plan)?;
    let generated = generate::both(hooks, &plan, &folders, progress).await?;

    let mut comparisons = {
        let small = MeasuredStore::open(hooks, &folders.small(), plan.small())?;
        let large = MeasuredStore::open(hooks, &folders.large(), plan.clone())?;
        let compared = costs::compare(&small, &large, options.rounds, progress).await;
        small.close().await?;
        large.close().await?;
        compared.context("the comparisons")?
    };
    comparisons.extend(generated.as_ref().and_then(generate::Generated::comparison));

    let served = start::run_servers(hooks, &folders, options.rounds, progress).await?;
    let chat = (hooks.open)(&folders.large())?;
    let crash = crash::check(&chat, served.acknowledged).await;
    chat.store.close().await?;
    Ok(GrowthReport {
        messages: plan.messages,
        conversations: plan.conversations,
        members: plan.members,
        rounds: options.rounds,
        bytes_on_disk: meter::bytes_in(&folders.large())?,
        generated,
        comparisons,
        starts: served.starts,
        missed: MissedReport::new(&plan, &served.catchups)?,
        crash: crash?,
    })
}
