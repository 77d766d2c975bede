//! Lots: so many things at a time that memory is bounded and a write is worth its sync.

use nexo_chat::store::StoreError;
use tokio::sync::mpsc;

use super::Item;

/// Things that travel together.
pub type Lot = Vec<Item>;

/// Things in a lot, and about how many bytes: a statement of a database has to fit into a packet.
const LOT_MAX: usize = 4096;
const LOT_BYTES_MAX: usize = 2 << 20;
/// Lots that may wait to be taken.
const WAITING_MAX: usize = 4;

/// Makes lots of what is given, and hands them over.
pub struct Lots {
    out: mpsc::Sender<Lot>,
    lot: Lot,
    bytes: usize,
}

/// Nobody takes lots any more.
#[derive(Debug, thiserror::Error)]
#[error("nobody takes what is given")]
pub struct Gone;

impl From<Gone> for StoreError {
    fn from(gone: Gone) -> Self {
        Self::Unavailable(gone.into())
    }
}

impl Lots {
    /// Where to put things, and where the lots come out.
    pub(super) fn channel() -> (Self, mpsc::Receiver<Lot>) {
        let (out, taken) = mpsc::channel(WAITING_MAX);
        (Self { out, lot: Lot::new(), bytes: 0 }, taken)
    }

    /// The lot, if this thing makes it full.
    fn add(&mut self, item: Item) -> Option<Lot> {
        self.bytes += item.weight();
        self.lot.push(item);
        let is_full = self.lot.len() >= LOT_MAX || self.bytes >= LOT_BYTES_MAX;
        is_full.then(|| self.take())
    }

    fn take(&mut self) -> Lot {
        self.bytes = 0;
        std::mem::take(&mut self.lot)
    }

    /// Adds a thing; waits while too many lots are waiting.
    pub(crate) async fn give(&mut self, item: Item) -> Result<(), Gone> {
        match self.add(item) {
            Some(lot) => self.out.send(lot).await.map_err(|_| Gone),
            None => Ok(()),
        }
    }

    /// Hands over what is left.
    pub(crate) async fn end(mut self) -> Result<(), Gone> {
        let lot = self.take();
        self.out.send(lot).await.map_err(|_| Gone)
    }

    /// [`Lots::give`] on a thread that may block.
    pub(crate) fn give_blocking(&mut self, item: Item) -> Result<(), Gone> {
        match self.add(item) {
            Some(lot) => self.out.blocking_send(lot).map_err(|_| Gone),
            None => Ok(()),
        }
    }

    /// [`Lots::end`] on a thread that may block.
    pub(crate) fn end_blocking(mut self) -> Result<(), Gone> {
        let lot = self.take();
        self.out.blocking_send(lot).map_err(|_| Gone)
    }
}
