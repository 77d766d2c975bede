//! One file of the commit log: a header, entries, and then whatever was in the file before.
//!
//! ```text
//! header   "nexo lg3" (8), number of the segment (8), secret (16), checksum (4)
//! entry    "entr" (4), length (4), number (8), synced (8), time (8), checksum (8), that many bytes
//! ```
//!
//! Up to format 2 the header began with "nexo log", and entries had no time. `time` is the wall
//! clock's, in milliseconds: a restore to a point in time reads it, and nothing else does.
//!
//! The file has its full length before its first entry, so that a sync has no metadata to write. It
//! may be a reused segment, and it contains message bodies as clients sent them: every checksum is
//! keyed with the segment's secret, so neither an old entry nor a body that imitates one is ever
//! taken for an entry. `synced` says up to which entry the log was durable when this one was
//! written.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use memchr::memmem;
use nexo_chat::ids::Millis;

use super::fail_points::{self, FailPoint, SyncPoint, reach};
use super::pace::{Pace, begin_writing};
use super::snapshot::LogEntryAt;

const MAGIC: [u8; 8] = *b"nexo lg3";
const MAGIC_WITHOUT_TIME: [u8; 8] = *b"nexo log";
const SEGMENT_HEADER_BYTES: usize = 36;
const ENTRY_MAGIC: [u8; 4] = *b"entr";
/// Bytes of an entry before its payload.
pub(crate) const ENTRY_HEADER_BYTES: usize = 40;

type Secret = [u8; 16];

/// Where the checksum of an entry that has a time begins.
const CHECKSUM_AT: usize = ENTRY_HEADER_BYTES - 8;

/// What the header of a segment says about its entries.
struct SegmentLayout {
    secret: Secret,
    has_times: bool,
}

impl SegmentLayout {
    /// Reads an intact header.
    fn read(bytes: &[u8], number: u64) -> Option<Self> {
        let secret = *bytes.get(16..)?.first_chunk()?;
        let is = |magic| bytes.starts_with(&header(magic, number, &secret));
        let has_times = is(MAGIC);
        (has_times || is(MAGIC_WITHOUT_TIME)).then_some(Self { secret, has_times })
    }

    fn entry_header_bytes(&self) -> usize {
        if self.has_times { ENTRY_HEADER_BYTES } else { ENTRY_HEADER_BYTES - 8 }
    }
}

/// A segment that can be written to.
pub(crate) struct Segment {
    file: File,
    pub(crate) number: u64,
    secret: Secret,
    at: u64,
    length: u64,
}

impl Segment {
    /// Creates a segment, durable and empty, from a retired one if there is one of the right
    /// length. If that fails, it deletes the file: the disk may be full.
    pub(crate) fn create(
        folder: &Path,
        number: u64,
        length: u64,
        old: Option<PathBuf>,
        pace: &Pace,
    ) -> io::Result<Self> {
        let draft = folder.join("next");
        Self::create_as(&draft, folder, number, length, old, pace).inspect_err(|_| {
            if let Err(error) = fs::remove_file(&draft) {
                tracing::debug!(target: "nexo::store", %error, "no draft of a segment is left");
            }
        })
    }

    fn create_as(
        draft: &Path,
        folder: &Path,
        number: u64,
        length: u64,
        old: Option<PathBuf>,
        pace: &Pace,
    ) -> io::Result<Self> {
        let path = path(folder, number);
        let file = match old {
            Some(old) if fs::metadata(&old)?.len() == length => {
                fs::rename(old, draft)?;
                File::options().write(true).open(draft)?
            }
            old => {
                old.map_or(Ok(()), fs::remove_file)?;
                let file = File::create(draft)?;
                write_zeros(&file, length, pace)?;
                reach(FailPoint::SegmentZeroed);
                file
            }
        };
        // Must be unpredictable for the senders of messages, and no more than that.
        let secret = [(); 2].map(|()| RandomState::new().hash_one(number).to_be_bytes());
        let secret: Secret = std::array::from_fn(|i| secret[i / 8][i % 8]);
        file.write_all_at(&header(MAGIC, number, &secret), 0)?;
        file.sync_all()?;
        reach(FailPoint::SegmentSynced);
        fs::rename(draft, path)?;
        reach(FailPoint::SegmentNamed);
        fail_points::sync(SyncPoint::SegmentName, || File::open(folder)?.sync_all())?;
        Ok(Self { file, number, secret, at: SEGMENT_HEADER_BYTES as u64, length })
    }

    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.at + bytes as u64 <= self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == SEGMENT_HEADER_BYTES as u64
    }

    /// Completes an entry, whose payload begins after [`ENTRY_HEADER_BYTES`], and writes it.
    pub(crate) fn append(
        &mut self,
        entry: &mut [u8],
        number: u64,
        synced: u64,
        time: Millis,
    ) -> io::Result<()> {
        let length = u32::try_from(entry.len() - ENTRY_HEADER_BYTES).map_err(io::Error::other)?;
        entry[..4].copy_from_slice(&ENTRY_MAGIC);
        entry[4..8].copy_from_slice(&length.to_be_bytes());
        entry[8..16].copy_from_slice(&number.to_be_bytes());
        entry[16..24].copy_from_slice(&synced.to_be_bytes());
        entry[24..CHECKSUM_AT].copy_from_slice(&time.0.to_be_bytes());
        let checksum = checksum(&self.secret, &entry[4..CHECKSUM_AT], &entry[ENTRY_HEADER_BYTES..]);
        entry[CHECKSUM_AT..ENTRY_HEADER_BYTES].copy_from_slice(&checksum);
        self.file.write_all_at(entry, self.at)?;
        self.at += entry.len() as u64;
        Ok(())
    }

    /// Makes what was written durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        fail_points::sync(SyncPoint::Log, || self.file.sync_data())
    }
}

/// Returns all segments of a folder, by number.
pub(crate) fn list(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        if let (Some(number), Some("log")) = (number, path.extension().and_then(|it| it.to_str())) {
            segments.push((number, path));
        }
    }
    segments.sort();
    Ok(segments)
}

/// A segment as it was read at open.
pub(crate) struct ScannedSegment {
    bytes: Vec<u8>,
    /// The entries up to the first that is not intact.
    entries: Vec<FoundEntry>,
    /// Up to which entry the log was durable, as intact entries after that one say.
    pub(crate) synced_beyond: u64,
}

impl ScannedSegment {
    /// Reads the entries of a segment up to the first that is not intact. Entries up to `known` are
    /// in earlier segments.
    pub(crate) fn read(path: &Path, number: u64, known: u64) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        let mut found = Self { bytes, entries: Vec::new(), synced_beyond: 0 };
        let Some(layout) = SegmentLayout::read(&found.bytes, number) else { return Ok(found) };
        let mut at = SEGMENT_HEADER_BYTES;
        while let Some(entry) = entry(&found.bytes, at, &layout) {
            if found.entries.last().is_some_and(|last| last.number + 1 != entry.number) {
                break;
            }
            at = entry.payload.end;
            found.entries.push(entry);
        }
        let last = found.entries.last().map_or(known, |last| last.number);
        found.synced_beyond = synced_beyond(&found.bytes, at, &layout, last);
        Ok(found)
    }

    /// Returns the entries, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = LogEntry<'_>> {
        self.entries.iter().map(|entry| LogEntry {
            number: entry.number,
            time: entry.time,
            payload: &self.bytes[entry.payload.clone()],
        })
    }

    /// Returns each entry with where it ends in the file.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (LogEntryAt, u64)> {
        self.entries.iter().map(|entry| {
            let at_ms = (entry.time.0 > 0).then_some(entry.time.0);
            (LogEntryAt { number: entry.number, at_ms }, entry.payload.end as u64)
        })
    }
}

/// An intact entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogEntry<'a> {
    pub(crate) number: u64,
    /// When it was written; zero if it does not say.
    pub(crate) time: Millis,
    pub(crate) payload: &'a [u8],
}

/// An entry in the bytes of its segment.
struct FoundEntry {
    number: u64,
    synced: u64,
    time: Millis,
    payload: Range<usize>,
}

/// Returns the entry at an offset, if it is intact.
fn entry(bytes: &[u8], at: usize, layout: &SegmentLayout) -> Option<FoundEntry> {
    let start = at.checked_add(layout.entry_header_bytes())?;
    let head = bytes.get(at..start)?;
    let number = |from: usize| head[from..].first_chunk().copied().map(u64::from_be_bytes);
    let length = u32::from_be_bytes(*head[4..].first_chunk()?) as usize;
    let payload = start..start.checked_add(length)?;
    let (head, stored) = head.split_at(head.len() - 8);
    let is_whole = head[..4] == ENTRY_MAGIC
        && stored == checksum(&layout.secret, &head[4..], bytes.get(payload.clone())?);
    let time = Millis(if layout.has_times { number(24)? } else { 0 });
    is_whole.then_some(FoundEntry { number: number(8)?, synced: number(16)?, time, payload })
}

/// Searches the rest of a segment for intact entries. A torn entry may be followed by intact ones,
/// but not by one that says that the torn one was synced.
fn synced_beyond(bytes: &[u8], mut at: usize, layout: &SegmentLayout, last: u64) -> u64 {
    let (mut synced, mut patience) = (0, bytes.len());
    while let Some(found) = memmem::find(&bytes[at..], &ENTRY_MAGIC) {
        at += found;
        let Some(head) = bytes.get(at..at + layout.entry_header_bytes()) else { break };
        let number = head[8..].first_chunk().map_or(0, |it| u64::from_be_bytes(*it));
        let length = head[4..].first_chunk().map_or(0, |it| u32::from_be_bytes(*it) as usize);
        // Old entries of a reused file have lower numbers, and no segment has so many entries. All
        // other lookalikes together may not cost more than one pass over the file.
        let is_near = number > last && number - last <= bytes.len() as u64;
        if is_near && length <= patience {
            patience -= length;
            synced = synced.max(entry(bytes, at, layout).map_or(0, |entry| entry.synced));
        }
        at += 1;
    }
    synced
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:010}.log"))
}

fn header(magic: [u8; 8], number: u64, secret: &Secret) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    bytes[..8].copy_from_slice(&magic);
    bytes[8..16].copy_from_slice(&number.to_be_bytes());
    bytes[16..32].copy_from_slice(secret);
    let checksum = crc32fast::hash(&bytes[..32]);
    bytes[32..].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn checksum(secret: &Secret, head: &[u8], payload: &[u8]) -> [u8; 8] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(secret);
    let mut hasher = blake3::Hasher::new_keyed(&key);
    hasher.update(head);
    hasher.update(payload);
    let mut checksum = [0; 8];
    checksum.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    checksum
}

/// Writes zeros in small steps, so that a sync of the current segment never waits for many of them.
fn write_zeros(file: &File, length: u64, pace: &Pace) -> io::Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let (mut at, mut begun) = (0, 0);
    while at < length {
        let since = Instant::now();
        let count = usize::try_from(length - at).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all_at(&ZEROS[..count], at)?;
        at += count as u64;
        begin_writing(file, &mut begun)?;
        pace.rest(since);
    }
    Ok(())
}
