//! Copies all data into an empty store, reads it back, and compares.

use std::io::Write;
use std::time::Instant;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use nexo_store::archive::{Export, Item, ItemKind, Tally, copy, survey};

use crate::store_location::{OpenStore, StoreLocation};

/// Copies everything into an empty store and verifies it. Fails if a server was started on `source` or
/// the target meanwhile, since its changes would be missing.
pub(crate) async fn copy_and_verify(
    from: &dyn Export,
    to: &StoreLocation,
    source: Option<&OpenStore>,
) -> anyhow::Result<Tally> {
    let target = to.open_to_fill().await.with_context(|| format!("cannot move data to {to}"))?;
    let copied = try_copy(from, to, target, source).await;
    copied.with_context(|| {
        let how = to.how_to_empty();
        format!("{to} holds a part of the data now: {how} before you try again")
    })
}

async fn try_copy(
    from: &dyn Export,
    to: &StoreLocation,
    target: OpenStore,
    source: Option<&OpenStore>,
) -> anyhow::Result<Tally> {
    let began = Instant::now();
    let bar = bar("copying", from.approximate_len().await?);
    let copied = copy(from, target.import(), &mut |batch| show(&bar, batch)).await?;
    bar.finish_and_clear();
    let seconds = began.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate needs no more digits")]
    let rate = copied.count(ItemKind::Message) as f64 / seconds;
    print_line(&format!(
        "Copied in {seconds:.1} s, {rate:.0} messages a second. Reading it back."
    ))?;
    let target = target.reopen(to).await?;
    let bar = self::bar("checking", copied.total());
    let found = survey(target.export(), &mut |batch| show(&bar, batch)).await?;
    bar.finish_and_clear();
    let differences = copied.differences(&found);
    if !differences.is_empty() {
        bail!("the copy differs from the source: {}", differences.join("; "));
    }
    for opened in source.into_iter().chain([&target]) {
        if opened.is_served().await? {
            bail!("a server was started meanwhile, and what it stored may be missing: stop it");
        }
    }
    target.import().finish().await?;
    target.close().await?;
    Ok(copied)
}

/// Prints what the target holds now.
pub(crate) fn print_summary(tally: &Tally, to: &StoreLocation) -> anyhow::Result<()> {
    print_line(&format!("{to} has:"))?;
    for kind in ItemKind::ALL.into_iter().filter(|kind| tally.count(*kind) > 0) {
        print_line(&format!("{:>12}  {}", tally.count(kind), kind.name()))?;
    }
    let conversations = tally.conversations();
    print_line(&format!(
        "Everything was read back and is the same: the counts, the checksum of each of the \
         {conversations} conversations, and the checksum of all the rest."
    ))
}

pub(crate) fn print_line(text: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

/// A progress bar; a pipe gets none.
fn bar(what: &'static str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length).with_message(what);
    let template = "{msg:>24} {wide_bar} {pos}/{len} {per_sec} {eta:>4}";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar, // a plain bar will do
    }
}

fn show(bar: &ProgressBar, batch: &[Item]) {
    if let Some(item) = batch.last() {
        bar.set_message(item.kind().name());
    }
    // The length was an estimate.
    let position = bar.position() + batch.len() as u64;
    if bar.length().is_some_and(|length| length < position) {
        bar.set_length(position);
    }
    bar.set_position(position);
}
