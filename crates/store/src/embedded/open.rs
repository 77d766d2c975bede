//! Opening a data folder: lock it, look for damage, replay what the trees have not flushed.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use super::batch::Batch;
use super::committer::Committer;
use super::core::Core;
use super::engine::Engine;
use super::folder::{Folder, OpenError};
use super::log::{self, KnownLog, Log, Replayed, RetiredSegments};
use super::options::Options;
use super::poison::EngineFault;
use super::witness::{Witness, WitnessRecord};
use super::{Embedded, announcer, maintenance};
use crate::member_key::OwnSend;

/// Batches that may wait to be announced before the committer waits too.
const FINISHED_MAX: usize = 16;
/// Generations of sealed memtables that may wait to be flushed before the committer waits too.
pub(crate) const SEALED_MAX: usize = 2;

impl Embedded {
    /// Opens the store in this folder, creating it if there is none. Blocks while it reads the log.
    /// Metrics go to the recorder that is installed by now.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Arc<Self>, OpenError> {
        let store = Self::open_in(Folder::open(path.as_ref())?.finished()?, options)?;
        let folded = store.index_folded_ids_once();
        folded.map_err(|fault| store.core.folder.io(std::io::Error::other(fault)))?;
        Ok(store)
    }

    /// Opens the store in a folder that this process has locked.
    pub(crate) fn open_in(folder: Folder, options: &Options) -> Result<Arc<Self>, OpenError> {
        folder.ensure(|path| Engine::create(path, options))?;
        let damaged = |fault: EngineFault| folder.damaged(fault);
        let engine = Engine::open(&folder.trees(), options).map_err(damaged)?;
        let witnessed = witnessed(&folder, &engine)?;
        let (replayed, sent) = replay(&folder, &engine, witnessed).map_err(damaged)?;
        let witness = Witness::open(&folder.witness()).map_err(|source| folder.io(source))?;
        let core = Arc::new(Core::new(engine, witness, folder, options.reserve_bytes));
        for sent in sent {
            let again = core.members.apply_own_send(&core.engine, &sent);
            // Cursors that cannot be read have no place to move from.
            let again = again.or_else(|fault| core.pass_damage(fault));
            again.map_err(|fault| core.folder.damaged(fault))?;
        }
        Self::start(core, replayed, options)
    }

    /// Starts the threads.
    fn start(
        core: Arc<Core>,
        replayed: Replayed,
        options: &Options,
    ) -> Result<Arc<Self>, OpenError> {
        let (queue, waiting) = sync_channel(options.queue_max);
        let (finished, batches) = sync_channel(FINISHED_MAX);
        let (sealed, generations) = sync_channel(SEALED_MAX);
        let (merge, wanted) = sync_channel(1);
        let retired = RetiredSegments::default();
        let (prepare, ready) =
            log::preallocate(core.folder.log(), replayed.next_segment, retired.clone());
        let mut threads = Vec::new();
        let mut spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
            threads.push(thread.map_err(|source| core.folder.io(source))?);
            Ok(())
        };
        spawn("nexo-segments", Box::new(prepare))?;
        let segments = replayed.segments;
        let log = Log::open(replayed, ready, options);
        let log = log.map_err(|fault| core.folder.io(std::io::Error::other(fault)))?;
        // Before it was killed, the process may have flushed some of what is in the log.
        core.sealed_up_to.store(log.newest(), Ordering::SeqCst);
        forget_failed_sync(&core, &log).map_err(|source| core.folder.io(source))?;
        let committer = Committer {
            core: Arc::clone(&core),
            queue: waiting,
            durable: finished,
            log,
            sealed,
            memtable_bytes: options.memtable_bytes,
            segments,
            cursors_every: options.cursors_every,
            sweep: None,
            seal_after: Instant::now(),
        };
        let [listening, to_write, to_merge] = [(); 3].map(|()| Arc::clone(&core));
        spawn("nexo-committer", Box::new(|| committer.run()))?;
        spawn("nexo-announcer", Box::new(move || announcer::run(&listening, &batches)))?;
        spawn(
            "nexo-writer",
            Box::new(move || maintenance::run_flusher(&to_write, &retired, &generations, &merge)),
        )?;
        spawn("nexo-merger", Box::new(move || maintenance::run_compactor(&to_merge, &wanted)))?;
        Ok(Arc::new(Self { core, queue, threads: Mutex::new(threads) }))
    }
}

/// Reads the witness, or creates it for a folder in which nothing was ever acknowledged.
fn witnessed(folder: &Folder, engine: &Engine) -> Result<WitnessRecord, OpenError> {
    let read = Witness::read(&folder.witness()).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => folder.damaged("the witness file makes no sense"),
        _ => folder.io(error),
    })?;
    if let Some(witnessed) = read {
        return Ok(witnessed);
    }
    let begun = log::is_begun(&folder.log()).map_err(|source| folder.io(source))?;
    if begun || !engine.is_new() {
        return Err(folder.damaged("the witness file is missing"));
    }
    let made = Witness::create(&folder.witness()).and_then(|_| folder.sync());
    made.map_err(|source| folder.io(source))?;
    Ok(WitnessRecord { acknowledged: 0, flushed: 0 })
}

/// Everything in the log is durable now, whatever happened before.
fn forget_failed_sync(core: &Core, log: &Log) -> std::io::Result<()> {
    core.witness.set_acknowledged(log.newest())?;
    if core.folder.is_dirty()? {
        core.folder.mark_clean()?;
        tracing::warn!(target: "nexo::store", "a sync had failed: the log was written again");
    }
    Ok(())
}

/// Fills the memtables from the log. Returns the own sends that no written cursor contains.
fn replay(
    folder: &Folder,
    engine: &Engine,
    witnessed: WitnessRecord,
) -> Result<(Replayed, Vec<OwnSend>), EngineFault> {
    let (mut all, mut covered) = (Vec::new(), 0);
    let WitnessRecord { acknowledged, flushed } = witnessed;
    let is_dirty = folder.is_dirty().map_err(|error| EngineFault::io("cannot look", &error))?;
    let known = KnownLog { flushed, acknowledged, is_dirty };
    let replayed = log::replay(&folder.log(), known, |number, payload| {
        let (up_to, sent, batch) = Batch::decode(payload)?;
        engine.apply(batch);
        covered = up_to.max(covered);
        all.extend(sent.into_iter().map(|sent| (number, sent)));
        Ok(())
    })?;
    let uncovered = all.into_iter().filter(|(number, _)| *number > covered);
    Ok((replayed, uncovered.map(|(_, sent)| sent).collect()))
}
