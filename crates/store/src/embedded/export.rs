//! Exports everything in the store.

use std::ops::Bound;

use nexo_chat::ids::{ConversationId, GroupId, LoginId, Millis, Seq};
use nexo_chat::membership::JoinCode;
use nexo_chat::model::Fingerprint;
use nexo_chat::store::{Order, StoreFuture};

use super::Embedded;
use super::core::Core;
use super::keys::{self, Keyspace};
use super::poison::EngineFault;
use super::record::{
    self, ChangeRecord, GroupMemberRecord, GroupRecord, IdRecord, LoginRecord, MessageRecord,
    RequestRecord, ResetRecord, UserRecord, impossible, user_id,
};
use crate::archive::{Export, Item, ItemSender};

/// The keyspaces that items are read from, in the order of their kinds. The others are read along
/// with these, or are derived from them.
pub(crate) const EXPORTED: [Keyspace; 16] = [
    Keyspace::Users,
    Keyspace::LastSeen,
    Keyspace::Logins,
    Keyspace::UsedTokens,
    Keyspace::ResetCodes,
    Keyspace::Groups,
    Keyspace::JoinCodes,
    Keyspace::GroupMembers,
    Keyspace::Mutes,
    Keyspace::JoinRequests,
    Keyspace::Messages,
    Keyspace::Changes,
    Keyspace::Members,
    Keyspace::SentWithoutRead,
    Keyspace::Mentions,
    Keyspace::Documents,
];

/// Records read at a time, and about their bytes.
const PAGE_RECORDS: usize = 1024;
pub(super) const PAGE_BYTES: usize = 2 << 20;

impl Export for Embedded {
    fn export(&self, items: ItemSender) -> StoreFuture<'static, ()> {
        self.read_blocking(move |core| export_all(core, items))
    }

    fn approximate_len(&self) -> StoreFuture<'_, u64> {
        self.read_now(|core| {
            Ok(EXPORTED.into_iter().map(|keyspace| core.engine.approximate_len(keyspace)).sum())
        })
    }
}

/// Sends all items; ends early if the receiver is gone.
fn export_all(core: &Core, mut items: ItemSender) -> Result<(), EngineFault> {
    for keyspace in EXPORTED {
        let mut from = Bound::Unbounded;
        loop {
            let range = (from, Bound::Unbounded);
            let page =
                core.engine.scan(keyspace, range, PAGE_RECORDS, Order::Ascending, PAGE_BYTES)?;
            let Some((last, _)) = page.last() else { break };
            from = Bound::Excluded(last.to_vec());
            for (key, value) in page {
                if items.send_blocking(item(core, keyspace, &key, &value)?).is_err() {
                    return Ok(());
                }
            }
        }
    }
    drop(items.finish_blocking()); // a receiver that is gone reports its own error
    Ok(())
}

/// Decodes a record into an item.
pub(crate) fn item(
    core: &Core,
    keyspace: Keyspace,
    key: &[u8],
    value: &[u8],
) -> Result<Item, EngineFault> {
    match keyspace {
        Keyspace::Users => {
            let record: UserRecord<'_> = record::decode(keyspace, key, value)?;
            Ok(Item::User(record.user(&user_id(text(keyspace, key)?)?)?))
        }
        Keyspace::LastSeen => {
            let user = user_id(text(keyspace, key)?)?;
            Ok(Item::LastSeen { user, at: Millis(record::decode(keyspace, key, value)?) })
        }
        Keyspace::Logins => {
            let record: LoginRecord<'_> = record::decode(keyspace, key, value)?;
            Ok(Item::Login(record.login(LoginId(array(keyspace, key)?))?))
        }
        Keyspace::UsedTokens => used(key, value),
        Keyspace::ResetCodes => {
            let record: ResetRecord = record::decode(keyspace, key, value)?;
            Ok(Item::ResetCode { user: user_id(text(keyspace, key)?)?, code: record.into() })
        }
        Keyspace::Groups => {
            let record: GroupRecord<'_> = record::decode(keyspace, key, value)?;
            Ok(Item::Group(Box::new(record.group(&group_id(keyspace, text(keyspace, key)?)?)?)))
        }
        Keyspace::JoinCodes => code(key, value),
        Keyspace::GroupMembers | Keyspace::Mutes | Keyspace::JoinRequests => {
            in_group(keyspace, key, value)
        }
        Keyspace::Messages => message(core, key, value),
        Keyspace::Changes => {
            let (conversation, seq) = conversation_and_seq(keyspace, key)?;
            let record: ChangeRecord<'_> = record::decode(keyspace, key, value)?;
            Ok(Item::Change(Box::new(record.change(&conversation, seq)?)))
        }
        Keyspace::Members => member(core, key),
        Keyspace::Documents => {
            let id = keys::document_of(key).ok_or_else(|| malformed_key(keyspace))?;
            let body = record::decode::<&[u8]>(keyspace, key, value)?.to_vec();
            Ok(Item::Document { id, body })
        }
        _ => mark(keyspace, key, value),
    }
}

fn code(key: &[u8], value: &[u8]) -> Result<Item, EngineFault> {
    let keyspace = Keyspace::JoinCodes;
    let code = JoinCode::parse(text(keyspace, key)?);
    let code = code.ok_or_else(|| impossible(keyspace, "not a join code"))?;
    Ok(Item::JoinCode { code, group: group_id(keyspace, record::decode(keyspace, key, value)?)? })
}

fn used(key: &[u8], value: &[u8]) -> Result<Item, EngineFault> {
    let keyspace = Keyspace::UsedTokens;
    let (login, generation) = key.split_at_checked(16).ok_or_else(|| malformed_key(keyspace))?;
    Ok(Item::UsedToken {
        login: LoginId(array(keyspace, login)?),
        generation: u64::from_be_bytes(array(keyspace, generation)?),
        hash: record::decode(keyspace, key, value)?,
    })
}

/// Decodes a record that has a group and a user as its key.
fn in_group(keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<Item, EngineFault> {
    let (group, user) = keys::split(key).ok_or_else(|| malformed_key(keyspace))?;
    let (group, user) = (group_id(keyspace, group)?, user_id(text(keyspace, user)?)?);
    match keyspace {
        Keyspace::GroupMembers => {
            let record: GroupMemberRecord<'_> = record::decode(keyspace, key, value)?;
            Ok(Item::GroupMember { group, member: record.member(user)? })
        }
        Keyspace::Mutes => {
            let until = Millis(record::decode(keyspace, key, value)?);
            Ok(Item::Mute { group, user, until })
        }
        _ => {
            let record: RequestRecord<'_> = record::decode(keyspace, key, value)?;
            Ok(Item::JoinRequest(record.request(&group, user)))
        }
    }
}

fn message(core: &Core, key: &[u8], value: &[u8]) -> Result<Item, EngineFault> {
    let (conversation, seq) = conversation_and_seq(Keyspace::Messages, key)?;
    let record: MessageRecord<'_> = record::decode(Keyspace::Messages, key, value)?;
    let message = record.message(&conversation, seq)?;
    let Some(bytes) = core.engine.get(Keyspace::MessageIds, &message.id.0)? else {
        return Err(impossible(Keyspace::MessageIds, "the id of a message is missing"));
    };
    let location: IdRecord<'_> = record::decode(Keyspace::MessageIds, &message.id.0, &bytes)?;
    if location.conversation != conversation.as_str() || location.seq != seq.0 {
        return Err(impossible(Keyspace::MessageIds, "the id of a message leads elsewhere"));
    }
    let fingerprint: Fingerprint = location.fingerprint();
    Ok(Item::Message { message: Box::new(message), fingerprint })
}

/// Decodes a member, with cursors from memory that are in no file yet.
fn member(core: &Core, key: &[u8]) -> Result<Item, EngineFault> {
    let (user, conversation) = keys::split(key).ok_or_else(|| malformed_key(Keyspace::Members))?;
    let conversation = ConversationId::stored(text(Keyspace::Members, conversation)?);
    let member_key = (user_id(user)?, conversation);
    let member = core.members.get(&core.engine, &member_key)?;
    let member = member.ok_or_else(|| impossible(Keyspace::Members, "a member is missing"))?;
    let (user, conversation) = member_key;
    let (window, progress, settings) = (member.window, member.progress, member.settings);
    Ok(Item::Member { user, conversation, window, progress, settings })
}

/// Decodes a record that has a user, a conversation and a seq as its key.
fn mark(keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<Item, EngineFault> {
    let (who, rest) = keys::split(key).ok_or_else(|| malformed_key(keyspace))?;
    let (conversation, seq) = conversation_and_seq(keyspace, rest)?;
    if keyspace == Keyspace::SentWithoutRead {
        let (user, total) = (user_id(who)?, record::decode(keyspace, key, value)?);
        return Ok(Item::SentWithoutRead { user, conversation, seq, total });
    }
    let whom = (who != keys::MENTION_ALL).then(|| user_id(who)).transpose()?;
    let sender = user_id(record::decode(keyspace, key, value)?)?;
    Ok(Item::Mention { whom, conversation, seq, sender })
}

/// Splits the end of a key into a conversation and a seq.
fn conversation_and_seq(
    keyspace: Keyspace,
    key: &[u8],
) -> Result<(ConversationId, Seq), EngineFault> {
    let (conversation, seq) = keys::split(key).ok_or_else(|| malformed_key(keyspace))?;
    Ok((ConversationId::stored(conversation), Seq(u64::from_be_bytes(array(keyspace, seq)?))))
}

fn text(keyspace: Keyspace, bytes: &[u8]) -> Result<&str, EngineFault> {
    std::str::from_utf8(bytes).map_err(|_| malformed_key(keyspace))
}

fn array<const N: usize>(keyspace: Keyspace, bytes: &[u8]) -> Result<[u8; N], EngineFault> {
    bytes.try_into().map_err(|_| malformed_key(keyspace))
}

fn group_id(keyspace: Keyspace, id: &str) -> Result<GroupId, EngineFault> {
    GroupId::parse(id).map_err(|_| malformed_key(keyspace))
}

fn malformed_key(keyspace: Keyspace) -> EngineFault {
    impossible(keyspace, "a key that makes no sense")
}
