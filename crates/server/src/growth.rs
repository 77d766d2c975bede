//! Builds what `nexo bench growth` measures: the domain on the real store, in this process.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use nexo_bench::GrowthOptions;
use nexo_bench::growth::GrowthHooks;
use nexo_bus::LocalBus;
use nexo_chat::Chat;
use toml::Table;

use crate::bench::{SETTINGS, folder, server, show};
use crate::config::{Config, defaults, environment};
use crate::wiring;

pub(crate) async fn growth(options: &GrowthOptions) -> anyhow::Result<()> {
    options.check()?;
    let temporary = folder()?;
    let folder = options.keep.as_deref().unwrap_or(temporary.path());
    let hooks = GrowthHooks { open, start: server };
    show(&nexo_bench::growth(options, &hooks, folder).await?, &options.output)
}

/// Opens a data folder with the settings of a [`server`].
fn open(folder: &Path) -> anyhow::Result<Chat> {
    let mut given = Table::new();
    let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let defaults = defaults()?;
    let variables = std::env::vars().chain(settings);
    let problems = environment::overlay(&mut given, &defaults, variables);
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("; "));
    let mut config = Config::from_table(given, &defaults).context("the settings are not right")?;
    folder.to_str().context("the folder's name is not text")?.clone_into(&mut config.data);
    let store = wiring::open_embedded(&config)?;
    wiring::chat(&config, store, Arc::new(LocalBus::new()))
}
