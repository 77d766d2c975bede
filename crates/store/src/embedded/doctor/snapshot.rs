//! A data folder as it can be read, whatever is damaged, without changing it.
//!
//! The trees are opened on a mirror: a temporary folder with links to the tables. A tree that the library
//! cannot open is put together from the blocks of its tables. The log is replayed into memory as far as it
//! goes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use nexo_chat::store::Order;
use tempfile::TempDir;

use super::raw_table::{KeyGap, RawTable};
use super::report::{Problem, Report};
use super::table_list::{self, ListedTable};
use crate::embedded::batch::Batch;
use crate::embedded::core::Core;
use crate::embedded::engine::{Engine, Slice};
use crate::embedded::folder::{Folder, OpenError};
use crate::embedded::keys::{FORMAT, Keyspace};
use crate::embedded::options::Options;
use crate::embedded::segment::{self, LogEntry, ScannedSegment};
use crate::embedded::tables::TREE_FILE;
use crate::embedded::witness::{Witness, WitnessRecord};

/// Records read at a time, and about their bytes.
const PAGE_RECORDS: usize = 1024;
const PAGE_BYTES: usize = 2 << 20;

/// What interrupted starts leave behind.
pub(crate) const LEFTOVERS: [&str; 3] = ["trees.new", "FORMAT.new", "witness.new"];

pub(crate) struct Snapshot {
    pub(crate) core: Core,
    pub(crate) report: Report,
    /// Where records cannot be read, sorted and apart from each other.
    gaps: BTreeMap<Keyspace, Vec<KeyGap>>,
    /// Trees that were put together from their blocks.
    rebuilt: BTreeSet<Keyspace>,
    /// Acknowledged batches may be missing at the end.
    pub(crate) is_log_short: bool,
    _mirror: TempDir,
    _lock: Option<File>,
}

impl Snapshot {
    /// Reads a folder that no server uses. `progress` is called with the name of each part.
    pub(crate) fn open(path: &Path, progress: &mut dyn FnMut(&str)) -> Result<Self, OpenError> {
        let io = |source: io::Error| OpenError::Io { path: path.to_owned(), source };
        if !path.join("trees").exists() && !path.join("log").exists() {
            let why = "it has neither trees nor a log".to_owned();
            return Err(OpenError::Unknown { path: path.to_owned(), why });
        }
        let lock = lock(path)?;
        let mut report = Report::default();
        check_format(path, &mut report)?;
        let options = Options { cache_bytes: 32 << 20, ..Options::default() };
        let mirror = tempfile::tempdir().map_err(io)?;
        let mirror_folder = Folder::open(mirror.path())?; // empty as yet
        let mut trees = Vec::new();
        for keyspace in Keyspace::ALL {
            progress(keyspace.name());
            let tree = MirroredTree::make(path, mirror.path(), keyspace, &options, &mut report);
            trees.push(tree.map_err(io)?);
        }
        let engine = Engine::open(&mirror.path().join("trees"), &options)
            .map_err(|fault| io(io::Error::other(fault)))?;
        let (mut gaps, mut rebuilt) = (BTreeMap::new(), BTreeSet::new());
        for tree in trees {
            let keyspace = tree.keyspace;
            let found = if tree.is_rebuilt {
                rebuilt.insert(keyspace);
                tree.restore(&engine)
            } else if tree.is_damaged {
                engine.gaps(keyspace)
            } else {
                Vec::new()
            };
            gaps.insert(keyspace, merged(found));
        }
        progress("log");
        let log = replay(path, &engine, &mut report).map_err(io)?;
        fs::create_dir_all(mirror.path().join("log")).map_err(io)?;
        let witness = Witness::create(&mirror.path().join("witness")).map_err(io)?;
        let core = Core::new(engine, witness, mirror_folder, 0);
        for sent in log.own_sends {
            // Cursors that cannot be read have no place to move from.
            let applied = core.members.apply_own_send(&core.engine, &sent);
            drop(applied.or_else(|fault| core.pass_damage(fault)));
        }
        let is_log_short = log.is_short;
        Ok(Self { core, report, gaps, rebuilt, is_log_short, _mirror: mirror, _lock: lock })
    }

    pub(crate) fn gaps(&self, keyspace: Keyspace) -> &[KeyGap] {
        self.gaps.get(&keyspace).map_or(&[], Vec::as_slice)
    }

    /// Whether a value may be an older version of one that cannot be read. Records that are written once
    /// have no older version.
    fn may_be_stale(&self, keyspace: Keyspace, key: &[u8]) -> bool {
        let is_written_once = matches!(
            keyspace,
            Keyspace::Changes | Keyspace::MessageIds | Keyspace::UsedTokens | Keyspace::Mentions
        );
        self.rebuilt.contains(&keyspace)
            && !is_written_once
            && self.gaps(keyspace).iter().any(|gap| gap.contains(key))
    }

    /// Passes every readable record of a keyspace to `visit`, in the order of keys.
    pub(crate) fn for_each(&self, keyspace: Keyspace, visit: &mut dyn FnMut(&[u8], &[u8])) {
        if self.rebuilt.contains(&keyspace) {
            let everything = (Bound::Unbounded, Bound::Unbounded);
            return self.scan(keyspace, everything, &mut |key, value| {
                if !self.may_be_stale(keyspace, key) {
                    visit(key, value);
                }
            });
        }
        let mut from = Bound::Unbounded;
        for gap in self.gaps(keyspace) {
            if let Some(after) = &gap.after {
                self.scan(keyspace, (from, Bound::Included(after.to_vec())), visit);
            }
            let is_inside = |key: &&Slice| {
                gap.after.as_ref() != Some(*key) && gap.before.as_ref() != Some(*key)
            };
            for key in self.core.engine.keys_in(keyspace, gap).iter().filter(is_inside) {
                if let Ok(Some(value)) = self.core.engine.get(keyspace, key) {
                    visit(key, &value);
                }
            }
            let Some(before) = &gap.before else { return };
            from = Bound::Included(before.to_vec());
        }
        self.scan(keyspace, (from, Bound::Unbounded), visit);
    }

    /// Scans a range that has no gap inside, only at its ends: near the end a scan looks ahead and fails, so
    /// it goes in single steps there, and takes the last record by its key.
    fn scan(
        &self,
        keyspace: Keyspace,
        (mut from, to): (Bound<Vec<u8>>, Bound<Vec<u8>>),
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) {
        let mut limit = PAGE_RECORDS;
        loop {
            let range = (from.clone(), to.clone());
            match self.core.engine.scan(keyspace, range, limit, Order::Ascending, PAGE_BYTES) {
                Ok(page) => {
                    let Some((last, _)) = page.last() else { return };
                    from = Bound::Excluded(last.to_vec());
                    for (key, value) in &page {
                        visit(key, value);
                    }
                }
                Err(_) if limit > 1 => limit = 1,
                Err(_) => {
                    if let Bound::Included(last) = &to
                        && from != Bound::Excluded(last.clone())
                        && let Ok(Some(value)) = self.core.engine.get(keyspace, last)
                    {
                        visit(last, &value);
                    }
                    return;
                }
            }
        }
    }
}

/// Takes the folder's lock, if it has one.
fn lock(path: &Path) -> Result<Option<File>, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    let file = match File::options().write(true).open(path.join("LOCK")) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io(error)),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

fn check_format(path: &Path, report: &mut Report) -> Result<(), OpenError> {
    let text = fs::read(path.join("FORMAT"));
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let number = text.trim_end().strip_prefix("nexo store format ").map(str::parse::<u32>);
    match number {
        Some(Ok(1..=FORMAT)) => {}
        Some(Ok(found)) if found > FORMAT => {
            return Err(OpenError::Newer { path: path.to_owned(), found, known: FORMAT });
        }
        _ => report.add(Problem::lost(
            "The file FORMAT is missing or does not name a format.",
            "Nobody can use the server: it does not open a folder of unknown format.",
        )),
    }
    for name in LEFTOVERS.into_iter().filter(|name| path.join(name).exists()) {
        report.add(Problem::derivable(
            format!("An interrupted start left {name} behind."),
            "Nobody notices it.",
        ));
    }
    if path.join("FILLING").exists() {
        report.add(Problem::lost(
            "Data was being moved into this folder, and that did not finish.",
            "Nobody can use the server: a part of the data is not here.",
        ));
    }
    Ok(())
}

/// A tree of the mirror.
struct MirroredTree {
    keyspace: Keyspace,
    source: PathBuf,
    /// The tables of the list, by run; of a list that cannot be read, every table that is there.
    runs: Vec<Vec<ListedTable>>,
    is_damaged: bool,
    is_rebuilt: bool,
    /// Nothing tells which tables there should be.
    has_no_list: bool,
}

impl MirroredTree {
    fn make(
        path: &Path,
        mirror: &Path,
        keyspace: Keyspace,
        options: &Options,
        report: &mut Report,
    ) -> io::Result<Self> {
        let (source, target) = (tree_in(path, keyspace), tree_in(mirror, keyspace));
        let (mut is_damaged, mut has_no_list) = (false, false);
        let runs = match table_list::read(&source) {
            Ok(runs) => runs,
            Err(error) if !source.exists() && !keyspace.is_in_first_format() => {
                drop(error); // the folder is older than the keyspace
                Vec::new()
            }
            Err(error) => {
                (is_damaged, has_no_list) = (true, true);
                report.add(Problem::lost(
                    format!(
                        "The list of the tables of `{}` cannot be read ({error}).",
                        keyspace.name()
                    ),
                    "Nobody can use the server: it does not open.",
                ));
                vec![tables_in(&source)?]
            }
        };
        fs::create_dir_all(target.join("tables"))?;
        for table in runs.iter().flatten() {
            report.tables += 1;
            let file = table.path(&source);
            match table.is_sound(&source) {
                Ok(true) => {}
                Ok(false) if has_no_list => {} // there is no checksum to compare with
                found => {
                    is_damaged = true;
                    report.add(damaged_table(keyspace, table, found.err().as_ref()));
                }
            }
            if file.exists() {
                std::os::unix::fs::symlink(fs::canonicalize(file)?, table.path(&target))?;
            }
        }
        for entry in fs::read_dir(&source).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if !has_no_list && (name == TREE_FILE || name.to_string_lossy().starts_with('v')) {
                fs::copy(entry.path(), target.join(name))?;
            }
        }
        let trees = mirror.join("trees");
        let is_rebuilt = has_no_list || !Engine::opens(&trees, keyspace, options);
        if is_rebuilt {
            fs::remove_dir_all(&target)?;
            Engine::opens(&trees, keyspace, options); // an empty one
        }
        Ok(Self { keyspace, source, runs, is_damaged, is_rebuilt, has_no_list })
    }

    /// Fills the empty tree of the mirror with the records of all blocks that can be read; returns the gaps.
    fn restore(&self, engine: &Engine) -> Vec<KeyGap> {
        let mut gaps = Vec::new();
        if self.has_no_list && self.runs.iter().flatten().next().is_none() {
            gaps.push(KeyGap::ALL);
        }
        for run in &self.runs {
            // A table that is not there lay between its neighbours.
            let mut end: Option<Slice> = None;
            let mut missing_since: Option<Option<Slice>> = None;
            for table in run {
                let raw = RawTable::read(&table.path(&self.source)).ok();
                let Some(raw) = raw.filter(|raw| !raw.records.is_empty()) else {
                    missing_since.get_or_insert(end.clone());
                    continue;
                };
                let first = raw.records.first().map(|record| record.key.user_key.clone());
                if let Some(after) = missing_since.take() {
                    gaps.push(KeyGap { after, before: first });
                }
                end = raw.records.last().map(|record| record.key.user_key.clone());
                gaps.extend(raw.gaps);
                for record in raw.records {
                    engine.restore(self.keyspace, record, table.first_number);
                }
            }
            gaps.extend(missing_since.map(|after| KeyGap { after, before: None }));
        }
        gaps
    }
}

fn tree_in(folder: &Path, keyspace: Keyspace) -> PathBuf {
    folder.join("trees").join(keyspace.name())
}

/// Every table file of a tree, as if it were listed.
fn tables_in(tree: &Path) -> io::Result<Vec<ListedTable>> {
    let entries = match fs::read_dir(tree.join("tables")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        if let Ok(id) = entry?.file_name().to_string_lossy().parse() {
            found.push(ListedTable { id, checksum: 0, first_number: 0 });
        }
    }
    Ok(found)
}

fn damaged_table(keyspace: Keyspace, table: &ListedTable, error: Option<&io::Error>) -> Problem {
    let file = format!("trees/{}/tables/{}", keyspace.name(), table.id);
    let what = match error {
        Some(error) if error.kind() == ErrorKind::NotFound => {
            format!("The file {file} is missing.")
        }
        Some(error) => format!("The file {file} cannot be read ({error})."),
        None => format!("The file {file} is not what was written: its checksum is wrong."),
    };
    Problem::lost(what, affected(keyspace))
}

/// Who notices that records of a keyspace are damaged.
fn affected(keyspace: Keyspace) -> &'static str {
    match keyspace {
        Keyspace::Messages => {
            "Some messages cannot be read; their conversations go on around them."
        }
        Keyspace::MessageIds => {
            "Some messages cannot be found by their ids, and some sends are refused, because it is not \
             known whether they were stored."
        }
        Keyspace::Members | Keyspace::Cursors | Keyspace::Settings => {
            "Some people do not see some of their conversations."
        }
        Keyspace::Users | Keyspace::FoldedIds => "Some people cannot sign in.",
        Keyspace::Logins
        | Keyspace::RefreshTokens
        | Keyspace::UserLogins
        | Keyspace::UsedTokens
        | Keyspace::ResetCodes => "Some people must sign in again.",
        Keyspace::Changes => {
            "Some recalls, joins and other changes are not shown to devices that were away."
        }
        Keyspace::Groups | Keyspace::GroupMembers | Keyspace::JoinCodes => {
            "Some groups, or some of their members, cannot be used."
        }
        Keyspace::JoinRequests | Keyspace::Mutes => "Some requests to join or mutes are not known.",
        Keyspace::SentWithoutRead | Keyspace::Mentions => "Some unread counts cannot be made.",
        Keyspace::LastSeen => "It is not known when some people were last seen.",
        Keyspace::Lost => "It is not known which messages were lost before.",
        Keyspace::Documents => "Some API keys, invite links or entries of the audit log are lost.",
    }
}

/// Sorts gaps and joins those that overlap.
fn merged(mut gaps: Vec<KeyGap>) -> Vec<KeyGap> {
    gaps.sort_by(|a, b| a.after.cmp(&b.after));
    let mut merged: Vec<KeyGap> = Vec::new();
    for gap in gaps {
        match merged.last_mut() {
            Some(last) if last.before.is_none() || gap.after < last.before => {
                let is_longer = gap.before.is_none() || gap.before > last.before;
                if last.before.is_some() && is_longer {
                    last.before = gap.before;
                }
            }
            _ => merged.push(gap),
        }
    }
    merged
}

struct ReplayedLog {
    own_sends: Vec<crate::member_key::OwnSend>,
    is_short: bool,
}

/// Replays the log as far as it goes.
fn replay(path: &Path, engine: &Engine, report: &mut Report) -> io::Result<ReplayedLog> {
    let nobody = "Nobody can use the server: it does not open.";
    let witnessed = match Witness::read(&path.join("witness")) {
        Ok(Some(witnessed)) => Some(witnessed),
        Ok(None) => {
            report.add(Problem::lost("The file `witness` is missing.", nobody));
            None
        }
        Err(error) => {
            report.add(Problem::lost(
                format!("The file `witness` cannot be read ({error})."),
                nobody,
            ));
            None
        }
    };
    let mut is_short = witnessed.is_none();
    let WitnessRecord { acknowledged, flushed } =
        witnessed.unwrap_or(WitnessRecord { acknowledged: 0, flushed: 0 });
    let (mut newest, mut known, mut covered) = (None, acknowledged, 0);
    let mut sent = Vec::new();
    let log = path.join("log");
    let segments = if log.exists() { segment::list(&log)? } else { Vec::new() };
    'log: for (number, file) in segments {
        let found = ScannedSegment::read(&file, number, newest.unwrap_or(flushed))?;
        known = known.max(found.synced_beyond);
        for LogEntry { number: entry, payload, .. } in found.entries() {
            if entry <= newest.unwrap_or(flushed) {
                continue; // flushed, or written again
            }
            // Without a witness it begins with the first entry there is: older ones are in the trees.
            let expected =
                newest.map_or_else(|| witnessed.map(|it| it.flushed + 1), |it: u64| Some(it + 1));
            if expected.is_some_and(|expected| expected != entry) {
                known = known.max(entry);
                break 'log;
            }
            let Ok((up_to, own_sends, batch)) = Batch::decode(payload) else { break 'log };
            engine.apply(batch);
            covered = up_to.max(covered);
            sent.extend(own_sends.into_iter().map(|sent| (entry, sent)));
            newest = Some(entry);
        }
    }
    let newest = newest.unwrap_or(flushed);
    if newest < known {
        is_short = true;
        report.add(Problem::lost(
            format!(
                "The log ends at batch {newest}, but {} more batches were acknowledged: they are missing \
                 or damaged.",
                known - newest
            ),
            "Nobody can use the server: it does not open, so that the last messages are not lost silently.",
        ));
    }
    let own_sends = sent.into_iter().filter(|(entry, _)| *entry > covered);
    Ok(ReplayedLog { own_sends: own_sends.map(|(_, sent)| sent).collect(), is_short })
}
