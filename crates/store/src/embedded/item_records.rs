//! Encodes an item as its records.

use nexo_chat::ids::UserId;
use nexo_chat::model::Settings;
use serde::Serialize;

use super::batch::Batch;
use super::keys::{self, Keyspace};
use super::poison::EngineFault;
use super::record::{
    self, ChangeRecord, CursorRecord, GroupMemberRecord, GroupRecord, IdRecord, LoginRecord,
    MessageRecord, RequestRecord, ResetRecord, SettingsRecord, UserRecord, WindowRecord,
};
use crate::archive::Item;

/// Returns the records of the items.
pub(crate) fn batch_of(items: &[Item]) -> Result<Batch, EngineFault> {
    let mut batch = Batch::default();
    for item in items {
        put_records(item, &mut |keyspace, key, value| batch.put(keyspace, key, value))?;
    }
    Ok(batch)
}

/// Appends the bytes of an item's records: they contain everything about it, and are the same
/// whatever engine it came from.
pub(crate) fn encode(item: &Item, bytes: &mut Vec<u8>) -> Result<(), EngineFault> {
    put_records(item, &mut |keyspace, key, value| {
        bytes.push(keyspace as u8);
        for part in [key, value] {
            // The length goes first, so that neighbouring parts cannot be confused.
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        }
    })
}

type PutRecord<'a> = dyn FnMut(Keyspace, &[u8], &[u8]) + 'a;

fn write(
    put: &mut PutRecord<'_>,
    keyspace: Keyspace,
    key: &[u8],
    record: &impl Serialize,
) -> Result<(), EngineFault> {
    put(keyspace, key, &record::encode(keyspace, key, record)?);
    Ok(())
}

fn put_records(item: &Item, put: &mut PutRecord<'_>) -> Result<(), EngineFault> {
    match item {
        Item::User(user) => {
            write(put, Keyspace::Users, &keys::user(&user.id), &UserRecord::from(user))
        }
        Item::LastSeen { user, at } => write(put, Keyspace::LastSeen, &keys::user(user), &at.0),
        Item::Login(login) => {
            write(put, Keyspace::Logins, &login.id.0, &LoginRecord::from(login))?;
            write(put, Keyspace::UserLogins, &keys::user_login(&login.user, login.id), &())?;
            write(put, Keyspace::RefreshTokens, &login.refresh_hash, &login.id.0)
        }
        Item::UsedToken { login, generation, hash } => {
            write(put, Keyspace::UsedTokens, &keys::used_token(*login, *generation), hash)?;
            write(put, Keyspace::RefreshTokens, hash, &login.0)
        }
        Item::ResetCode { user, code } => {
            write(put, Keyspace::ResetCodes, &keys::user(user), &ResetRecord::from(*code))
        }
        Item::Group(group) => {
            write(put, Keyspace::Groups, &keys::group(&group.id), &GroupRecord::from(&**group))
        }
        Item::JoinCode { code, group } => {
            write(put, Keyspace::JoinCodes, code.as_str().as_bytes(), &group.as_str())
        }
        Item::GroupMember { group, member } => {
            let key = keys::group_member(group, &member.user);
            write(put, Keyspace::GroupMembers, &key, &GroupMemberRecord::from(member))
        }
        Item::Mute { group, user, until } => {
            write(put, Keyspace::Mutes, &keys::group_member(group, user), &until.0)
        }
        Item::JoinRequest(request) => {
            let key = keys::group_member(&request.group, &request.user);
            write(put, Keyspace::JoinRequests, &key, &RequestRecord::from(request))
        }
        Item::Message { message, fingerprint } => {
            let key = keys::message(&message.conversation, message.seq);
            write(put, Keyspace::Messages, &key, &MessageRecord::from(&**message))?;
            let location = IdRecord::new(&message.conversation, message.seq, *fingerprint);
            write(put, Keyspace::MessageIds, &message.id.0, &location)
        }
        Item::Change(change) => {
            let key = keys::message(&change.conversation, change.seq);
            write(put, Keyspace::Changes, &key, &ChangeRecord::from(&**change))
        }
        Item::Member { user, conversation, window, progress, settings } => {
            let key = keys::member(user, conversation);
            write(put, Keyspace::Members, &key, &WindowRecord::from(*window))?;
            write(put, Keyspace::Cursors, &key, &CursorRecord::from(*progress))?;
            if *settings == Settings::default() {
                return Ok(());
            }
            write(put, Keyspace::Settings, &key, &SettingsRecord::from(settings))
        }
        Item::SentWithoutRead { user, conversation, seq, total } => write(
            put,
            Keyspace::SentWithoutRead,
            &keys::message_mark(user.as_str(), conversation, *seq),
            total,
        ),
        Item::Mention { whom, conversation, seq, sender } => {
            let whom = whom.as_ref().map_or(keys::MENTION_ALL, UserId::as_str);
            let key = keys::message_mark(whom, conversation, *seq);
            write(put, Keyspace::Mentions, &key, &sender.as_str())
        }
        Item::Document { id, body } => {
            write(put, Keyspace::Documents, &keys::document(id), &body.as_slice())
        }
    }
}
