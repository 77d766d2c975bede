//! One file of the commit log: a header, entries, and then whatever was there before.
//!
//! ```text
//! header   "nexo log" (8), number of the segment (8), checksum (4)
//! entry    "entr" (4), length (4), number (8), synced (8), checksum (4), that many bytes
//! ```
//!
//! The file is as long as it will get before its first entry, so that a sync has no length to
//! write. It may have been another segment before: the number of the segment is part of every
//! checksum, so an old entry is never taken for a new one. `synced` says up to which entry the log
//! was durable when this one was written.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memchr::memmem;

const MAGIC: [u8; 8] = *b"nexo log";
const HEADER: usize = 20;
const MARK: [u8; 4] = *b"entr";
/// Bytes of an entry before its payload.
pub(crate) const ENTRY: usize = 28;

/// A segment that can be written to.
pub(crate) struct Segment {
    file: File,
    pub(crate) number: u64,
    at: u64,
    length: u64,
}

impl Segment {
    /// Makes a segment, durable and empty, from an old one if there is one of the right length.
    pub(crate) fn create(
        folder: &Path,
        number: u64,
        length: u64,
        old: Option<PathBuf>,
    ) -> io::Result<Self> {
        let path = path(folder, number);
        let draft = folder.join("next");
        let file = match old {
            Some(old) if fs::metadata(&old)?.len() == length => {
                fs::rename(old, &draft)?;
                File::options().write(true).open(&draft)?
            }
            old => {
                old.map_or(Ok(()), fs::remove_file)?;
                let file = File::create(&draft)?;
                write_zeros(&file, length)?;
                file
            }
        };
        file.write_all_at(&header(number), 0)?;
        file.sync_all()?;
        fs::rename(draft, path)?;
        File::open(folder)?.sync_all()?;
        Ok(Self { file, number, at: HEADER as u64, length })
    }

    /// Whether so many bytes fit in.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.at + bytes as u64 <= self.length
    }

    /// Whether nothing was written to it.
    pub(crate) fn is_empty(&self) -> bool {
        self.at == HEADER as u64
    }

    /// Writes an entry that [`seal`] has completed.
    pub(crate) fn append(&mut self, entry: &[u8]) -> io::Result<()> {
        self.file.write_all_at(entry, self.at)?;
        self.at += entry.len() as u64;
        Ok(())
    }

    /// Makes what was written durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Completes an entry whose payload begins after [`ENTRY`] bytes.
pub(crate) fn seal(entry: &mut [u8], segment: u64, number: u64, synced: u64) -> io::Result<()> {
    let length = u32::try_from(entry.len() - ENTRY).map_err(io::Error::other)?;
    entry[..4].copy_from_slice(&MARK);
    entry[4..8].copy_from_slice(&length.to_be_bytes());
    entry[8..16].copy_from_slice(&number.to_be_bytes());
    entry[16..24].copy_from_slice(&synced.to_be_bytes());
    let checksum = checksum(segment, &entry[4..24], &entry[ENTRY..]);
    entry[24..ENTRY].copy_from_slice(&checksum.to_be_bytes());
    Ok(())
}

/// All segments of a folder, by number.
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

/// A segment as it was found.
pub(crate) struct Found {
    bytes: Vec<u8>,
    /// Number and place of each entry up to the first that is not whole.
    entries: Vec<(u64, Range<usize>)>,
    /// Up to which entry the log was durable, as whole entries after that place say.
    pub(crate) synced_beyond: u64,
}

impl Found {
    /// Reads a segment as far as it makes sense.
    pub(crate) fn read(path: &Path, number: u64) -> io::Result<Self> {
        let bytes = fs::read(path)?;
        let mut entries: Vec<(u64, Range<usize>)> = Vec::new();
        let mut at = HEADER;
        if bytes.get(..HEADER) == Some(&header(number)[..]) {
            while let Some(entry) = entry(&bytes, at, number) {
                if entries.last().is_some_and(|(last, _)| last + 1 != entry.number) {
                    break;
                }
                at = entry.payload.end;
                entries.push((entry.number, entry.payload));
            }
        }
        let expected = entries.last().map_or(0, |(last, _)| last + 1);
        let synced_beyond = synced_beyond(&bytes, at.min(bytes.len()), number, expected);
        Ok(Self { bytes, entries, synced_beyond })
    }

    /// The entries with their numbers, oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.entries.iter().map(|(number, place)| (*number, &self.bytes[place.clone()]))
    }
}

struct Entry {
    number: u64,
    synced: u64,
    payload: Range<usize>,
}

/// The whole entry at a place, if there is one.
fn entry(bytes: &[u8], at: usize, segment: u64) -> Option<Entry> {
    let head: &[u8; ENTRY] = bytes.get(at..)?.first_chunk()?;
    let number = |from: usize| head[from..].first_chunk().copied().map(u64::from_be_bytes);
    let length = u32::from_be_bytes(*head[4..].first_chunk()?) as usize;
    let start = at + ENTRY;
    let payload = start..start.checked_add(length)?;
    let is_whole = head[..4] == MARK
        && head[24..] == checksum(segment, &head[4..24], bytes.get(payload.clone())?).to_be_bytes();
    is_whole.then_some(Entry { number: number(8)?, synced: number(16)?, payload })
}

/// Looks through the rest of a segment for whole entries. An entry that is torn may be followed by
/// whole ones, but not by one that knows of its having been durable.
fn synced_beyond(bytes: &[u8], mut at: usize, segment: u64, expected: u64) -> u64 {
    let mut synced = 0;
    while let Some(found) = memmem::find(&bytes[at..], &MARK) {
        at += found;
        let number = bytes.get(at + 8..).and_then(|rest| rest.first_chunk());
        // Entries of the segment that this file was before have lower numbers.
        if number.is_some_and(|number| u64::from_be_bytes(*number) >= expected)
            && let Some(entry) = entry(bytes, at, segment)
        {
            synced = synced.max(entry.synced);
        }
        at += 1;
    }
    synced
}

fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:010}.log"))
}

fn header(number: u64) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&number.to_be_bytes());
    let checksum = crc32fast::hash(&bytes[..16]);
    bytes[16..].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn checksum(segment: u64, head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&segment.to_be_bytes());
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
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
