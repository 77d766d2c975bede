//! Opening a data folder: take it, look for damage, do again what a crash left undone.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;

use super::committer::Committer;
use super::core::Core;
use super::engine::Engine;
use super::folder::{Folder, OpenError};
use super::options::Options;
use super::tail::Tail;
use super::witness::Witness;
use super::{Embedded, announcer, journal};

/// Batches that may wait to be announced before the committer waits too.
const FINISHED_MAX: usize = 16;

impl Embedded {
    /// Opens the store in this folder, making it if there is none. Blocks for as long as it takes
    /// to read the journal. Metrics go to the recorder that is installed by now.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Arc<Self>, OpenError> {
        let folder = Folder::open(path.as_ref())?;
        folder.ensure_tree(|path| Engine::create(path, options))?;
        let acknowledged = acknowledged(&folder)?;
        let looked = journal::check(&folder.tree(), acknowledged.unwrap_or(0));
        looked.map_err(|fault| folder.damaged(fault))?;
        let engine =
            Engine::open(&folder.tree(), options).map_err(|fault| folder.damaged(fault))?;
        let (tail, sent) = Tail::find(&engine).map_err(|fault| folder.damaged(fault))?;
        let witness = witness(&folder, acknowledged, tail)?;
        let core = Arc::new(Core::new(engine, witness, folder));
        for sent in sent {
            let again = core.members.sent(&core.engine, &sent);
            again.map_err(|fault| core.folder.damaged(fault))?;
        }
        Self::start(core, tail, options)
    }

    /// Starts the two threads.
    fn start(core: Arc<Core>, tail: Tail, options: &Options) -> Result<Arc<Self>, OpenError> {
        let (queue, waiting) = sync_channel(options.queue_max);
        let (finished, batches) = sync_channel(FINISHED_MAX);
        let committer = Committer {
            core: Arc::clone(&core),
            queue: waiting,
            finished,
            tail,
            cursors_every: options.cursors_every,
        };
        let listening = Arc::clone(&core);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
            thread.map_err(|source| core.folder.io(source))
        };
        let threads = vec![
            spawn("nexo-committer", Box::new(|| committer.run()))?,
            spawn("nexo-announcer", Box::new(move || announcer::run(&listening, &batches)))?,
        ];
        Ok(Arc::new(Self { core, queue, threads: Mutex::new(threads) }))
    }
}

/// Up to which batch the witness saw everything acknowledged; `None` if there is no witness.
fn acknowledged(folder: &Folder) -> Result<Option<u64>, OpenError> {
    Witness::read(&folder.witness()).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => folder.damaged("the witness file makes no sense"),
        _ => folder.io(error),
    })
}

/// Opens the witness, after asking whether the tree still has all that was acknowledged.
fn witness(folder: &Folder, acknowledged: Option<u64>, tail: Tail) -> Result<Witness, OpenError> {
    let opened = match acknowledged {
        Some(number) if number > tail.newest => {
            let missing = number - tail.newest;
            return Err(folder.damaged(format!("{missing} acknowledged batches are missing")));
        }
        Some(_) => Witness::open(&folder.witness()),
        None if tail.newest > 0 => return Err(folder.damaged("the witness file is missing")),
        None => Witness::create(&folder.witness()).and_then(|made| folder.sync().map(|()| made)),
    };
    opened.map_err(|source| folder.io(source))
}
