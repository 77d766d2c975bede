//! Copies the log continuously, so that a restore can go on from a backup to any later moment.

use std::collections::BTreeMap;

use nexo_store::Embedded;
use nexo_store::embedded::{LogPin, LogSegment};
use object_store::path::Path as ObjectPath;

use crate::error::BackupError;
use crate::objects::{self, Source};
use crate::repository::{LOG, Repository};
use crate::transfer::Transfer;

/// The archived log of one data folder.
pub struct LogArchive {
    repository: Repository,
    history: String,
    /// The archived objects by segment.
    archived: BTreeMap<u64, ArchivedSegment>,
    /// Keeps what is not archived yet.
    pin: Option<LogPin>,
}

/// A segment in the archive, cut after its newest durable entry at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArchivedSegment {
    pub(crate) segment: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) blake3: String,
    pub(crate) bytes: u64,
}

impl ArchivedSegment {
    pub(crate) fn path(&self, history: &str) -> ObjectPath {
        let Self { segment, first, last, blake3, .. } = self;
        ObjectPath::from(format!("{LOG}/{history}/{segment:010}-{first}-{last}-{blake3}"))
    }

    fn parse(name: &str, bytes: u64) -> Option<Self> {
        let mut parts = name.split('-');
        let mut number = || parts.next()?.parse().ok();
        let (segment, first, last) = (number()?, number()?, number()?);
        Some(Self { segment, first, last, blake3: parts.next()?.to_owned(), bytes })
    }
}

/// Lists the archived log of one data folder.
pub(crate) async fn archived(
    repository: &Repository,
    history: &str,
) -> Result<Vec<ArchivedSegment>, BackupError> {
    let listed = repository.list(&format!("{LOG}/{history}")).await?;
    let parse = |meta: object_store::ObjectMeta| {
        ArchivedSegment::parse(meta.location.filename()?, meta.size)
    };
    Ok(listed.into_iter().filter_map(parse).collect())
}

impl LogArchive {
    /// Goes on after what is archived.
    pub async fn open(repository: Repository, history: String) -> Result<Self, BackupError> {
        let mut archived_by_segment = BTreeMap::new();
        for segment in archived(&repository, &history).await? {
            let known: &mut ArchivedSegment =
                archived_by_segment.entry(segment.segment).or_insert_with(|| segment.clone());
            if known.last < segment.last {
                *known = segment;
            }
        }
        Ok(Self { repository, history, archived: archived_by_segment, pin: None })
    }

    /// Keeps this part of the log until it is archived; `None` lets go of it.
    pub fn keep(&mut self, pin: Option<LogPin>) {
        self.pin = pin;
    }

    /// Copies what was written since the last time. Returns whether entries are missing between
    /// what was archived and what the store still has: a backup closes that gap.
    pub async fn run(
        &mut self,
        store: &Embedded,
        transfer: &Transfer,
    ) -> Result<bool, BackupError> {
        let newest = self.archived.values().map(|it| it.last).max();
        let segment = self.archived.keys().next_back().copied();
        let log = store.log_after(newest.unwrap_or(0), segment.unwrap_or(0))?;
        let begins = log.segments.first().map_or(0, |segment| segment.first.number);
        let has_gap = newest.map_or(begins > 1, |newest| begins > newest + 1);
        for segment in &log.segments {
            self.archive(segment, transfer).await?;
        }
        self.pin = log.into_end_pin();
        Ok(has_gap)
    }

    async fn archive(
        &mut self,
        segment: &LogSegment,
        transfer: &Transfer,
    ) -> Result<(), BackupError> {
        let source = Source::File { path: segment.path.clone(), bytes: segment.bytes };
        let archived = ArchivedSegment {
            segment: segment.number,
            first: segment.first.number,
            last: segment.last.number,
            blake3: source.hash(transfer).await?.0,
            bytes: segment.bytes,
        };
        let path = archived.path(&self.history);
        objects::write(&self.repository, &path, &source, &archived.blake3, transfer).await?;
        // The shorter copy of the same segment is contained in this one.
        if let Some(shorter) = self.archived.insert(segment.number, archived) {
            self.repository.delete(&shorter.path(&self.history)).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_archived_segment_says_what_it_has() {
        let segment = ArchivedSegment {
            segment: 7,
            first: 120,
            last: 180,
            blake3: "abcd".to_owned(),
            bytes: 9,
        };
        let path = segment.path("f00d");
        assert_eq!(path.as_ref(), "log/f00d/0000000007-120-180-abcd");
        assert_eq!(ArchivedSegment::parse(path.filename().unwrap(), 9), Some(segment));
        assert_eq!(ArchivedSegment::parse("something-else", 9), None);
    }
}
