//! Members of conversations: standings, cursors and settings.

use std::future::ready;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use nexo_chat::event::Event;
use nexo_chat::ids::{ConversationId, Seq, UserId};
use nexo_chat::model::{CursorKind, Settings, SettingsChange, Standing};
use nexo_chat::store::{ConversationStore, CursorMove, StoreError, StoreFuture};

use super::core::Core;
use super::cursor_writer::CursorRequest;
use super::fault::SqlFault;
use super::fields::Fields;
use super::row::SETTINGS;
use super::sql::values;
use super::{MySql, enqueue, members, row, standings};
use crate::member_key::{MemberKey, is_private_member};

impl ConversationStore for MySql {
    fn standing(
        &self,
        user: &UserId,
        conversation: &ConversationId,
    ) -> StoreFuture<'_, Option<Standing>> {
        let member_key = (user.clone(), conversation.clone());
        let queued = enqueue(&self.standing_reader, |answer| (member_key, answer));
        queued.unwrap_or_else(|refused| Box::pin(ready(Err(refused))))
    }

    fn standings(
        &self,
        user: &UserId,
        after: Option<&ConversationId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Standing>> {
        let (user, after) = (user.clone(), after.cloned());
        self.spawn_read(async move |core| {
            standings::read_page(&core, &user, after.as_ref(), limit).await
        })
    }

    fn advance_cursor(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        kind: CursorKind,
        seq: Seq,
    ) -> StoreFuture<'_, Option<CursorMove>> {
        let member_key = (user.clone(), conversation.clone());
        if let (CursorKind::Delivered, false) = (kind, self.core.closed.load(Ordering::SeqCst))
            // A full queue is as good: the writer looks for moves after every request.
            && let Some(moved) = self.core.delivered.advance(&member_key, seq, || {
                drop(self.cursor_writer.try_send(CursorRequest::DeliveredMoved));
            })
        {
            return Box::pin(ready(Ok(Some(moved))));
        }
        self.submit_cursor(|answer| CursorRequest::Advance { member_key, kind, seq, answer })
    }

    fn sent_without_read(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        range: RangeInclusive<Seq>,
    ) -> StoreFuture<'_, u64> {
        let member_key = (user.clone(), conversation.clone());
        self.spawn_read(async move |core| {
            let up_to =
                standings::sent_without_read_up_to(&core, &member_key, *range.end()).await?;
            let before =
                standings::sent_without_read_up_to(&core, &member_key, range.start().previous())
                    .await?;
            Ok(up_to.saturating_sub(before))
        })
    }

    fn update_settings(
        &self,
        user: &UserId,
        conversation: &ConversationId,
        change: SettingsChange,
    ) -> StoreFuture<'_, Option<Settings>> {
        let member_key = (user.clone(), conversation.clone());
        self.spawn_write(async move |core| update_settings(&core, member_key, change).await)
    }
}

async fn update_settings(
    core: &Core,
    member_key: MemberKey,
    change: SettingsChange,
) -> Result<Option<Settings>, StoreError> {
    let mut retry = core.retry_policy();
    loop {
        match try_update_settings(core, &member_key, &change).await {
            Ok(Some(settings)) => {
                let (user, conversation) = member_key;
                let settings_now = settings.clone();
                core.announce(&[Event::Settings { user, conversation, settings: settings_now }]);
                return Ok(Some(settings));
            }
            Ok(None) => return Ok(None),
            Err(fault) => retry.wait(fault).await?,
        }
    }
}

async fn try_update_settings(
    core: &Core,
    member_key: &MemberKey,
    change: &SettingsChange,
) -> Result<Option<Settings>, SqlFault> {
    let mut transaction = core.begin().await?;
    let key = values![member_key.0.as_str(), member_key.1.as_str()];
    let sql = format!(
        "SELECT {SETTINGS} FROM members WHERE user_id = ? AND conversation_id = ? FOR UPDATE"
    );
    let row = transaction.rows(&sql, key.clone()).await?.into_iter().next();
    let settings;
    if let Some(row) = row {
        settings = Fields::from(row).settings()?.with(change.clone());
        let mut params = row::settings_values(&settings);
        params.extend(key);
        let sets = SETTINGS.replace(", ", " = ?, ");
        let sql =
            format!("UPDATE members SET {sets} = ? WHERE user_id = ? AND conversation_id = ?");
        transaction.run(&sql, params).await?;
    } else if is_private_member(member_key) {
        settings = Settings::default().with(change.clone());
        members::insert_before_first_message(&mut transaction, member_key, &settings).await?;
    } else {
        transaction.roll_back().await?;
        return Ok(None);
    }
    transaction.commit().await?;
    Ok(Some(settings))
}
