//! Puts together what `nexo bench growth` measures: the domain on the real store, in this process.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use nexo_bench::GrowthOptions;
use nexo_bench::growth::Parts;
use nexo_bus::Local;
use nexo_chat::Chat;
use toml::Table;

use crate::bench::{SETTINGS, folder, server, show};
use crate::config::Config;
use crate::{environment, wiring};

pub(crate) async fn growth(options: &GrowthOptions) -> anyhow::Result<()> {
    options.check()?;
    let folder = folder()?;
    let kept = options.keep.as_deref().unwrap_or(folder.path());
    let parts = Parts { open, start: server };
    show(&nexo_bench::growth(options, &parts, kept).await?, &options.shown)
}

/// A data folder with the settings that [`server`] has.
fn open(folder: &Path) -> anyhow::Result<Chat> {
    let mut table = Table::new();
    let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let defaults = Table::try_from(Config::default())?;
    let variables = std::env::vars().chain(settings);
    let problems = environment::overlay(&mut table, &defaults, variables);
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("; "));
    let mut config: Config = table.try_into().context("the settings are not right")?;
    folder.to_str().context("the folder's name is not text")?.clone_into(&mut config.data);
    let store = wiring::open_embedded(&config)?;
    wiring::chat(&config, store, Arc::new(Local::new()))
}
