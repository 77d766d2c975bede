//! Delivered cursors of private conversations, moved in memory and written a moment later.
//!
//! Almost every message is acknowledged as delivered, so a transaction for each would cost as much
//! as storing the message. A move that is lost with the node only repeats a delivery. Until it is
//! written, other nodes see the older cursor; this node adds it to what it reads.
//!
//! Only private conversations: their windows never end, so a seq that is stored is visible.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nexo_chat::ids::{ConversationId, Seq};
use nexo_chat::model::CursorKind;
use nexo_chat::progress::Progress;
use nexo_chat::store::CursorMove;

use super::core::{Core, RecentCache};
use super::fault::SqlFault;
use super::members;
use super::sql::LIST_MAX;
use crate::member_key::MemberKey;

/// How long a move waits for others to be written with it.
pub(crate) const WRITE_AFTER: Duration = Duration::from_millis(250);

/// Members and conversations that are remembered.
const KNOWN_MAX: usize = 200_000;

pub(crate) struct DeliveredCursors {
    /// Cursors as this node last knew them. Other nodes may have moved them further.
    known: RecentCache<MemberKey, Progress>,
    /// Seqs that are known to be stored. The newest seq may be higher.
    stored: RecentCache<ConversationId, Seq>,
    /// How far the cursors moved that are not written yet.
    unsaved: Mutex<HashMap<MemberKey, Seq>>,
}

impl DeliveredCursors {
    pub(crate) fn new() -> Self {
        Self {
            known: RecentCache::new(KNOWN_MAX),
            stored: RecentCache::new(KNOWN_MAX),
            unsaved: Mutex::default(),
        }
    }

    /// Moves a cursor in memory. `None` if not enough is known of the member or the conversation:
    /// the cursor writer then asks the database. Calls `wake_writer` if nothing waited before.
    pub(crate) fn advance(
        &self,
        member_key: &MemberKey,
        seq: Seq,
        wake_writer: impl FnOnce(),
    ) -> Option<CursorMove> {
        self.stored.get(&member_key.1).filter(|stored| seq <= *stored)?;
        let moved = self.known.update(member_key, |progress| {
            let before = progress.cursors;
            progress.acknowledged(CursorKind::Delivered, seq);
            CursorMove { before, after: progress.cursors }
        })?;
        if moved.after != moved.before {
            let mut unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
            if unsaved.is_empty() {
                wake_writer();
            }
            let newest = unsaved.entry(member_key.clone()).or_insert(seq);
            *newest = seq.max(*newest);
        }
        Some(moved)
    }

    /// Remembers that a message is stored.
    pub(crate) fn note_stored(&self, conversation: &ConversationId, seq: Seq) {
        if conversation.group().is_none() {
            self.stored.insert(conversation.clone(), seq);
        }
    }

    /// Remembers a member as the database has them.
    pub(crate) fn remember(&self, member_key: &MemberKey, progress: Progress, head: Seq) {
        if member_key.1.group().is_some() {
            return;
        }
        self.note_stored(&member_key.1, head);
        let merged = self.known.update(member_key, |known| {
            // Moved further here while the database was asked.
            let further = known.cursors.delivered;
            *known = progress;
            known.acknowledged(CursorKind::Delivered, further);
        });
        if merged.is_none() {
            self.known.insert(member_key.clone(), progress);
        }
    }

    /// A member's own message was stored.
    pub(crate) fn sent(&self, member_key: &MemberKey, seq: Seq, marks_read: bool) {
        self.known.update(member_key, |progress| progress.sent(seq, marks_read));
    }

    /// Adds what this node knows to cursors that were read from the database.
    pub(crate) fn add_to(&self, member_key: &MemberKey, progress: &mut Progress) {
        if member_key.1.group().is_some() {
            return;
        }
        if let Some(known) = self.known.get(member_key) {
            progress.acknowledged(CursorKind::Delivered, known.cursors.delivered);
        }
        let unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seq) = unsaved.get(member_key) {
            progress.acknowledged(CursorKind::Delivered, *seq);
        }
    }

    pub(crate) fn has_unsaved(&self) -> bool {
        !self.unsaved.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Writes the moves that wait. What could not be written waits for the next call.
    pub(crate) async fn write(&self, core: &Core) {
        if self.has_unsaved()
            && let Err(error) = self.try_write(core).await
        {
            tracing::debug!(target: "nexo::store", %error, "delivered cursors wait");
        }
    }

    async fn try_write(&self, core: &Core) -> Result<(), SqlFault> {
        let moves: BTreeMap<MemberKey, Seq> = {
            let unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
            unsaved.iter().map(|(member_key, seq)| (member_key.clone(), *seq)).collect()
        };
        // In the order of their keys, like every transaction that locks members.
        let moves: Vec<_> = moves.into_iter().collect();
        let mut connection = core.pool.acquire().await?;
        for some in moves.chunks(LIST_MAX) {
            // No transaction with an id of its own: a move that is written twice changes nothing.
            members::raise_delivered(&mut connection, some).await?;
            let mut unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
            for (member_key, seq) in some {
                if unsaved.get(member_key) == Some(seq) {
                    unsaved.remove(member_key);
                }
            }
        }
        Ok(())
    }
}
