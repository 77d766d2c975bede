//! Copies one store into another.

use tokio::sync::mpsc::Receiver;

use super::{ArchiveError, Export, Import, Item, ItemBatch, ItemSender, Tally};

/// Copies everything into an empty store, and returns the tally of what was copied. `seen` is
/// called with every batch.
pub async fn copy(
    from: &dyn Export,
    to: &dyn Import,
    seen: &mut (dyn FnMut(&[Item]) + Send),
) -> Result<Tally, ArchiveError> {
    let (items, taken) = ItemSender::channel();
    let (exported, filled) = tokio::join!(from.export(items), fill(to, taken, seen));
    // If the receiver failed, the exporter only reports that it is gone: the receiver's error comes
    // first.
    let tally = filled?;
    exported?;
    Ok(tally)
}

async fn fill(
    to: &dyn Import,
    mut items: Receiver<ItemBatch>,
    seen: &mut (dyn FnMut(&[Item]) + Send),
) -> Result<Tally, ArchiveError> {
    let mut tally = Tally::default();
    let mut under_way = None;
    while let Some(batch) = items.recv().await {
        tally.add(&batch)?;
        seen(&batch);
        // The next batch is prepared while the last one is being written.
        if let Some(before) = under_way.replace(to.import(batch)) {
            before.await?;
        }
    }
    if let Some(last) = under_way {
        last.await?;
    }
    tally.finish();
    Ok(tally)
}

/// Reads everything, and returns its tally. `seen` is called with every batch.
pub async fn survey(
    of: &dyn Export,
    seen: &mut (dyn FnMut(&[Item]) + Send),
) -> Result<Tally, ArchiveError> {
    let (items, taken) = ItemSender::channel();
    let (exported, tally) = tokio::join!(of.export(items), read(taken, seen));
    let tally = tally?;
    exported?;
    Ok(tally)
}

async fn read(
    mut items: Receiver<ItemBatch>,
    seen: &mut (dyn FnMut(&[Item]) + Send),
) -> Result<Tally, ArchiveError> {
    let mut tally = Tally::default();
    while let Some(batch) = items.recv().await {
        tally.add(&batch)?;
        seen(&batch);
    }
    tally.finish();
    Ok(tally)
}
