//! Cursors: moved many at a time, each as far as the furthest of those who ask.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mysql_async::Row;
use nexo_chat::ids::{ConversationId, Millis, Seq, UserId};
use nexo_chat::model::{CursorKind, Edge, Window};
use nexo_chat::progress::Progress;
use nexo_chat::store::{Moved, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::act::Act;
use super::core::Core;
use super::fault::Fault;
use super::row::{self, Fields};
use super::sql::{LIST_MAX, values};

/// Somebody in a conversation.
pub(crate) type Place = (UserId, ConversationId);

/// The columns of [`row::member_values`].
pub(crate) const MEMBER: &str = "user_id, conversation_id, min_seq, min_change_seq, since, \
     end_seq, end_change_seq, end_at, delivered_seq, read_seq, own_first, own_last, quiet_seq";

/// Those of these places that are there.
pub(crate) async fn are_there(
    act: &mut Act,
    places: &BTreeSet<Place>,
) -> Result<BTreeSet<Place>, Fault> {
    let keys: Vec<_> =
        places.iter().map(|(user, at)| values![user.as_str(), at.as_str()]).collect();
    let sql = "SELECT user_id, conversation_id FROM members \
         WHERE (user_id, conversation_id) IN {}";
    let rows = act.look(sql, &keys).await?.into_iter().map(|row| {
        let mut fields = Fields::from(row);
        Ok((fields.user()?, fields.conversation()?))
    });
    rows.collect()
}

/// The places that are there, locked in the order of their keys.
pub(crate) async fn lock(
    act: &mut Act,
    places: &BTreeSet<Place>,
) -> Result<BTreeMap<Place, (Window, Progress)>, Fault> {
    let keys: Vec<_> =
        places.iter().map(|(user, at)| values![user.as_str(), at.as_str()]).collect();
    let sql = format!(
        "SELECT {MEMBER} FROM members WHERE (user_id, conversation_id) IN {{}} \
         ORDER BY user_id, conversation_id FOR UPDATE",
    );
    act.look(&sql, &keys).await?.into_iter().map(place).collect()
}

fn place(row: Row) -> Result<(Place, (Window, Progress)), Fault> {
    let mut fields = Fields::from(row);
    let place = (fields.user()?, fields.conversation()?);
    Ok((place, (fields.window()?, fields.progress()?)))
}

/// Writes places that were locked, or are new.
pub(crate) async fn save(
    act: &mut Act,
    places: impl Iterator<Item = (&Place, Window, Progress)>,
) -> Result<(), Fault> {
    let rows = places
        .map(|((user, at), window, progress)| row::member_values(user, at, window, progress))
        .collect();
    let sql = format!(
        "INSERT INTO members ({MEMBER}) VALUES {{}} ON DUPLICATE KEY UPDATE \
         delivered_seq = GREATEST(delivered_seq, VALUES(delivered_seq)), \
         read_seq = GREATEST(read_seq, VALUES(read_seq)), \
         own_first = VALUES(own_first), own_last = VALUES(own_last), \
         quiet_seq = GREATEST(quiet_seq, VALUES(quiet_seq))",
    );
    act.write(&sql, rows).await
}

/// Makes the two people of a conversation its members.
pub(crate) async fn begin(act: &mut Act, places: &[Place]) -> Result<(), Fault> {
    let begun = places.iter().map(|place| (place, Window::ALL, Progress::default()));
    save(act, begun).await
}

/// A message somebody sent.
pub(crate) struct Sent {
    pub(crate) place: Place,
    pub(crate) seq: Seq,
    pub(crate) marks_read: bool,
}

/// Moves the senders' cursors as [`Progress::sent`] does, where they are: what is there need not be
/// read first. The statement may use each column as it was before or as set by what stands left of
/// it, with the same outcome.
pub(crate) async fn sent(act: &mut Act, mut sent: Vec<Sent>) -> Result<(), Fault> {
    // In the order of their keys, like everybody who locks them; a member's own in that of their seqs.
    sent.sort_by(|a, b| (&a.place, a.seq).cmp(&(&b.place, b.seq)));
    let mut runs: Vec<(Place, Progress)> = Vec::with_capacity(sent.len());
    for Sent { place, seq, marks_read } in sent {
        let mut progress = Progress::default();
        if let Some((last, it)) = runs.last()
            && *last == place
            && it.own.is_some_and(|(_, last)| last.next() == seq)
        {
            progress = *it;
            runs.pop();
        }
        progress.sent(seq, marks_read);
        runs.push((place, progress));
    }
    let rows = runs
        .iter()
        .map(|((user, at), progress)| row::member_values(user, at, Window::ALL, *progress))
        .collect();
    let first = "IF(own_last + 1 = VALUES(own_first), own_first, VALUES(own_first))";
    let sql = format!(
        "INSERT INTO members ({MEMBER}) VALUES {{}} ON DUPLICATE KEY UPDATE \
         delivered_seq = IF(delivered_seq + 1 >= {first}, \
             GREATEST(delivered_seq, VALUES(own_last)), delivered_seq), \
         read_seq = GREATEST(read_seq, VALUES(read_seq)), \
         own_first = {first}, own_last = VALUES(own_last), \
         quiet_seq = GREATEST(quiet_seq, VALUES(quiet_seq))",
    );
    act.write(&sql, rows).await
}

/// Opens the windows of those who come. What they chose before stays.
pub(crate) async fn open_windows(
    act: &mut Act,
    conversation: &ConversationId,
    comers: impl Iterator<Item = (&UserId, Window)>,
    progress: Progress,
) -> Result<(), Fault> {
    let rows = comers
        .map(|(user, window)| row::member_values(user, conversation, window, progress))
        .collect();
    let sql = format!(
        "INSERT INTO members ({MEMBER}) VALUES {{}} ON DUPLICATE KEY UPDATE \
         min_seq = VALUES(min_seq), min_change_seq = VALUES(min_change_seq), \
         since = VALUES(since), end_seq = VALUES(end_seq), \
         end_change_seq = VALUES(end_change_seq), end_at = VALUES(end_at), \
         delivered_seq = VALUES(delivered_seq), read_seq = VALUES(read_seq), \
         own_first = VALUES(own_first), own_last = VALUES(own_last), \
         quiet_seq = VALUES(quiet_seq)",
    );
    act.write(&sql, rows).await
}

/// Ends the window of somebody who goes, unless it ended before.
pub(crate) async fn close_window(
    act: &mut Act,
    user: &UserId,
    conversation: &ConversationId,
    edge: Edge,
) -> Result<(), Fault> {
    let mut params = row::edge_values(Some(edge));
    params.extend(values![user.as_str(), conversation.as_str()]);
    let sql = "UPDATE members SET end_seq = ?, end_change_seq = ?, end_at = ? \
         WHERE user_id = ? AND conversation_id = ? AND end_seq IS NULL";
    act.run(sql, params).await?;
    Ok(())
}

/// How many messages somebody has sent without marking anything read.
pub(crate) async fn quiet_total(act: &mut Act, place: &Place) -> Result<u64, Fault> {
    let sql = "SELECT total FROM quiet_messages WHERE user_id = ? AND conversation_id = ? \
         ORDER BY seq DESC LIMIT 1";
    let rows = act.rows(sql, values![place.0.as_str(), place.1.as_str()]).await?;
    rows.into_iter().next().map_or(Ok(0), |row| Fields::from(row).u64())
}

/// What a mover of cursors is asked.
pub(crate) enum Move {
    /// A cursor goes forward.
    Advance {
        place: Place,
        kind: CursorKind,
        seq: Seq,
        answer: oneshot::Sender<Result<Option<Moved>, StoreError>>,
    },
    /// Somebody was seen.
    Seen { user: UserId, at: Millis, answer: oneshot::Sender<Result<(), StoreError>> },
    /// The end: everything before it is done.
    Close(oneshot::Sender<()>),
}

/// Moves whatever waits, again and again.
pub(crate) async fn mover(core: Arc<Core>, mut queue: mpsc::UnboundedReceiver<Move>) {
    let mut waiting = Vec::with_capacity(LIST_MAX);
    while queue.recv_many(&mut waiting, LIST_MAX).await > 0 {
        let (mut moves, mut seen, mut closing) = (Vec::new(), BTreeMap::new(), None);
        let mut seers = Vec::new();
        for asked in waiting.drain(..) {
            match asked {
                Move::Advance { place, kind, seq, answer } => {
                    moves.push((place, kind, seq, answer));
                }
                Move::Seen { user, at, answer } => {
                    seers.push(answer);
                    let newest = seen.entry(user).or_insert(at);
                    *newest = at.max(*newest);
                }
                Move::Close(answer) => closing = Some(answer),
            }
        }
        if !seen.is_empty() {
            let noted = note_seen(&core, &seen).await.map_err(|fault| fault.to_string());
            for answer in seers {
                let noted = noted.clone().map_err(|error| StoreError::Unavailable(error.into()));
                drop(answer.send(noted)); // whoever asked may be gone
            }
        }
        advance(&core, moves).await;
        if let Some(answer) = closing {
            drop(answer); // which tells whoever waits
            return;
        }
    }
}

type Asked = (Place, CursorKind, Seq, oneshot::Sender<Result<Option<Moved>, StoreError>>);

async fn advance(core: &Core, moves: Vec<Asked>) {
    if moves.is_empty() {
        return;
    }
    let mut tries = core.tries();
    let done = loop {
        match try_advance(core, &moves).await {
            Ok(done) => break Ok(done),
            Err(fault) => match tries.again(fault).await {
                Ok(()) => {}
                Err(error) => break Err(error.to_string()),
            },
        }
    };
    match done {
        Ok(done) => {
            for ((.., answer), moved) in moves.into_iter().zip(done) {
                drop(answer.send(Ok(moved))); // whoever asked may be gone
            }
        }
        Err(error) => {
            for (.., answer) in moves {
                drop(answer.send(Err(StoreError::Unavailable(error.clone().into()))));
            }
        }
    }
}

async fn try_advance(core: &Core, moves: &[Asked]) -> Result<Vec<Option<Moved>>, Fault> {
    let mut act = core.begin().await?;
    let places: BTreeSet<Place> = moves.iter().map(|(place, ..)| place.clone()).collect();
    let mut found = lock(&mut act, &places).await?;
    let heads = heads(&mut act, &places).await?;
    let mut further = BTreeSet::new();
    let mut done = Vec::with_capacity(moves.len());
    for (place, kind, seq, _) in moves {
        let (Some((window, progress)), Some((head, end))) =
            (found.get_mut(place), heads.get(&place.1))
        else {
            done.push(None);
            continue;
        };
        let end = window.until(*end).end;
        let visible_max = end.map_or(*head, |end| end.seq.min(*head));
        let before = progress.cursors;
        progress.acknowledged(*kind, (*seq).min(visible_max));
        if progress.cursors != before {
            further.insert(place);
        }
        done.push(Some(Moved { before, after: progress.cursors }));
    }
    if further.is_empty() {
        act.roll_back().await?;
        return Ok(done);
    }
    let changed = found.iter().filter(|(place, _)| further.contains(place));
    save(&mut act, changed.map(|(place, (window, progress))| (place, *window, *progress))).await?;
    act.commit().await?;
    Ok(done)
}

/// The newest message of each, and where it ended. They are not locked: heads only grow.
async fn heads(
    act: &mut Act,
    places: &BTreeSet<Place>,
) -> Result<HashMap<ConversationId, (Seq, Option<Edge>)>, Fault> {
    let ids: BTreeSet<&str> = places.iter().map(|(_, at)| at.as_str()).collect();
    let ids: Vec<_> = ids.into_iter().map(|id| values![id]).collect();
    let sql =
        "SELECT id, max_seq, end_seq, end_change_seq, end_at FROM conversations WHERE id IN {}";
    let rows = act.look(sql, &ids).await?;
    rows.into_iter()
        .map(|row| {
            let mut fields = Fields::from(row);
            Ok((fields.conversation()?, (fields.seq()?, fields.edge()?)))
        })
        .collect()
}

async fn note_seen(core: &Core, seen: &BTreeMap<UserId, Millis>) -> Result<(), Fault> {
    let mut act = core.begin().await?;
    let rows = seen.iter().map(|(user, at)| values![user.as_str(), at.0]).collect();
    let sql =
        "INSERT INTO last_seen (user_id, at) VALUES {} ON DUPLICATE KEY UPDATE at = VALUES(at)";
    act.write(sql, rows).await?;
    act.commit().await
}
