//! What each command asks for.

use nexo_chat::Reason;
use nexo_chat::command::{Command, Outgoing, Target};
use nexo_chat::group::Wanted;
use nexo_chat::ids::{ClientMsgId, GroupId, MessageId, Platform, UserId};
use nexo_chat::membership::{GroupAct, GroupChange, GroupProfile};
use nexo_chat::query::{Query, Where};

use super::decode::{Payload, short};
use super::payload::{
    ChatRequest, CreateGroupRequest, GroupRequest, HeartbeatRequest, HistoryRequest, InviteRequest,
    LoginRequest, MarkReadRequest, MembersRequest, PullOfflineRequest, RecallRequest,
    RegisterRequest, RemoveMemberRequest, SendRequest, SetMemberRoleRequest, TransferOwnerRequest,
    UpdateGroupRequest, ValidateTokenRequest,
};
use super::{GROUP, PRIVATE, content, role_at};
use crate::dialect::{Echo, Inbound, NewAccount};
use crate::mentions;

/// Conversations of one answer.
const CONVERSATIONS_MAX: usize = 1000;
/// People a new group needs in the dotted dialect.
const GROUP_LEAST: usize = 3;

/// Finds out what a command wants. What it speaks of goes into the echo as far as it can be read.
pub(super) fn understand(
    cmd: &str,
    payload: &Payload<'_>,
    echo: &mut Echo,
) -> Result<Inbound, Reason> {
    let query = match cmd {
        "" => return Err(Reason::MissingType),
        "auth.register" => return Ok(register(payload.read()?)),
        "auth.login" => return Ok(login(payload.read()?)),
        "auth.validate_token" => return validate(payload.read()?),
        "heartbeat" => {
            let HeartbeatRequest { .. } = payload.read()?;
            return Ok(Inbound::Command(Command::Ping));
        }
        "chat.send_message" => {
            let outgoing = outgoing(payload.read()?, echo)?;
            return Ok(Inbound::Command(Command::Send(outgoing)));
        }
        "chat.recall_message" => {
            let message = recalled(&payload.read()?, echo)?;
            return Ok(Inbound::Command(Command::Recall { message }));
        }
        "chat.typing" => {
            let ChatRequest { chat_id, chat_type } = payload.read()?;
            let to = target(&chat_id, chat_type)?;
            return Ok(Inbound::Command(Command::Typing { to }));
        }
        "auth.logout" => Query::Logout,
        "chat.mark_read" => mark_read(&payload.read()?)?,
        "chat.pull_offline" => offline(&payload.read()?)?,
        "chat.get_history" => history(&payload.read()?)?,
        "chat.sync_conversations" => Query::Conversations(None, CONVERSATIONS_MAX),
        "chat.hide_conversation" => {
            let ChatRequest { chat_id, chat_type } = payload.read()?;
            Query::Hide(place(&chat_id, chat_type)?)
        }
        "chat.delete_conversation" => {
            let ChatRequest { chat_id, chat_type } = payload.read()?;
            Query::DeleteConversation(place(&chat_id, chat_type)?)
        }
        "group.create" => create(payload.read()?)?,
        "group.get_info" => Query::Group(named(payload)?),
        "group.get_members" => members(&payload.read()?)?,
        "group.get_user_groups" => Query::MyGroups,
        _ => {
            let (group, act) = act(cmd, payload)?;
            Query::Act(group, act)
        }
    };
    Ok(Inbound::Command(Command::Ask(query)))
}

fn register(request: RegisterRequest) -> Inbound {
    let RegisterRequest { username, password, nickname, avatar_url } = request;
    Inbound::Register(NewAccount { user_id: username, password, nickname, avatar: avatar_url })
}

fn login(request: LoginRequest) -> Inbound {
    let LoginRequest { username, password, device_type } = request;
    Inbound::Login { user_id: username, password, platform: platform(&device_type) }
}

/// A device by its name or its number; one that is not known counts as a browser.
fn platform(device: &str) -> Platform {
    const NAMES: [(&str, i32); 5] =
        [("ios", 1), ("android", 2), ("windows", 3), ("macos", 4), ("web", 5)];
    let by_name = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(device));
    let by_number = || device.parse().ok().filter(|number| (1..=5).contains(number));
    Platform(by_name.map(|(_, number)| *number).or_else(by_number).unwrap_or(5))
}

fn validate(request: ValidateTokenRequest) -> Result<Inbound, Reason> {
    let ValidateTokenRequest { token } = request;
    if token.is_empty() {
        Err(Reason::MissingToken)
    } else {
        Ok(Inbound::Auth { token, renews: true })
    }
}

fn outgoing(mut request: SendRequest, echo: &mut Echo) -> Result<Outgoing, Reason> {
    if !request.client_msg_id.is_empty() {
        echo.client_msg_id = Some(short(&request.client_msg_id));
    }
    let client_id = ClientMsgId::parse(&request.client_msg_id)?;
    let to = target(&request.to_id, request.chat_type)?;
    let reply_to = mentions::answered(Some(&request.reply_to_msg_id))?;
    let names = std::mem::take(&mut request.mentions);
    let mut content = content::read(request)?;
    mentions::mention(&mut content, names.iter().map(String::as_str))?;
    Ok(Outgoing { to, client_id, content, reply_to, marks_read: true })
}

fn target(id: &str, chat_type: i32) -> Result<Target, Reason> {
    match chat_type {
        PRIVATE if id.is_empty() => Err(Reason::MissingTo),
        GROUP => group_id(id).map(Target::Group),
        PRIVATE => person(id).map(Target::User),
        _ => Err(Reason::InvalidParam),
    }
}

fn place(id: &str, chat_type: i32) -> Result<Where, Reason> {
    // With an id of a form that nobody can have there is no conversation.
    let not_there = |reason| match reason {
        Reason::UserNotFound | Reason::GroupNotFound => Reason::ConversationNotFound,
        reason => reason,
    };
    target(id, chat_type).map(Where::With).map_err(not_there)
}

fn group_id(id: &str) -> Result<GroupId, Reason> {
    if id.is_empty() { Err(Reason::MissingGroupId) } else { GroupId::parse(id) }
}

fn person(id: &str) -> Result<UserId, Reason> {
    // An id of a form that no user can have belongs to nobody.
    UserId::parse(id).map_err(|_| Reason::UserNotFound)
}

fn people(ids: &[String]) -> Result<Vec<UserId>, Reason> {
    ids.iter().map(|id| person(id)).collect()
}

fn recalled(request: &RecallRequest, echo: &mut Echo) -> Result<MessageId, Reason> {
    if request.msg_id.is_empty() {
        return Err(Reason::MissingServerMsgId);
    }
    echo.server_msg_id = Some(short(&request.msg_id));
    MessageId::parse(&request.msg_id)
}

fn mark_read(request: &MarkReadRequest) -> Result<Query, Reason> {
    let place = place(&request.chat_id, request.chat_type)?;
    Ok(Query::MarkRead(place, mentions::answered(Some(&request.last_msg_id))?))
}

/// A number within its range: zero is the usual one, and more than can be is cut.
fn limit(asked: i32, usual: usize, most: usize) -> Result<usize, Reason> {
    match usize::try_from(asked) {
        Ok(0) => Ok(usual),
        Ok(limit) => Ok(limit.min(most)),
        Err(_) => Err(Reason::InvalidParam),
    }
}

fn offline(request: &PullOfflineRequest) -> Result<Query, Reason> {
    let limit = limit(request.limit, 100, 200)?;
    Ok(Query::Offline { goes_on: !request.cursor.is_empty(), limit })
}

fn history(request: &HistoryRequest) -> Result<Query, Reason> {
    let place = place(&request.chat_id, request.chat_type)?;
    let before = mentions::answered(Some(&request.before_msg_id))?;
    Ok(Query::History(place, before, limit(request.limit, 50, 100)?))
}

fn create(request: CreateGroupRequest) -> Result<Query, Reason> {
    let CreateGroupRequest { group_name, member_ids, avatar_url } = request;
    let profile = GroupProfile { name: group_name, avatar: avatar_url, ..GroupProfile::default() };
    let members = people(&member_ids)?;
    Ok(Query::CreateGroup(Wanted { profile, members, least: GROUP_LEAST, ..Wanted::default() }))
}

fn members(request: &MembersRequest) -> Result<Query, Reason> {
    let group = group_id(&request.group_id)?;
    let size = limit(request.page_size, 20, 100)?;
    let page = limit(request.page, 1, usize::MAX)?;
    Ok(Query::Members(group, (page - 1).saturating_mul(size), size))
}

fn named(payload: &Payload<'_>) -> Result<GroupId, Reason> {
    let GroupRequest { group_id: id } = payload.read()?;
    group_id(&id)
}

/// What is done to a group.
fn act(cmd: &str, payload: &Payload<'_>) -> Result<(GroupId, GroupAct), Reason> {
    Ok(match cmd {
        "group.dismiss" => (named(payload)?, GroupAct::Dismiss),
        "group.leave" => (named(payload)?, GroupAct::Leave),
        "group.invite_members" => {
            let request: InviteRequest = payload.read()?;
            (group_id(&request.group_id)?, GroupAct::Invite(people(&request.member_ids)?))
        }
        "group.remove_member" => {
            let request: RemoveMemberRequest = payload.read()?;
            (group_id(&request.group_id)?, GroupAct::Kick(person(&request.member_id)?))
        }
        "group.update" => {
            let request: UpdateGroupRequest = payload.read()?;
            let change = GroupChange {
                name: request.group_name,
                introduction: request.introduction,
                announcement: request.announcement,
                avatar: request.avatar_url,
                ..GroupChange::default()
            };
            (group_id(&request.group_id)?, GroupAct::Update(change))
        }
        "group.transfer_owner" => {
            let request: TransferOwnerRequest = payload.read()?;
            (group_id(&request.group_id)?, GroupAct::Transfer(person(&request.new_owner_id)?))
        }
        "group.set_member_role" => {
            let request: SetMemberRoleRequest = payload.read()?;
            let role = role_at(request.role).ok_or(Reason::InvalidParam)?;
            let member = person(&request.member_id)?;
            (group_id(&request.group_id)?, GroupAct::SetRole(member, role))
        }
        _ => return Err(Reason::NotImplemented),
    })
}
