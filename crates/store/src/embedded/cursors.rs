//! Members and how far they have come: moved in memory at once, written behind.

use std::sync::{Mutex, PoisonError};

use nexo_chat::ids::{ConversationId, Seq, UserId};
use nexo_chat::model::{CursorKind, Settings, Window};
use nexo_chat::progress::Progress;
use nexo_chat::store::Moved;

use super::batch::Batch;
use super::engine::Engine;
use super::heads::Heads;
use super::keys::{self, Space};
use super::poison::Fault;
use super::record::{self, CursorRecord, SettingsRecord, WindowRecord};
use super::shards::Shards;

/// Who, and where.
pub(crate) type Place = (UserId, ConversationId);

/// An own send, which moves its sender's cursors. Cursors are written behind, so a crash may lose
/// the moves of the last second. For a delivery that only means a repetition, but somebody's own
/// message must not come back as unread: every entry of the log names its own sends.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) place: Place,
    pub(crate) seq: Seq,
    pub(crate) marks_read: bool,
}

/// A member of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) window: Window,
    pub(crate) progress: Progress,
    pub(crate) settings: Settings,
    /// The cursors moved since they were written: memory is the only place that knows.
    dirty: bool,
}

/// What may become of a member beside moving cursors.
#[derive(Clone, Debug)]
pub(crate) enum MemberChange {
    Joined(Window, Progress),
    Left(Window),
    Chose(Settings),
}

/// The members in memory.
pub(crate) struct Members {
    known: Shards<Place, Member>,
    /// Every dirty member's place, once.
    dirty: Mutex<Vec<Place>>,
}

impl Members {
    pub(crate) fn new(max: usize) -> Self {
        Self { known: Shards::new(max), dirty: Mutex::default() }
    }

    /// Does something to a member, if there is such a member, and notes whether a cursor moved.
    fn with<T>(
        &self,
        engine: &Engine,
        place: &Place,
        act: impl FnOnce(&mut Member) -> T,
    ) -> Result<Option<T>, Fault> {
        let mut part = self.known.lock(place);
        if !part.contains_key(place) {
            let Some(member) = load(engine, place)? else { return Ok(None) };
            // A dirty one may not go: the disk has not heard of its moves.
            self.known.insert(&mut part, place.clone(), member, |member| !member.dirty);
        }
        let Some(member) = part.get_mut(place) else { return Ok(None) };
        let before = member.progress;
        let done = act(member);
        if member.progress != before && !member.dirty {
            member.dirty = true;
            self.dirty_places().push(place.clone());
        }
        Ok(Some(done))
    }

    fn dirty_places(&self) -> std::sync::MutexGuard<'_, Vec<Place>> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A member, if there is such a member.
    pub(crate) fn get(&self, engine: &Engine, place: &Place) -> Result<Option<Member>, Fault> {
        self.with(engine, place, |member| member.clone())
    }

    /// Moves a cursor forward, at most to what the member can see.
    pub(crate) fn advance(
        &self,
        engine: &Engine,
        heads: &Heads,
        place: &Place,
        kind: CursorKind,
        seq: Seq,
    ) -> Result<Option<Moved>, Fault> {
        let head = heads.get(engine, &place.1)?.seq;
        self.with(engine, place, |member| {
            let before = member.progress.cursors;
            let to = seq.min(member.window.end.map_or(head, |end| end.seq.min(head)));
            member.progress.acknowledged(kind, to);
            Moved { before, after: member.progress.cursors }
        })
    }

    /// Moves a sender's cursors to their own message.
    pub(crate) fn sent(&self, engine: &Engine, sent: &Sent) -> Result<(), Fault> {
        let moved = self.with(engine, &sent.place, |member| {
            member.progress.sent(sent.seq, sent.marks_read);
        })?;
        moved.ok_or_else(|| record::impossible(Space::Members, "a sender who is no member"))
    }

    /// Ends a member's window in memory ahead of the disk. It stays in memory until its cursors are
    /// written, so nobody reads the open one again before the end is durable.
    pub(crate) fn close(
        &self,
        engine: &Engine,
        place: &Place,
        window: Window,
    ) -> Result<(), Fault> {
        let mut must_note = false;
        self.with(engine, place, |member| {
            member.window = window;
            must_note = !member.dirty;
            member.dirty = true;
        })?;
        if must_note {
            self.dirty_places().push(place.clone());
        }
        Ok(())
    }

    /// Takes over what became durable of a member. Whoever is not in memory is loaded when asked for.
    pub(crate) fn publish(&self, place: &Place, changes: Vec<MemberChange>) {
        let mut part = self.known.lock(place);
        let Some(member) = part.get_mut(place) else { return };
        for change in changes {
            match change {
                MemberChange::Joined(window, progress) => {
                    (member.window, member.progress) = (window, progress);
                }
                MemberChange::Left(window) => member.window = window,
                MemberChange::Chose(settings) => member.settings = settings,
            }
        }
    }

    /// The places whose cursors moved; they are to be written.
    pub(crate) fn take_dirty(&self) -> Vec<Place> {
        std::mem::take(&mut *self.dirty_places())
    }

    /// Adds the cursors of these places to a batch. They stay dirty until [`Members::written`].
    pub(crate) fn write(
        &self,
        places: impl Iterator<Item = Place>,
        batch: &mut Batch,
    ) -> Result<Vec<(Place, Progress)>, Fault> {
        let mut written = Vec::new();
        for place in places {
            let Some(progress) = self.known.lock(&place).get(&place).map(|member| member.progress)
            else {
                continue;
            };
            let key = keys::member(&place.0, &place.1);
            let value = record::encode(Space::Cursors, &key, &CursorRecord::from(progress))?;
            batch.put(Space::Cursors, &key, &value);
            written.push((place, progress));
        }
        Ok(written)
    }

    /// These could not be written: they are still to be.
    pub(crate) fn put_back(&self, places: impl IntoIterator<Item = Place>) {
        self.dirty_places().extend(places);
    }

    /// After the batch is committed: what did not move meanwhile is clean.
    pub(crate) fn written(&self, written: Vec<(Place, Progress)>) {
        for (place, progress) in written {
            let mut part = self.known.lock(&place);
            let Some(member) = part.get_mut(&place) else { continue };
            member.dirty = member.progress != progress;
            if member.dirty {
                self.dirty_places().push(place.clone());
            }
        }
    }
}

fn load(engine: &Engine, place: &Place) -> Result<Option<Member>, Fault> {
    let key = keys::member(&place.0, &place.1);
    let Some(window) = engine.get(Space::Members, &key)? else { return Ok(None) };
    let window: WindowRecord = record::decode(Space::Members, &key, &window)?;
    let progress = match engine.get(Space::Cursors, &key)? {
        Some(bytes) => record::decode::<CursorRecord>(Space::Cursors, &key, &bytes)?.into(),
        None => Progress::default(),
    };
    let settings = match engine.get(Space::Settings, &key)? {
        Some(bytes) => {
            record::decode::<SettingsRecord<'_>>(Space::Settings, &key, &bytes)?.settings()?
        }
        None => Settings::default(),
    };
    Ok(Some(Member { window: window.into(), progress, settings, dirty: false }))
}
