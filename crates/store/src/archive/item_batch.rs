//! Batches of items: small enough to bound memory, large enough that a write is worth its sync.

use nexo_chat::store::StoreError;
use tokio::sync::mpsc;

use super::Item;

pub type ItemBatch = Vec<Item>;

/// Items in a batch, and about how many bytes: a statement of a database has to fit into a packet.
const BATCH_ITEMS_MAX: usize = 4096;
const BATCH_BYTES_MAX: usize = 2 << 20;
/// Batches that may wait to be received.
const WAITING_BATCHES_MAX: usize = 4;

/// Collects items into batches and sends them.
pub struct ItemSender {
    out: mpsc::Sender<ItemBatch>,
    batch: ItemBatch,
    bytes: usize,
}

/// The receiver of the batches was dropped.
#[derive(Debug, thiserror::Error)]
#[error("nobody takes what is given")]
pub struct ReceiverGone;

impl From<ReceiverGone> for StoreError {
    fn from(error: ReceiverGone) -> Self {
        Self::Unavailable(error.into())
    }
}

impl ItemSender {
    /// Creates a sender of items and a receiver of batches.
    pub(super) fn channel() -> (Self, mpsc::Receiver<ItemBatch>) {
        let (out, taken) = mpsc::channel(WAITING_BATCHES_MAX);
        (Self { out, batch: ItemBatch::new(), bytes: 0 }, taken)
    }

    /// Returns the batch, if this item makes it full.
    fn add(&mut self, item: Item) -> Option<ItemBatch> {
        self.bytes += item.weight();
        self.batch.push(item);
        let is_full = self.batch.len() >= BATCH_ITEMS_MAX || self.bytes >= BATCH_BYTES_MAX;
        is_full.then(|| self.take())
    }

    fn take(&mut self) -> ItemBatch {
        self.bytes = 0;
        std::mem::take(&mut self.batch)
    }

    /// Adds an item; waits while too many batches are waiting.
    pub(crate) async fn send(&mut self, item: Item) -> Result<(), ReceiverGone> {
        match self.add(item) {
            Some(batch) => self.out.send(batch).await.map_err(|_| ReceiverGone),
            None => Ok(()),
        }
    }

    /// Sends the last batch.
    pub(crate) async fn finish(mut self) -> Result<(), ReceiverGone> {
        let batch = self.take();
        self.out.send(batch).await.map_err(|_| ReceiverGone)
    }

    /// [`ItemSender::send`] on a thread that may block.
    pub(crate) fn send_blocking(&mut self, item: Item) -> Result<(), ReceiverGone> {
        match self.add(item) {
            Some(batch) => self.out.blocking_send(batch).map_err(|_| ReceiverGone),
            None => Ok(()),
        }
    }

    /// [`ItemSender::finish`] on a thread that may block.
    pub(crate) fn finish_blocking(mut self) -> Result<(), ReceiverGone> {
        let batch = self.take();
        self.out.blocking_send(batch).map_err(|_| ReceiverGone)
    }
}
