//! From one store to another.

use tokio::sync::mpsc::Receiver;

use super::{ArchiveError, Export, Import, Item, Lot, Lots, Tally};

/// Copies everything into an empty store, and returns what was given. `seen` hears of every lot.
pub async fn copy(
    from: &dyn Export,
    to: &dyn Import,
    seen: &mut (dyn FnMut(&[Item]) + Send),
) -> Result<Tally, ArchiveError> {
    let (lots, taken) = Lots::channel();
    let (exported, filled) = tokio::join!(from.export(lots), fill(to, taken, seen));
    // If nobody took the lots, their giver only tells of that.
    let tally = filled?;
    exported?;
    Ok(tally)
}

async fn fill(
    to: &dyn Import,
    mut lots: Receiver<Lot>,
    seen: &mut (dyn FnMut(&[Item]) + Send),
) -> Result<Tally, ArchiveError> {
    let mut tally = Tally::default();
    let mut under_way = None;
    while let Some(lot) = lots.recv().await {
        tally.add(&lot)?;
        seen(&lot);
        // The next one is made ready while the last one is on its way to the disk.
        if let Some(before) = under_way.replace(to.import(lot)) {
            before.await?;
        }
    }
    if let Some(last) = under_way {
        last.await?;
    }
    tally.end();
    Ok(tally)
}

/// Reads everything, and returns what is there. `seen` hears of every lot.
pub async fn survey(
    of: &dyn Export,
    seen: &mut (dyn FnMut(&[Item]) + Send),
) -> Result<Tally, ArchiveError> {
    let (lots, taken) = Lots::channel();
    let (exported, tally) = tokio::join!(of.export(lots), read(taken, seen));
    let tally = tally?;
    exported?;
    Ok(tally)
}

async fn read(
    mut lots: Receiver<Lot>,
    seen: &mut (dyn FnMut(&[Item]) + Send),
) -> Result<Tally, ArchiveError> {
    let mut tally = Tally::default();
    while let Some(lot) = lots.recv().await {
        tally.add(&lot)?;
        seen(&lot);
    }
    tally.end();
    Ok(tally)
}
