//! One file of the commit log: a header, entries, and then whatever was in the file before.
//!
//! ```text
//! header   "nexo log" (8), number of the segment (8), secret (16), checksum (4)
//! entry    "entr" (4), length (4), number (8), synced (8), checksum (8), that many bytes
//! ```
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

use memchr::memmem;

use super::snapshot::LogEntryAt;

const MAGIC: [u8; 8] = *b"nexo log";
const SEGMENT_HEADER_BYTES: usize = 36;
const ENTRY_MAGIC: [u8; 4] = *b"entr";
/// Bytes of an entry before its payload.
pub(crate) const ENTRY_HEADER_BYTES: usize = 32;

type Secret = [u8; 16];

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
    ) -> io::Result<Self> {
        let draft = folder.join("next");
        Self::create_as(&draft, folder, number, length, old).inspect_err(|_| {
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
                write_zeros(&file, length)?;
                file
            }
        };
        // Must be unpredictable for the senders of messages, and no more than that.
        let secret = [(); 2].map(|()| RandomState::new().hash_one(number).to_be_bytes());
        let secret: Secret = std::array::from_fn(|i| secret[i / 8][i % 8]);
        file.write_all_at(&header(number, &secret), 0)?;
        file.sync_all()?;
        fs::rename(draft, path)?;
        File::open(folder)?.sync_all()?;
        Ok(Self { file, number, secret, at: SEGMENT_HEADER_BYTES as u64, length })
    }

    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.at + bytes as u64 <= self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == SEGMENT_HEADER_BYTES as u64
    }

    /// Completes an entry, whose payload begins after [`ENTRY_HEADER_BYTES`], and writes it.
    pub(crate) fn append(&mut self, entry: &mut [u8], number: u64, synced: u64) -> io::Result<()> {
        let length = u32::try_from(entry.len() - ENTRY_HEADER_BYTES).map_err(io::Error::other)?;
        entry[..4].copy_from_slice(&ENTRY_MAGIC);
        entry[4..8].copy_from_slice(&length.to_be_bytes());
        entry[8..16].copy_from_slice(&number.to_be_bytes());
        entry[16..24].copy_from_slice(&synced.to_be_bytes());
        let checksum = checksum(&self.secret, &entry[4..24], &entry[ENTRY_HEADER_BYTES..]);
        entry[24..ENTRY_HEADER_BYTES].copy_from_slice(&checksum);
        self.file.write_all_at(entry, self.at)?;
        self.at += entry.len() as u64;
        Ok(())
    }

    /// Makes what was written durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
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
    /// The number and the bytes of each entry up to the first that is not intact.
    entries: Vec<(u64, Range<usize>)>,
    /// Up to which entry the log was durable, as intact entries after that one say.
    pub(crate) synced_beyond: u64,
}

impl ScannedSegment {
    /// Reads the entries of a segment up to the first that is not intact. Entries up to `known` are
    /// in earlier segments.
    pub(crate) fn read(path: &Path, number: u64, known: u64) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        let mut found = Self { bytes, entries: Vec::new(), synced_beyond: 0 };
        let Some(secret) = secret(&found.bytes, number) else { return Ok(found) };
        let mut at = SEGMENT_HEADER_BYTES;
        while let Some(entry) = entry(&found.bytes, at, &secret) {
            if found.entries.last().is_some_and(|(last, _)| last + 1 != entry.number) {
                break;
            }
            at = entry.payload.end;
            found.entries.push((entry.number, entry.payload));
        }
        let last = found.entries.last().map_or(known, |(last, _)| *last);
        found.synced_beyond = synced_beyond(&found.bytes, at, &secret, last);
        Ok(found)
    }

    /// Returns the entries with their numbers, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.entries.iter().map(|(number, range)| (*number, &self.bytes[range.clone()]))
    }
}

impl ScannedSegment {
    /// Returns each entry with where it ends in the file.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (LogEntryAt, u64)> {
        let at = |number| LogEntryAt { number, at_ms: None };
        self.entries.iter().map(move |(number, range)| (at(*number), range.end as u64))
    }
}

struct LogEntry {
    number: u64,
    synced: u64,
    payload: Range<usize>,
}

/// Returns the secret in a segment's header, if the header is intact.
fn secret(bytes: &[u8], number: u64) -> Option<Secret> {
    let secret = *bytes.get(16..)?.first_chunk()?;
    bytes.starts_with(&header(number, &secret)).then_some(secret)
}

/// Returns the entry at an offset, if it is intact.
fn entry(bytes: &[u8], at: usize, secret: &Secret) -> Option<LogEntry> {
    let head: &[u8; ENTRY_HEADER_BYTES] = bytes.get(at..)?.first_chunk()?;
    let number = |from: usize| head[from..].first_chunk().copied().map(u64::from_be_bytes);
    let length = u32::from_be_bytes(*head[4..].first_chunk()?) as usize;
    let start = at + ENTRY_HEADER_BYTES;
    let payload = start..start.checked_add(length)?;
    let is_whole = head[..4] == ENTRY_MAGIC
        && head[24..] == checksum(secret, &head[4..24], bytes.get(payload.clone())?);
    is_whole.then_some(LogEntry { number: number(8)?, synced: number(16)?, payload })
}

/// Searches the rest of a segment for intact entries. A torn entry may be followed by intact ones,
/// but not by one that says that the torn one was synced.
fn synced_beyond(bytes: &[u8], mut at: usize, secret: &Secret, last: u64) -> u64 {
    let (mut synced, mut patience) = (0, bytes.len());
    while let Some(found) = memmem::find(&bytes[at..], &ENTRY_MAGIC) {
        at += found;
        let Some(head) = bytes[at..].first_chunk::<ENTRY_HEADER_BYTES>() else { break };
        let number = head[8..].first_chunk().map_or(0, |it| u64::from_be_bytes(*it));
        let length = head[4..].first_chunk().map_or(0, |it| u32::from_be_bytes(*it) as usize);
        // Old entries of a reused file have lower numbers, and no segment has so many entries. All
        // other lookalikes together may not cost more than one pass over the file.
        let is_near = number > last && number - last <= bytes.len() as u64;
        if is_near && length <= patience {
            patience -= length;
            synced = synced.max(entry(bytes, at, secret).map_or(0, |entry| entry.synced));
        }
        at += 1;
    }
    synced
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:010}.log"))
}

fn header(number: u64, secret: &Secret) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
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

fn write_zeros(file: &File, length: u64) -> io::Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let mut at = 0;
    while at < length {
        let count = usize::try_from(length - at).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all_at(&ZEROS[..count], at)?;
        at += count as u64;
    }
    Ok(())
}
