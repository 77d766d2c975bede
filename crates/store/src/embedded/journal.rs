//! A look at the tree's journals before the tree opens them.
//!
//! The tree replays a journal up to the first entry it cannot read, cuts the rest off and says
//! nothing; and it refuses to open at all where an entry can be read but its checksum is wrong.
//! Neither is right. At the end of the newest journal both are what a power cut leaves of a batch
//! that nobody was told of, and must be forgiven. Anywhere else they are damage, and must be
//! reported before the tree throws away what follows. The witness tells the two apart: it knows up
//! to which batch everything was acknowledged, and every synced batch carries its number as a key
//! of `tail`.
//!
//! The tree's checksum does not cover a batch's own sequence number. A wrong one would let an old
//! value win over a newer one, so they are checked to rise.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::keys;
use super::poison::Fault;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const TRAILER: [u8; 4] = *b"FJL\x03";

/// Checks all journals of a tree's folder, and cuts off a torn end that nobody was told of.
pub(crate) fn check(folder: &Path, acknowledged: u64) -> Result<(), Fault> {
    let journals = list(folder).map_err(|error| unreadable(folder, &error))?;
    let Some(((_, newest), sealed)) = journals.split_last() else {
        return Err(Fault::new("the journal is missing"));
    };
    let mut so_far = SoFar { acknowledged, ..SoFar::default() };
    for (_, path) in sealed {
        if so_far.follow(path)?.is_some() {
            return Err(Fault::new(format!("{} is damaged", path.display())));
        }
    }
    let Some(torn_at) = so_far.follow(newest)? else { return Ok(()) };
    if let Some(seen) = so_far.batch.filter(|seen| *seen < acknowledged) {
        let missing = acknowledged - seen;
        return Err(Fault::new(format!("{missing} acknowledged batches are missing")));
    }
    cut(newest, torn_at).map_err(|error| unreadable(newest, &error))
}

fn list(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut journals = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        if let (Some(number), Some("jnl")) = (number, path.extension().and_then(|e| e.to_str())) {
            journals.push((number, path));
        }
    }
    journals.sort();
    Ok(journals)
}

fn unreadable(path: &Path, error: &io::Error) -> Fault {
    Fault::new(format!("cannot read {}: {error}", path.display()))
}

fn cut(path: &Path, length: u64) -> io::Result<()> {
    tracing::warn!(target: "nexo::store", path = %path.display(), length, "cut a torn write off");
    let file = File::options().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_all()
}

/// What was seen in the journals up to here.
#[derive(Default)]
struct SoFar {
    /// Everything up to this batch was acknowledged.
    acknowledged: u64,
    /// The tree's number of the last write.
    write: Option<u64>,
    /// Our number of the last batch.
    batch: Option<u64>,
}

impl SoFar {
    /// Follows one journal to its end. Returns where it stops making sense, if it does.
    fn follow(&mut self, path: &Path) -> Result<Option<u64>, Fault> {
        let fault = |error: io::Error| unreadable(path, &error);
        let damaged = |what: &str| Err(Fault::new(format!("{}: {what}", path.display())));
        let mut journal = Journal::open(path).map_err(fault)?;
        let mut broken_at = None;
        loop {
            let at = journal.at;
            match journal.next().map_err(fault)? {
                Next::Write(write) if write.is_whole && broken_at.is_none() => {
                    if self.write.is_some_and(|last| write.number <= last) {
                        return damaged("writes are out of order");
                    }
                    self.write = Some(write.number);
                    self.batch = write.batch.or(self.batch);
                }
                Next::Write(write) => {
                    if write.batch.is_some_and(|batch| batch <= self.acknowledged) {
                        return damaged("an acknowledged batch is damaged");
                    }
                    broken_at = broken_at.or(Some(at));
                }
                Next::Zeros => {
                    let is_end = journal.only_zeros().map_err(fault)?;
                    return Ok(if is_end { broken_at } else { broken_at.or(Some(at)) });
                }
                Next::Broken => return Ok(broken_at.or(Some(at))),
            }
        }
    }
}

/// What comes next in a journal.
enum Next {
    Write(Write),
    /// Nothing, or the zeros of a file made longer in advance.
    Zeros,
    /// Something that cannot be followed any further.
    Broken,
}

/// One atomic write of the tree.
struct Write {
    number: u64,
    /// Our number, if it is one of our synced batches.
    batch: Option<u64>,
    /// Whether the checksum is right.
    is_whole: bool,
}

/// One record of a write.
enum Item {
    /// The record of `tail` that gives a batch its number.
    Tail(u64),
    Other,
    /// Something that cannot be an item.
    Broken,
}

struct Journal {
    file: BufReader<File>,
    length: u64,
    at: u64,
    /// Over the items of the write at hand.
    hasher: Xxh3,
}

impl Journal {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self {
            file: BufReader::with_capacity(1 << 16, file),
            length,
            at: 0,
            hasher: Xxh3::new(),
        })
    }

    /// The next write: a start, items, an end.
    fn next(&mut self) -> io::Result<Next> {
        match self.bytes::<1>()? {
            None | Some([0]) => return Ok(Next::Zeros),
            Some([START]) => {}
            Some(_) => return Ok(Next::Broken),
        }
        let (Some(count), Some(number)) = (self.bytes()?, self.bytes()?) else {
            return Ok(Next::Broken);
        };
        let mut batch = None;
        self.hasher.reset();
        for _ in 0..u32::from_le_bytes(count) {
            match self.item()? {
                Item::Tail(number) => batch = Some(number),
                Item::Other => {}
                Item::Broken => return Ok(Next::Broken),
            }
        }
        let checksum = self.hasher.digest();
        let (Some([END]), Some(stored), Some(TRAILER)) =
            (self.bytes()?, self.bytes()?, self.bytes()?)
        else {
            return Ok(Next::Broken);
        };
        let is_whole = u64::from_le_bytes(stored) == checksum;
        Ok(Next::Write(Write { number: u64::from_le_bytes(number), batch, is_whole }))
    }

    fn item(&mut self) -> io::Result<Item> {
        match self.bytes::<1>()? {
            Some([ITEM]) => {}
            Some([CLEAR]) if self.bytes::<8>()?.is_some() => return Ok(Item::Other),
            _ => return Ok(Item::Broken),
        }
        let (Some([kind, compression]), Some(_keyspace)) = (self.bytes()?, self.bytes::<8>()?)
        else {
            return Ok(Item::Broken);
        };
        let (Some(key), Some(value), Some(on_disk)) = (self.bytes()?, self.bytes()?, self.bytes()?)
        else {
            return Ok(Item::Broken);
        };
        let (value, on_disk) = (u32::from_le_bytes(value), u32::from_le_bytes(on_disk));
        if compression == 0 && value != on_disk {
            return Ok(Item::Broken);
        }
        let key = self.take(u64::from(u16::from_le_bytes(key)))?;
        let (Some(key), Some(_value)) = (key, self.take(u64::from(on_disk))?) else {
            return Ok(Item::Broken);
        };
        // No other key of eight bytes begins with a zero; the kind zero is a value, not a deletion.
        let is_tail = kind == 0 && key.first() == Some(&0);
        Ok(keys::batch_of(&key).filter(|_| is_tail).map_or(Item::Other, Item::Tail))
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        if self.length - self.at < N as u64 {
            return Ok(None);
        }
        self.file.read_exact(&mut bytes)?;
        self.hasher.update(&bytes);
        self.at += N as u64;
        Ok(Some(bytes))
    }

    fn take(&mut self, count: u64) -> io::Result<Option<Vec<u8>>> {
        if self.length - self.at < count {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(count).map_err(io::Error::other)?];
        self.file.read_exact(&mut bytes)?;
        self.hasher.update(&bytes);
        self.at += count;
        Ok(Some(bytes))
    }

    fn only_zeros(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 1 << 12];
        loop {
            let read = self.file.read(&mut chunk)?;
            if read == 0 {
                return Ok(true);
            }
            if chunk[..read].iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
        }
    }
}
