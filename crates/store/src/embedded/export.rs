//! Gives everything that is kept.

use std::ops::Bound;

use nexo_chat::ids::{ConversationId, GroupId, LoginId, Millis, Seq};
use nexo_chat::membership::JoinCode;
use nexo_chat::model::Fingerprint;
use nexo_chat::store::{Order, Stored};

use super::Embedded;
use super::change_record::ChangeRecord;
use super::core::Core;
use super::group_record::{GroupMemberRecord, GroupRecord, RequestRecord};
use super::keys::{self, Space};
use super::poison::Fault;
use super::record::{
    self, IdRecord, LoginRecord, MessageRecord, ResetRecord, UserRecord, impossible, user_id,
};
use crate::archive::{Export, Item, Lots};

/// The keyspaces that things are found in, in the order of their kinds. What the others hold is
/// told with these, or follows from them.
pub(crate) const SPACES: [Space; 15] = [
    Space::Users,
    Space::Seen,
    Space::Logins,
    Space::Used,
    Space::Resets,
    Space::Groups,
    Space::Codes,
    Space::GroupMembers,
    Space::Mutes,
    Space::Requests,
    Space::Messages,
    Space::Changes,
    Space::Members,
    Space::Quiet,
    Space::Mentions,
];

/// Records read at a time, and about their bytes.
const PAGE: usize = 1024;
pub(super) const PAGE_BYTES: usize = 2 << 20;

impl Export for Embedded {
    fn export(&self, lots: Lots) -> Stored<'static, ()> {
        self.scan(move |core| all(core, lots))
    }

    fn about(&self) -> Stored<'_, u64> {
        self.look(|core| Ok(SPACES.into_iter().map(|space| core.engine.about(space)).sum()))
    }
}

/// Gives everything, unless nobody takes it any more.
fn all(core: &Core, mut lots: Lots) -> Result<(), Fault> {
    for space in SPACES {
        let mut from = Bound::Unbounded;
        loop {
            let range = (from, Bound::Unbounded);
            let page = core.engine.scan(space, range, PAGE, Order::Ascending, PAGE_BYTES)?;
            let Some((last, _)) = page.last() else { break };
            from = Bound::Excluded(last.to_vec());
            for (key, value) in page {
                if lots.give_blocking(item(core, space, &key, &value)?).is_err() {
                    return Ok(());
                }
            }
        }
    }
    drop(lots.end_blocking()); // who takes no more has told why
    Ok(())
}

/// The thing that a record stands for.
fn item(core: &Core, space: Space, key: &[u8], value: &[u8]) -> Result<Item, Fault> {
    match space {
        Space::Users => {
            let record: UserRecord<'_> = record::decode(space, key, value)?;
            Ok(Item::User(record.user(&user_id(text(space, key)?)?)))
        }
        Space::Seen => {
            let user = user_id(text(space, key)?)?;
            Ok(Item::Seen { user, at: Millis(record::decode(space, key, value)?) })
        }
        Space::Logins => {
            let record: LoginRecord<'_> = record::decode(space, key, value)?;
            Ok(Item::Login(record.login(LoginId(array(space, key)?))?))
        }
        Space::Used => used(key, value),
        Space::Resets => {
            let record: ResetRecord = record::decode(space, key, value)?;
            Ok(Item::Reset { user: user_id(text(space, key)?)?, code: record.into() })
        }
        Space::Groups => {
            let record: GroupRecord<'_> = record::decode(space, key, value)?;
            Ok(Item::Group(Box::new(record.group(&group_id(space, text(space, key)?)?)?)))
        }
        Space::Codes => code(key, value),
        Space::GroupMembers | Space::Mutes | Space::Requests => in_group(space, key, value),
        Space::Messages => message(core, key, value),
        Space::Changes => {
            let (conversation, seq) = placed(space, key)?;
            let record: ChangeRecord<'_> = record::decode(space, key, value)?;
            Ok(Item::Change(Box::new(record.change(&conversation, seq)?)))
        }
        Space::Members => member(core, key),
        _ => marked(space, key, value),
    }
}

fn code(key: &[u8], value: &[u8]) -> Result<Item, Fault> {
    let space = Space::Codes;
    let code = JoinCode::parse(text(space, key)?);
    let code = code.ok_or_else(|| impossible(space, "not a join code"))?;
    Ok(Item::Code { code, group: group_id(space, record::decode(space, key, value)?)? })
}

fn used(key: &[u8], value: &[u8]) -> Result<Item, Fault> {
    let space = Space::Used;
    let (login, generation) = key.split_at_checked(16).ok_or_else(|| strange(space))?;
    Ok(Item::Used {
        login: LoginId(array(space, login)?),
        generation: u64::from_be_bytes(array(space, generation)?),
        hash: record::decode(space, key, value)?,
    })
}

/// What is kept by group and user.
fn in_group(space: Space, key: &[u8], value: &[u8]) -> Result<Item, Fault> {
    let (group, user) = keys::split(key).ok_or_else(|| strange(space))?;
    let (group, user) = (group_id(space, group)?, user_id(text(space, user)?)?);
    match space {
        Space::GroupMembers => {
            let record: GroupMemberRecord<'_> = record::decode(space, key, value)?;
            Ok(Item::GroupMember { group, member: record.member(user)? })
        }
        Space::Mutes => {
            let until = Millis(record::decode(space, key, value)?);
            Ok(Item::Mute { group, user, until })
        }
        _ => {
            let record: RequestRecord<'_> = record::decode(space, key, value)?;
            Ok(Item::Request(record.request(&group, user)))
        }
    }
}

fn message(core: &Core, key: &[u8], value: &[u8]) -> Result<Item, Fault> {
    let (conversation, seq) = placed(Space::Messages, key)?;
    let record: MessageRecord<'_> = record::decode(Space::Messages, key, value)?;
    let message = record.message(&conversation, seq)?;
    let Some(bytes) = core.engine.get(Space::Ids, &message.id.0)? else {
        return Err(impossible(Space::Ids, "the id of a message is missing"));
    };
    let place: IdRecord<'_> = record::decode(Space::Ids, &message.id.0, &bytes)?;
    if place.conversation != conversation.as_str() || place.seq != seq.0 {
        return Err(impossible(Space::Ids, "the id of a message leads elsewhere"));
    }
    let fingerprint: Fingerprint = place.fingerprint();
    Ok(Item::Message { message: Box::new(message), fingerprint })
}

/// A place in a conversation, with the cursors that no file has yet.
fn member(core: &Core, key: &[u8]) -> Result<Item, Fault> {
    let (user, conversation) = keys::split(key).ok_or_else(|| strange(Space::Members))?;
    let conversation = ConversationId::stored(text(Space::Members, conversation)?);
    let place = (user_id(user)?, conversation);
    let member = core.members.get(&core.engine, &place)?;
    let member = member.ok_or_else(|| impossible(Space::Members, "a place is gone"))?;
    let (user, conversation) = place;
    let (window, progress, settings) = (member.window, member.progress, member.settings);
    Ok(Item::Member { user, conversation, window, progress, settings })
}

/// What is kept by person, conversation and seq.
fn marked(space: Space, key: &[u8], value: &[u8]) -> Result<Item, Fault> {
    let (who, rest) = keys::split(key).ok_or_else(|| strange(space))?;
    let (conversation, seq) = placed(space, rest)?;
    if space == Space::Quiet {
        let (user, total) = (user_id(who)?, record::decode(space, key, value)?);
        return Ok(Item::Quiet { user, conversation, seq, total });
    }
    let whom = (who != keys::EVERYBODY).then(|| user_id(who)).transpose()?;
    let sender = user_id(record::decode(space, key, value)?)?;
    Ok(Item::Mention { whom, conversation, seq, sender })
}

/// The conversation and the seq that a key ends with.
fn placed(space: Space, key: &[u8]) -> Result<(ConversationId, Seq), Fault> {
    let (conversation, seq) = keys::split(key).ok_or_else(|| strange(space))?;
    Ok((ConversationId::stored(conversation), Seq(u64::from_be_bytes(array(space, seq)?))))
}

fn text(space: Space, bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| strange(space))
}

fn array<const N: usize>(space: Space, bytes: &[u8]) -> Result<[u8; N], Fault> {
    bytes.try_into().map_err(|_| strange(space))
}

fn group_id(space: Space, id: &str) -> Result<GroupId, Fault> {
    GroupId::parse(id).map_err(|_| strange(space))
}

fn strange(space: Space) -> Fault {
    impossible(space, "a key that makes no sense")
}
