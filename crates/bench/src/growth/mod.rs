//! Shows that cost does not grow: with what is stored, with who is offline, with how long a
//! conversation is.
//!
//! In reading order:
//!
//! - `plan`: who is in a generated store and what is said there;
//! - `talk`: saying things through the domain, one by one or many at a time;
//! - `generate`: fills a folder; `folders`: where it is and whether it is there already;
//! - `compare`, `costs`: the small beside the large, in turns;
//! - `start`, `crash`, `missed`: a real server on the generated folder;
//! - `meter`: processor time and disk space;
//! - `report`: what is printed.

mod compare;
mod costs;
mod crash;
mod folders;
mod generate;
mod meter;
mod missed;
mod plan;
mod report;
mod start;
mod talk;

use std::path::Path;

use anyhow::{Context, Result};
use nexo_chat::Chat;

use self::costs::Grounds;
use self::folders::Folders;
use self::missed::Missed;
use self::plan::Plan;
use crate::options::GrowthOptions;
use crate::progress::Progress;
use crate::started::Started;

pub use self::report::Growth;

/// What a run needs from whoever puts servers together.
pub struct Parts {
    /// Opens a data folder in this process, without limits on how much one may send.
    pub open: fn(&Path) -> Result<Chat>,
    /// Starts a server on a data folder, without such limits.
    pub start: fn(&Path) -> Result<Started>,
}

/// Generates in a folder, measures in this process, then measures servers on what was generated.
pub async fn growth(options: &GrowthOptions, parts: &Parts, folder: &Path) -> Result<Growth> {
    options.check()?;
    let progress = Progress::new(!options.shown.json);
    let plan = Plan::new(options);
    let folders = Folders::prepare(folder, &plan)?;
    let generated = generate::both(parts, &plan, &folders, progress).await?;

    let mut comparisons = {
        let small = Grounds::open(parts, &folders.small(), plan.small())?;
        let large = Grounds::open(parts, &folders.large(), plan.clone())?;
        let compared = costs::compare(&small, &large, options.rounds, progress).await;
        small.close().await?;
        large.close().await?;
        compared.context("the comparisons")?
    };
    comparisons.extend(generated.as_ref().and_then(generate::Generated::comparison));

    let served = start::serve(parts, &folders, options.rounds, progress).await?;
    let chat = (parts.open)(&folders.large())?;
    let crash = crash::check(&chat, served.acknowledged).await;
    chat.store.close().await?;
    Ok(Growth {
        messages: plan.messages,
        conversations: plan.conversations,
        members: plan.members,
        rounds: options.rounds,
        bytes_on_disk: meter::bytes_in(&folders.large())?,
        generated,
        comparisons,
        starts: served.starts,
        missed: Missed::new(&plan, &served.came_back)?,
        crash: crash?,
    })
}
