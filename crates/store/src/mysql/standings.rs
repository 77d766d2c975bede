//! Where members stand, and what they chose.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use mysql_async::{Row, Value};
use nexo_chat::ids::{ConversationId, Seq, UserId};
use nexo_chat::model::{Kept, Settings, SettingsChange, Standing};
use nexo_chat::store::StoreError;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::core::Core;
use super::cursors::Place;
use super::fault::Fault;
use super::row::{self, Fields, SETTINGS};
use super::sql::{LIST_MAX, looking, values};

/// Looks at the same time: while one waits for the database, the next fills.
const LOOKS_AT_ONCE: usize = 2;

/// The columns of [`standing`], of `members m` and `conversations c`.
const STANDING: &str = "SELECT m.user_id, m.conversation_id, m.min_seq, m.min_change_seq, m.since, m.end_seq, \
     m.end_change_seq, m.end_at, m.delivered_seq, m.read_seq, m.own_first, m.own_last, \
     m.quiet_seq, m.pinned, m.receive, m.hidden_seq, m.hidden_since, m.extra, c.max_seq, \
     c.change_seq, c.newest_at, c.end_seq, c.end_change_seq, c.end_at \
     FROM members m JOIN conversations c ON c.id = m.conversation_id";

/// Where members stand, as one statement saw it all.
pub(crate) async fn standings(
    core: &Core,
    user: &UserId,
    after: Option<&ConversationId>,
    limit: usize,
) -> Result<Vec<Standing>, StoreError> {
    let after = after.map_or("", ConversationId::as_str);
    let sql = format!(
        "{STANDING} WHERE m.user_id = ? AND m.conversation_id > ? \
         ORDER BY m.conversation_id LIMIT ?"
    );
    let rows = core.rows(&sql, values![user.as_str(), after, limit as u64]).await?;
    let mut standings = Vec::with_capacity(rows.len());
    for row in rows {
        standings.push(standing(core, row).await?.1);
    }
    Ok(standings)
}

/// Somebody wants to know where a member stands.
pub(crate) type Look = (Place, oneshot::Sender<Result<Option<Standing>, StoreError>>);

/// Looks where members stand: all that is asked at the same time with one statement.
pub(crate) async fn looker(core: Arc<Core>, mut queue: mpsc::UnboundedReceiver<Look>) {
    let at_once = Arc::new(Semaphore::new(LOOKS_AT_ONCE));
    let mut looks = Vec::new();
    while queue.recv_many(&mut looks, LIST_MAX).await > 0 {
        let Ok(turn) = Arc::clone(&at_once).acquire_owned().await else { return };
        while looks.len() < LIST_MAX
            && let Ok(look) = queue.try_recv()
        {
            looks.push(look);
        }
        let (core, looks) = (Arc::clone(&core), std::mem::take(&mut looks));
        tokio::spawn(async move {
            look(&core, looks).await;
            drop(turn);
        });
    }
}

async fn look(core: &Core, looks: Vec<Look>) {
    let places: BTreeSet<&Place> = looks.iter().map(|(place, _)| place).collect();
    let keys: Vec<_> =
        places.into_iter().map(|(user, at)| values![user.as_str(), at.as_str()]).collect();
    let found = stand(core, &keys).await;
    for (place, answer) in looks {
        let standing = match &found {
            Ok(found) => Ok(found.get(&place).cloned()),
            Err(error) => Err(StoreError::Unavailable(error.to_string().into())),
        };
        drop(answer.send(standing)); // whoever asked may be gone
    }
}

async fn stand(core: &Core, keys: &[Vec<Value>]) -> Result<HashMap<Place, Standing>, StoreError> {
    let sql = format!("{STANDING} WHERE (m.user_id, m.conversation_id) IN {{}}");
    let mut found = HashMap::with_capacity(keys.len());
    for (sql, params) in looking(&sql, &[], keys) {
        for row in core.rows(&sql, params).await? {
            let (user, standing) = standing(core, row).await?;
            found.insert((user, standing.conversation.clone()), standing);
        }
    }
    Ok(found)
}

async fn standing(core: &Core, row: Row) -> Result<(UserId, Standing), StoreError> {
    let (user, mut standing, quiet) = read_standing(row)?;
    let from = standing.read_from();
    if quiet > from {
        let place = (user.clone(), standing.conversation.clone());
        let up_to = quiet_up_to(core, &place, standing.visible_max()).await?;
        standing.own_unread = up_to.saturating_sub(quiet_up_to(core, &place, from).await?);
    }
    Ok((user, standing))
}

fn read_standing(row: Row) -> Result<(UserId, Standing, Seq), Fault> {
    let mut fields = Fields::from(row);
    let user = fields.user()?;
    let (conversation, window) = (fields.conversation()?, fields.window()?);
    let (progress, settings) = (fields.progress()?, fields.settings()?);
    let (max_seq, change_seq, newest_at) = (fields.seq()?, fields.seq()?, fields.millis()?);
    let end = fields.edge()?;
    let standing = Standing {
        conversation,
        window: window.until(end),
        cursors: progress.cursors,
        own_unread: 0,
        settings,
        max_seq,
        change_seq,
        newest_at,
        has_ended: end.is_some(),
    };
    Ok((user, standing, progress.quiet))
}

/// How many messages up to a place somebody sent without marking anything read.
pub(crate) async fn quiet_up_to(core: &Core, place: &Place, seq: Seq) -> Result<u64, StoreError> {
    let sql = "SELECT total FROM quiet_messages WHERE user_id = ? AND conversation_id = ? \
         AND seq <= ? ORDER BY seq DESC LIMIT 1";
    let rows = core.rows(sql, values![place.0.as_str(), place.1.as_str(), seq.0]).await?;
    Ok(rows.into_iter().next().map_or(Ok(0), |row| Fields::from(row).u64())?)
}

/// Changes what a member chose.
pub(crate) async fn choose(
    core: &Core,
    place: Place,
    change: SettingsChange,
) -> Result<Option<Settings>, StoreError> {
    let mut tries = core.tries();
    loop {
        match try_choose(core, &place, &change).await {
            Ok(Some(settings)) => {
                let (user, conversation) = place;
                let settings_now = settings.clone();
                core.announce(&[Kept::Chose { user, conversation, settings: settings_now }]);
                return Ok(Some(settings));
            }
            Ok(None) => return Ok(None),
            Err(fault) => tries.again(fault).await?,
        }
    }
}

async fn try_choose(
    core: &Core,
    place: &Place,
    change: &SettingsChange,
) -> Result<Option<Settings>, Fault> {
    let mut act = core.begin().await?;
    let key = values![place.0.as_str(), place.1.as_str()];
    let sql = format!(
        "SELECT {SETTINGS} FROM members WHERE user_id = ? AND conversation_id = ? FOR UPDATE"
    );
    let Some(row) = act.rows(&sql, key.clone()).await?.into_iter().next() else {
        act.roll_back().await?;
        return Ok(None);
    };
    let settings = Fields::from(row).settings()?.with(change.clone());
    let mut params = row::settings_values(&settings);
    params.extend(key);
    let sets = SETTINGS.replace(", ", " = ?, ");
    let sql = format!("UPDATE members SET {sets} = ? WHERE user_id = ? AND conversation_id = ?");
    act.run(&sql, params).await?;
    act.commit().await?;
    Ok(Some(settings))
}
