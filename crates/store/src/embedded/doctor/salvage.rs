//! Copies everything that is readable into a new folder, and lists what is missing.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::{Fingerprint, Message, Window};
use nexo_chat::progress::Progress;
use serde::Serialize;

use super::density::{self, LostRanges, place_of};
use super::report::Report;
use super::snapshot::Snapshot;
use crate::archive::{ArchiveError, Import, Item, ItemBatch};
use crate::embedded::export::{self, EXPORTED};
use crate::embedded::keys::{self, Keyspace};
use crate::embedded::options::Options;
use crate::embedded::record::{self, CursorRecord, SettingsRecord};
use crate::embedded::{Embedded, messages};

/// Items written at a time.
const BATCH_ITEMS: usize = 1024;

/// The file in the new folder that lists what is missing.
const LOST_FILE: &str = "SALVAGED.json";

/// What was copied, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SalvageReport {
    /// What was wrong with the old folder.
    pub problems: Report,
    /// Items that were copied, by kind.
    pub copied: Vec<(&'static str, u64)>,
    /// Records that could not be read, by kind; of messages and changes see the ranges.
    pub unreadable: Vec<(&'static str, u64)>,
    pub lost_messages: Vec<LostSeqs>,
    pub lost_changes: Vec<LostSeqs>,
    /// Places in private conversations that were derived, because both people are members from the first
    /// message to the last. Where cursors were lost too, messages count as unread again.
    pub restored_places: u64,
    /// Batches at the end of the log are missing, with whatever was in them.
    pub is_log_short: bool,
}

/// A range of seqs of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostSeqs {
    pub conversation: String,
    pub from: u64,
    pub to: u64,
}

/// Copies what is readable in `path` into the new folder `to`. The old folder is not changed.
pub async fn salvage(
    path: &Path,
    to: &Path,
    options: &Options,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<SalvageReport, ArchiveError> {
    let mut snapshot = Snapshot::open(path, progress)?;
    let target = Embedded::open_to_fill(to, options)?;
    let mut report = SalvageReport {
        problems: std::mem::take(&mut snapshot.report),
        is_log_short: snapshot.is_log_short,
        ..SalvageReport::default()
    };
    let snapshot = Arc::new(snapshot);
    for keyspace in EXPORTED {
        progress(keyspace.name());
        let reader = Arc::clone(&snapshot);
        let (sender, mut batches) = tokio::sync::mpsc::channel(4);
        let reading = tokio::task::spawn_blocking(move || send_items(&reader, keyspace, &sender));
        let mut copied = 0;
        while let Some(batch) = batches.recv().await {
            copied += batch.len() as u64;
            target.import(batch).await?;
        }
        let unreadable =
            reading.await.map_err(|_| ArchiveError::Damaged("a read panicked".into()))?;
        if copied > 0 {
            report.copied.push((keyspace.name(), copied));
        }
        if unreadable > 0 {
            report.unreadable.push((keyspace.name(), unreadable));
        }
    }
    progress("what is missing");
    let heads = density::known_heads(&snapshot);
    let places = lost_places(&snapshot, heads.keys());
    report.restored_places = places.len() as u64;
    target.import(places).await?;
    let messages = density::lost(&snapshot, Keyspace::Messages, &heads);
    let changes = density::lost(&snapshot, Keyspace::Changes, &HashMap::new());
    mark_lost(&target, Keyspace::Messages, &messages).await?;
    mark_lost(&target, Keyspace::Changes, &changes).await?;
    report.lost_messages = listed(&messages);
    report.lost_changes = listed(&changes);
    target.import(Vec::new()).await?;
    write_report(to, &report)?;
    target.finish().await?;
    nexo_chat::store::Store::close(&*target).await?;
    Ok(report)
}

/// Sends all readable items of a keyspace; returns how many records could not be read.
fn send_items(
    snapshot: &Snapshot,
    keyspace: Keyspace,
    sender: &tokio::sync::mpsc::Sender<ItemBatch>,
) -> u64 {
    let mut batch = ItemBatch::new();
    let mut unreadable = 0;
    snapshot.for_each(keyspace, &mut |key, value| {
        match item(snapshot, keyspace, key, value) {
            Some(item) => batch.push(item),
            None => unreadable += 1,
        }
        if batch.len() >= BATCH_ITEMS {
            drop(sender.blocking_send(std::mem::take(&mut batch))); // a receiver that is gone failed itself
        }
    });
    drop(sender.blocking_send(batch));
    unreadable
}

/// Decodes a record. A message whose entry in the index of ids is lost is kept: the entry is derived from it.
fn item(snapshot: &Snapshot, keyspace: Keyspace, key: &[u8], value: &[u8]) -> Option<Item> {
    if let Ok(item) = export::item(&snapshot.core, keyspace, key, value) {
        return Some(item);
    }
    if keyspace != Keyspace::Messages {
        return None;
    }
    let (conversation, _) = place_of(key)?;
    let message = messages::decode(&conversation, key, value).ok()?;
    let fingerprint = derived_fingerprint(&message);
    Some(Item::Message { message: Box::new(message), fingerprint })
}

/// The places in private conversations that cannot be read: both people are members, and see everything.
fn lost_places<'a>(
    snapshot: &Snapshot,
    conversations: impl Iterator<Item = &'a ConversationId>,
) -> ItemBatch {
    let engine = &snapshot.core.engine;
    let mut places = ItemBatch::new();
    for conversation in conversations {
        let Some((a, b)) = conversation.pair() else { continue };
        for user in [a, b] {
            let key = keys::member(&user, conversation);
            if export::item(&snapshot.core, Keyspace::Members, &key, &[]).is_ok() {
                continue;
            }
            let cursors = engine.get(Keyspace::Cursors, &key).ok().flatten();
            let progress = cursors.and_then(|value| {
                record::decode::<CursorRecord>(Keyspace::Cursors, &key, &value).ok()
            });
            let settings = engine.get(Keyspace::Settings, &key).ok().flatten();
            let settings = settings.and_then(|value| {
                let record = record::decode::<SettingsRecord<'_>>(Keyspace::Settings, &key, &value);
                record.ok()?.settings().ok()
            });
            places.push(Item::Member {
                user,
                conversation: conversation.clone(),
                window: Window::ALL,
                progress: progress.map(Progress::from).unwrap_or_default(),
                settings: settings.unwrap_or_default(),
            });
        }
    }
    places
}

/// The fingerprint of a message whose own is lost. Of a recalled one the content is gone: then no content
/// matches, so that a retry conflicts instead of being stored again.
pub(crate) fn derived_fingerprint(message: &Message) -> Fingerprint {
    match message.recalled {
        None => message.content.fingerprint(&message.conversation),
        Some(_) => Fingerprint([0; 16]),
    }
}

/// Records which seqs are missing, so that they answer as damaged and are not given again.
async fn mark_lost(
    target: &Embedded,
    keyspace: Keyspace,
    lost: &LostRanges,
) -> Result<(), ArchiveError> {
    let lost = lost.clone();
    target
        .submit(0, move |pending| {
            for (conversation, range) in
                lost.iter().flat_map(|(id, all)| all.iter().map(move |it| (id, it)))
            {
                let key = keys::lost(keyspace, conversation, *range.start());
                pending.write(Keyspace::Lost, &key, &range.end().0)?;
            }
            Ok(())
        })
        .await?;
    Ok(())
}

fn listed(lost: &LostRanges) -> Vec<LostSeqs> {
    let ranges = lost.iter().flat_map(|(id, all)| all.iter().map(move |range| (id, range)));
    let seqs = |(id, range): (&ConversationId, &std::ops::RangeInclusive<Seq>)| LostSeqs {
        conversation: id.to_string(),
        from: range.start().0,
        to: range.end().0,
    };
    ranges.map(seqs).collect()
}

fn write_report(to: &Path, report: &SalvageReport) -> Result<(), ArchiveError> {
    let write = || {
        let text = serde_json::to_vec_pretty(report)?;
        let mut file = std::fs::File::create(to.join(LOST_FILE))?;
        file.write_all(&text)?;
        file.sync_all()
    };
    let failed = |source| crate::embedded::OpenError::Io { path: to.to_owned(), source };
    Ok(write().map_err(failed)?)
}
