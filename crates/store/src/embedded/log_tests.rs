//! The log by itself: segments, their reuse, and what a crash leaves of them.

use std::os::unix::fs::FileExt;
use std::pin::Pin;

use super::super::keys::Keyspace;
use super::*;

impl Replayed {
    /// The number of the newest intact entry.
    fn newest(&self) -> u64 {
        self.durable + self.tail.len() as u64
    }
}

/// Opens the log of a folder, runs `act` on it, and closes it.
fn with(folder: &Path, act: impl FnOnce(&mut Log, &RetiredSegments)) {
    let (after, retired) = (read(folder, 0).unwrap().0, RetiredSegments::default());
    let (work, ready) = preallocate(folder.to_owned(), after.next_segment, retired.clone());
    let thread = thread::spawn(work);
    let mut log = Log::open(after, ready, &Options::default()).unwrap();
    act(&mut log, &retired);
    drop(log);
    thread.join().unwrap();
}

/// Replays a folder of which nothing was flushed: the value in each entry.
fn read(folder: &Path, acknowledged: u64) -> Result<(Replayed, Vec<u64>), EngineFault> {
    let mut found = Vec::new();
    let known = KnownLog { acknowledged, ..KnownLog::default() };
    let replayed = replay(folder, known, |_, payload| {
        let (_, _, batch) = Batch::decode(payload)?;
        for write in batch.into_writes() {
            found.push(u64::from_be_bytes((*write.value.unwrap()).try_into().unwrap()));
        }
        Ok(())
    })?;
    Ok((replayed, found))
}

fn entry(value: u64) -> Batch {
    let mut batch = Batch::default();
    batch.put(Keyspace::Users, b"somebody", &value.to_be_bytes());
    batch
}

fn add(log: &mut Log, values: std::ops::Range<u64>) {
    for value in values {
        log.append(&[], &entry(value)).unwrap();
        log.sync().unwrap();
    }
}

#[test]
fn every_opening_goes_on_where_the_last_one_ended() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..5 {
        with(folder.path(), |log, _| add(log, round * 3..round * 3 + 3));
    }
    let (replayed, found) = read(folder.path(), 15).unwrap();
    assert_eq!((replayed.newest(), replayed.segments), (15, 5));
    assert!(found.into_iter().eq(0..15));
}

#[test]
fn a_segment_used_again_shows_nothing_of_its_first_life() {
    let folder = tempfile::tempdir().unwrap();
    with(folder.path(), |log, retired| {
        // Each of the first ones is longer than the last; from some length on they are reused.
        for round in 0..12 {
            add(log, round * 5..round * 5 + 5);
            let number = log.roll().unwrap();
            retired.retire(folder.path(), number).unwrap();
        }
        add(log, 60..62);
    });
    let mut found = Vec::new();
    let known = KnownLog { flushed: 60, acknowledged: 62, is_dirty: false };
    let replayed = replay(folder.path(), known, |_, payload| {
        found.push(payload.len());
        Ok(())
    });
    assert_eq!((replayed.unwrap().newest(), found.len()), (62, 2));
}

#[test]
fn an_entry_that_does_not_fit_gets_a_segment_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    with(folder.path(), |log, _| {
        for _ in 0..3 {
            let mut large = entry(7);
            large.put(Keyspace::JoinCodes, b"large", &vec![b'x'; 3 << 20]);
            log.append(&[], &large).unwrap();
            log.sync().unwrap();
        }
    });
    let mut count = 0;
    let known = KnownLog { acknowledged: 3, ..KnownLog::default() };
    let replayed = replay(folder.path(), known, |_, payload| {
        Batch::decode(payload)?;
        count += 1;
        Ok(())
    });
    assert_eq!((replayed.unwrap().newest(), count), (3, 3));
}

#[test]
fn a_missing_segment_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    with(folder.path(), |log, _| {
        for round in 0..3 {
            add(log, round * 3..round * 3 + 3);
            log.roll().unwrap();
        }
    });
    let segments = segment::list(folder.path()).unwrap();
    for (_, path) in &segments[..3] {
        let aside = folder.path().join("aside");
        fs::rename(path, &aside).unwrap();
        let error = read(folder.path(), 9).unwrap_err().to_string();
        assert!(error.contains("missing"), "{error}");
        fs::rename(aside, path).unwrap();
    }
    assert_eq!(read(folder.path(), 9).unwrap().0.newest(), 9);
}

/// A log of three entries of which the second is torn. The witness records none of them.
fn torn(second_is_synced: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    with(folder.path(), |log, _| {
        add(log, 0..1);
        log.append(&[], &entry(1)).unwrap();
        if second_is_synced {
            log.sync().unwrap();
        }
        log.append(&[], &entry(2)).unwrap();
    });
    let path = segment::list(folder.path()).unwrap().remove(0).1;
    let bytes = fs::read(&path).unwrap();
    let second = memchr::memmem::find_iter(&bytes, b"somebody").nth(1).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"nobody", second as u64).unwrap();
    folder
}

#[test]
fn a_torn_entry_that_nobody_was_told_of_ends_the_log() {
    let folder = torn(false);
    let (replayed, found) = read(folder.path(), 0).unwrap();
    assert_eq!((replayed.newest(), found), (1, vec![0]));
    // The third one is intact, but it never comes back, whatever replaces the second.
    with(folder.path(), |log, _| add(log, 9..10));
    let (replayed, found) = read(folder.path(), 2).unwrap();
    assert_eq!((replayed.newest(), found), (2, vec![0, 9]));
}

#[test]
fn a_damaged_entry_is_noticed_by_what_follows_it() {
    let error = read(torn(true).path(), 0).unwrap_err().to_string();
    assert!(error.contains("1 acknowledged batches are missing or damaged"), "{error}");
}

/// Zeros what the page cache still showed and the disk never got: the last entries of a segment.
fn lose(path: &Path, entries: usize) {
    let bytes = fs::read(path).unwrap();
    let starts: Vec<_> = memchr::memmem::find_iter(&bytes, b"entr").collect();
    let from = starts[starts.len() - entries];
    let file = fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&vec![0; bytes.len() - from], from as u64).unwrap();
}

#[test]
fn an_entry_whose_sync_failed_is_written_again_before_it_counts() {
    let folder = tempfile::tempdir().unwrap();
    with(folder.path(), |log, _| {
        add(log, 0..3);
        log.append(&[], &entry(3)).unwrap(); // its sync failed, and the process ended
    });
    let first = segment::list(folder.path()).unwrap().remove(0).1;
    let known = KnownLog { acknowledged: 3, ..KnownLog::default() };
    for round in 0..2 {
        let after = replay(folder.path(), known, |_, _| Ok(())).unwrap();
        assert_eq!((after.durable, after.tail.len()), (3, 1), "round {round}");
        let retired = RetiredSegments::default();
        let (work, ready) = preallocate(folder.path().to_owned(), after.next_segment, retired);
        let thread = thread::spawn(work);
        let log = Log::open(after, ready, &Options::default()).unwrap();
        assert_eq!((log.newest, log.synced), (4, 4));
        drop(log);
        thread.join().unwrap();
        // The power cut takes what was only in the page cache; the second opening finds the copy.
        if round == 0 {
            lose(&first, 1);
        }
    }
    let (replayed, found) = read(folder.path(), 4).unwrap();
    assert_eq!((replayed.newest(), found), (4, vec![0, 1, 2, 3]));
}

#[test]
fn after_a_failed_sync_nothing_in_the_log_counts_as_durable() {
    let folder = tempfile::tempdir().unwrap();
    with(folder.path(), |log, _| add(log, 0..3));
    let known = KnownLog { flushed: 1, acknowledged: 3, is_dirty: true };
    let after = replay(folder.path(), known, |_, _| Ok(())).unwrap();
    assert_eq!((after.durable, after.tail.len()), (1, 2));
}

#[test]
fn entries_say_when_they_were_written() {
    struct Noon;
    impl nexo_chat::clock::Clock for Noon {
        fn now(&self) -> Millis {
            Millis(1_700_000_000_000)
        }
        fn ticks(&self) -> Millis {
            Millis(0)
        }
        fn sleep(&self, _: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::ready(()))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let retired = RetiredSegments::default();
    let (work, ready) = preallocate(folder.path().to_owned(), 1, retired);
    let thread = thread::spawn(work);
    let options = Options { clock: LogClock::new(Arc::new(Noon)), ..Options::default() };
    let after = replay(folder.path(), KnownLog::default(), |_, _| Ok(())).unwrap();
    let mut log = Log::open(after, ready, &options).unwrap();
    add(&mut log, 0..1);
    drop(log);
    thread.join().unwrap();
    let (number, path) = segment::list(folder.path()).unwrap().remove(0);
    let found = ScannedSegment::read(&path, number, 0).unwrap();
    assert_eq!(found.entries().next().unwrap().time, Millis(1_700_000_000_000));
    // An entry that is written again keeps its time.
    with(folder.path(), |_, _| {});
    let (number, path) = segment::list(folder.path()).unwrap().remove(1);
    let found = ScannedSegment::read(&path, number, 0).unwrap();
    assert_eq!(found.entries().next().unwrap().time, Millis(1_700_000_000_000));
}

#[test]
fn a_body_that_looks_like_an_entry_is_none() {
    let folder = tempfile::tempdir().unwrap();
    with(folder.path(), |log, _| {
        // Everything that an attacker can know: the layout, the numbers, a checksum without the
        // secret.
        let mut forged = Vec::new();
        for number in 1..200u64 {
            let mut entry =
                [b"entr".as_slice(), &[0; 4], &number.to_be_bytes(), &[255; 16]].concat();
            entry.extend_from_slice(&blake3::hash(&entry[4..]).as_bytes()[..8]);
            forged.extend(entry);
        }
        let mut batch = entry(0);
        batch.put(Keyspace::Messages, b"forged", &forged);
        log.append(&[], &batch).unwrap();
        log.sync().unwrap();
    });
    // Torn, so that the search goes through its payload.
    let path = segment::list(folder.path()).unwrap().remove(0).1;
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"torn", 78).unwrap();
    let mut count = 0;
    let replayed = replay(folder.path(), KnownLog::default(), |_, _| {
        count += 1;
        Ok(())
    });
    assert_eq!((replayed.unwrap().newest(), count), (0, 0));
}

#[test]
fn retiring_while_segments_are_made_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    with(folder.path(), |log, retired| {
        let (path, retired) = (folder.path().to_owned(), retired.clone());
        let (sender, numbers) = sync_channel::<u64>(4);
        let retiring = thread::spawn(move || {
            for number in numbers {
                retired.retire(&path, number).unwrap();
            }
        });
        for round in 0..60 {
            add(log, round..round + 1);
            sender.send(log.roll().unwrap()).unwrap();
        }
        drop(sender);
        retiring.join().unwrap();
    });
}
