//! What a member chose for a conversation.

use nexo_chat::model::{Kept, Settings, SettingsChange};

use super::cursors::{MemberChange, Place};
use super::keys::{self, Space};
use super::pending::Pending;
use super::poison::Fault;
use super::record::{self, SettingsRecord};

/// Changes what a member chose; `None` if they never were a member.
pub(crate) fn update(
    pending: &mut Pending<'_>,
    place: Place,
    change: SettingsChange,
) -> Result<Option<Settings>, Fault> {
    let key = keys::member(&place.0, &place.1);
    if pending.get(Space::Members, &key)?.is_none() {
        return Ok(None);
    }
    let before = match pending.get(Space::Settings, &key)? {
        Some(bytes) => {
            record::decode::<SettingsRecord<'_>>(Space::Settings, &key, &bytes)?.settings()?
        }
        None => Settings::default(),
    };
    let settings = before.with(change);
    pending.set(Space::Settings, key, &SettingsRecord::from(&settings))?;
    let (user, conversation) = place.clone();
    let decided = pending.decided();
    decided.members.push((place, MemberChange::Chose(settings.clone())));
    let chose = Kept::Chose { user, conversation, settings: settings.clone() };
    decided.kept.push(chose);
    Ok(Some(settings))
}
