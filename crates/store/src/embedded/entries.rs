//! A thing as the records that stand for it.

use nexo_chat::ids::UserId;
use nexo_chat::model::Settings;
use serde::Serialize;

use super::batch::Batch;
use super::change_record::ChangeRecord;
use super::group_record::{GroupMemberRecord, GroupRecord, RequestRecord};
use super::keys::{self, Space};
use super::poison::Fault;
use super::record::{
    self, CursorRecord, IdRecord, LoginRecord, MessageRecord, ResetRecord, SettingsRecord,
    UserRecord, WindowRecord,
};
use crate::archive::Item;

/// The records of a lot.
pub(crate) fn batch(lot: &[Item]) -> Result<Batch, Fault> {
    let mut batch = Batch::default();
    for item in lot {
        entries(item, &mut |space, key, value| batch.put(space, key, value))?;
    }
    Ok(batch)
}

/// Appends the bytes of a thing's records: they tell everything about it, and in one way, whatever
/// engine it came from.
pub(crate) fn encode(item: &Item, bytes: &mut Vec<u8>) -> Result<(), Fault> {
    entries(item, &mut |space, key, value| {
        bytes.push(space as u8);
        for part in [key, value] {
            // The length goes first, so that parts cannot run together.
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
    })
}

type Put<'a> = dyn FnMut(Space, &[u8], &[u8]) + 'a;

fn write(
    put: &mut Put<'_>,
    space: Space,
    key: &[u8],
    record: &impl Serialize,
) -> Result<(), Fault> {
    put(space, key, &record::encode(space, key, record)?);
    Ok(())
}

fn entries(item: &Item, put: &mut Put<'_>) -> Result<(), Fault> {
    match item {
        Item::User(user) => {
            write(put, Space::Users, &keys::user(&user.id), &UserRecord::from(user))
        }
        Item::Seen { user, at } => write(put, Space::Seen, &keys::user(user), &at.0),
        Item::Login(login) => {
            write(put, Space::Logins, &login.id.0, &LoginRecord::from(login))?;
            write(put, Space::UserLogins, &keys::user_login(&login.user, login.id), &())?;
            write(put, Space::Refresh, &login.refresh_hash, &login.id.0)
        }
        Item::Used { login, generation, hash } => {
            write(put, Space::Used, &keys::used(*login, *generation), hash)?;
            write(put, Space::Refresh, hash, &login.0)
        }
        Item::Reset { user, code } => {
            write(put, Space::Resets, &keys::user(user), &ResetRecord::from(*code))
        }
        Item::Group(group) => {
            write(put, Space::Groups, &keys::group(&group.id), &GroupRecord::from(&**group))
        }
        Item::Code { code, group } => {
            write(put, Space::Codes, code.as_str().as_bytes(), &group.as_str())
        }
        Item::GroupMember { group, member } => {
            let key = keys::group_member(group, &member.user);
            write(put, Space::GroupMembers, &key, &GroupMemberRecord::from(member))
        }
        Item::Mute { group, user, until } => {
            write(put, Space::Mutes, &keys::group_member(group, user), &until.0)
        }
        Item::Request(request) => {
            let key = keys::group_member(&request.group, &request.user);
            write(put, Space::Requests, &key, &RequestRecord::from(request))
        }
        Item::Message { message, fingerprint } => {
            let key = keys::message(&message.conversation, message.seq);
            write(put, Space::Messages, &key, &MessageRecord::from(&**message))?;
            let place = IdRecord::new(&message.conversation, message.seq, *fingerprint);
            write(put, Space::Ids, &message.id.0, &place)
        }
        Item::Change(change) => {
            let key = keys::message(&change.conversation, change.seq);
            write(put, Space::Changes, &key, &ChangeRecord::from(&**change))
        }
        Item::Member { user, conversation, window, progress, settings } => {
            let key = keys::member(user, conversation);
            write(put, Space::Members, &key, &WindowRecord::from(*window))?;
            write(put, Space::Cursors, &key, &CursorRecord::from(*progress))?;
            if *settings == Settings::default() {
                return Ok(());
            }
            write(put, Space::Settings, &key, &SettingsRecord::from(settings))
        }
        Item::Quiet { user, conversation, seq, total } => {
            write(put, Space::Quiet, &keys::marked(user.as_str(), conversation, *seq), total)
        }
        Item::Mention { whom, conversation, seq, sender } => {
            let whom = whom.as_ref().map_or(keys::EVERYBODY, UserId::as_str);
            let key = keys::marked(whom, conversation, *seq);
            write(put, Space::Mentions, &key, &sender.as_str())
        }
    }
}
