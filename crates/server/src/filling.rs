//! Fills a store from something else, finds everything there again, and says so.

use std::io::Write;
use std::time::Instant;

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use nexo_store::archive::{Export, Item, Kind, Tally, copy, survey};

use crate::place::{Opened, Place};

/// Moves everything into an empty store. `source` is looked at once more before the end, since what
/// it got meanwhile would be missing.
pub(crate) async fn fill(
    from: &dyn Export,
    to: &Place,
    source: Option<&Opened>,
) -> anyhow::Result<Tally> {
    let target = to.open_to_fill().await.with_context(|| format!("cannot move data to {to}"))?;
    let filled = try_fill(from, to, target, source).await;
    filled.with_context(|| {
        let how = to.how_to_empty();
        format!("{to} holds a part of the data now: {how} before you try again")
    })
}

async fn try_fill(
    from: &dyn Export,
    to: &Place,
    target: Opened,
    source: Option<&Opened>,
) -> anyhow::Result<Tally> {
    let began = Instant::now();
    let bar = bar("copying", from.about().await?);
    let given = copy(from, target.import(), &mut |lot| show(&bar, lot)).await?;
    bar.finish_and_clear();
    let seconds = began.elapsed().as_secs_f64();
    #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = given.count(Kind::Message) as f64 / seconds;
    say(&format!("Copied in {seconds:.1} s, {rate:.0} messages a second. Reading it back."))?;
    let target = target.anew(to).await?;
    let bar = self::bar("checking", given.total());
    let found = survey(target.export(), &mut |lot| show(&bar, lot)).await?;
    bar.finish_and_clear();
    let differences = given.differences(&found);
    if !differences.is_empty() {
        bail!("what is there is not what was given: {}", differences.join("; "));
    }
    for opened in source.into_iter().chain([&target]) {
        if opened.is_served().await? {
            bail!("a server was started meanwhile, and what it kept may be missing: stop it");
        }
    }
    target.import().finish().await?;
    target.close().await?;
    Ok(given)
}

/// Says what is there now.
pub(crate) fn tell(tally: &Tally, to: &Place) -> anyhow::Result<()> {
    say(&format!("{to} has:"))?;
    for kind in Kind::ALL.into_iter().filter(|kind| tally.count(*kind) > 0) {
        say(&format!("{:>12}  {}", tally.count(kind), kind.name()))?;
    }
    let conversations = tally.conversations();
    say(&format!(
        "Everything was read back and is the same: the number of each, the checksum of each of the \
         {conversations} conversations, and that of all the rest."
    ))
}

/// Says something to whoever runs this.
pub(crate) fn say(words: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{words}")?)
}

/// For a person at a terminal; a pipe sees nothing of it.
fn bar(what: &'static str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length).with_message(what);
    let template = "{msg:>24} {wide_bar} {pos}/{len} {per_sec} {eta:>4}";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar, // the plain one does too
    }
}

fn show(bar: &ProgressBar, lot: &[Item]) {
    if let Some(item) = lot.last() {
        bar.set_message(item.kind().name());
    }
    // How many there are was an estimate.
    let position = bar.position() + lot.len() as u64;
    if bar.length().is_some_and(|length| length < position) {
        bar.set_length(position);
    }
    bar.set_position(position);
}
