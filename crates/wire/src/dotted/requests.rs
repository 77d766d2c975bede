//! Decodes the payload of each command.

use nexo_chat::Reason;
use nexo_chat::command::{Command, NewMessage, Target};
use nexo_chat::group::NewGroupRequest;
use nexo_chat::ids::{ClientMsgId, GroupId, MessageId, Platform, UserId};
use nexo_chat::membership::{GroupAction, GroupChange, GroupProfile};
use nexo_chat::query::{ConversationRef, Query};

use super::decode::{RequestPayload, shorten};
use super::payload::{
    BlockRequest, ChatRequest, CreateGroupRequest, GroupRequest, HeartbeatRequest, HistoryRequest,
    InviteRequest, LoginRequest, MarkReadRequest, MembersRequest, PullOfflineRequest,
    RecallRequest, RegisterRequest, RemoveMemberRequest, SendRequest, SetMemberRoleRequest,
    TransferOwnerRequest, UpdateGroupRequest, ValidateTokenRequest,
};
use super::{GROUP, PRIVATE, content, role_from_number};
use crate::dialect::{Echo, Inbound, NewAccount};
use crate::mentions;
use crate::parse_ids::{group_id, user_id, user_ids};

/// Conversations of one answer.
const CONVERSATIONS_MAX: usize = 1000;
/// Members a new group needs in this dialect.
const GROUP_MEMBERS_MIN: usize = 3;

/// Decodes a command. The ids of its message go into the echo, also if it is then refused.
pub(super) fn inbound(
    cmd: &str,
    payload: &RequestPayload<'_>,
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
            let new_message = new_message(payload.read()?, echo)?;
            return Ok(Inbound::Command(Command::Send(new_message)));
        }
        "chat.recall_message" => {
            let message = recalled_message(&payload.read()?, echo)?;
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
            Query::Hide(conversation(&chat_id, chat_type)?)
        }
        "chat.delete_conversation" => {
            let ChatRequest { chat_id, chat_type } = payload.read()?;
            Query::DeleteConversation(conversation(&chat_id, chat_type)?)
        }
        "friend.block" => Query::Block(block_target(payload)?),
        "friend.unblock" => Query::Unblock(block_target(payload)?),
        "friend.get_block_list" => Query::Blocks,
        "group.create" => create(payload.read()?)?,
        "group.get_info" => Query::Group(group(payload)?),
        "group.get_members" => members(&payload.read()?)?,
        "group.get_user_groups" => Query::MyGroups,
        _ => {
            let (group, action) = group_action(cmd, payload)?;
            Query::ChangeGroup(group, action)
        }
    };
    Ok(Inbound::Command(Command::Query(query)))
}

fn register(request: RegisterRequest) -> Inbound {
    let RegisterRequest { username, password, nickname, avatar_url } = request;
    Inbound::Register(NewAccount { user_id: username, password, nickname, avatar: avatar_url })
}

fn login(request: LoginRequest) -> Inbound {
    let LoginRequest { username, password, device_type } = request;
    Inbound::Login { user_id: username, password, platform: platform(&device_type) }
}

/// A device by its name or number; an unknown one counts as a browser.
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

fn new_message(mut request: SendRequest, echo: &mut Echo) -> Result<NewMessage, Reason> {
    if !request.client_msg_id.is_empty() {
        echo.client_msg_id = Some(shorten(&request.client_msg_id));
    }
    let client_id = ClientMsgId::parse(&request.client_msg_id)?;
    let to = target(&request.to_id, request.chat_type)?;
    let reply_to = mentions::message_id(Some(&request.reply_to_msg_id))?;
    let names = std::mem::take(&mut request.mentions);
    let mut content = content::decode(request)?;
    mentions::add_mentions(&mut content, names.iter().map(String::as_str))?;
    Ok(NewMessage { to, client_id, content, reply_to, marks_read: true })
}

fn target(id: &str, chat_type: i32) -> Result<Target, Reason> {
    match chat_type {
        PRIVATE if id.is_empty() => Err(Reason::MissingTo),
        GROUP => group_id(Some(id)).map(Target::Group),
        PRIVATE => user_id(id).map(Target::User),
        _ => Err(Reason::InvalidParam),
    }
}

fn conversation(id: &str, chat_type: i32) -> Result<ConversationRef, Reason> {
    let not_there = |reason| match reason {
        Reason::UserNotFound | Reason::GroupNotFound => Reason::ConversationNotFound,
        reason => reason,
    };
    target(id, chat_type).map(ConversationRef::With).map_err(not_there)
}

fn recalled_message(request: &RecallRequest, echo: &mut Echo) -> Result<MessageId, Reason> {
    if request.msg_id.is_empty() {
        return Err(Reason::MissingServerMsgId);
    }
    echo.server_msg_id = Some(shorten(&request.msg_id).into());
    MessageId::parse(&request.msg_id)
}

fn mark_read(request: &MarkReadRequest) -> Result<Query, Reason> {
    let conversation = conversation(&request.chat_id, request.chat_type)?;
    Ok(Query::MarkRead(conversation, mentions::message_id(Some(&request.last_msg_id))?))
}

/// A page size: zero is the default, and more than `max` is cut to `max`.
fn limit(asked: i32, default: usize, max: usize) -> Result<usize, Reason> {
    match usize::try_from(asked) {
        Ok(0) => Ok(default),
        Ok(limit) => Ok(limit.min(max)),
        Err(_) => Err(Reason::InvalidParam),
    }
}

fn offline(request: &PullOfflineRequest) -> Result<Query, Reason> {
    let limit = limit(request.limit, 100, 200)?;
    Ok(Query::Offline { continues: !request.cursor.is_empty(), limit })
}

fn history(request: &HistoryRequest) -> Result<Query, Reason> {
    let conversation = conversation(&request.chat_id, request.chat_type)?;
    let before = mentions::message_id(Some(&request.before_msg_id))?;
    Ok(Query::History(conversation, before, limit(request.limit, 50, 100)?))
}

fn create(request: CreateGroupRequest) -> Result<Query, Reason> {
    let CreateGroupRequest { group_name, member_ids, avatar_url } = request;
    let profile = GroupProfile { name: group_name, avatar: avatar_url, ..GroupProfile::default() };
    let members = user_ids(&member_ids)?;
    Ok(Query::CreateGroup(NewGroupRequest {
        profile,
        members,
        members_min: GROUP_MEMBERS_MIN,
        ..NewGroupRequest::default()
    }))
}

fn members(request: &MembersRequest) -> Result<Query, Reason> {
    let group = group_id(Some(&request.group_id))?;
    let size = limit(request.page_size, 20, 100)?;
    let page = limit(request.page, 1, usize::MAX)?;
    Ok(Query::Members(group, (page - 1).saturating_mul(size), size))
}

fn block_target(payload: &RequestPayload<'_>) -> Result<UserId, Reason> {
    let BlockRequest { target_id } = payload.read()?;
    user_id(&target_id)
}

fn group(payload: &RequestPayload<'_>) -> Result<GroupId, Reason> {
    let GroupRequest { group_id: id } = payload.read()?;
    group_id(Some(&id))
}

fn group_action(cmd: &str, payload: &RequestPayload<'_>) -> Result<(GroupId, GroupAction), Reason> {
    Ok(match cmd {
        "group.dismiss" => (group(payload)?, GroupAction::Dismiss),
        "group.leave" => (group(payload)?, GroupAction::Leave),
        "group.invite_members" => {
            let request: InviteRequest = payload.read()?;
            (
                group_id(Some(&request.group_id))?,
                GroupAction::Invite(user_ids(&request.member_ids)?),
            )
        }
        "group.remove_member" => {
            let request: RemoveMemberRequest = payload.read()?;
            (group_id(Some(&request.group_id))?, GroupAction::Kick(user_id(&request.member_id)?))
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
            (group_id(Some(&request.group_id))?, GroupAction::Update(change))
        }
        "group.transfer_owner" => {
            let request: TransferOwnerRequest = payload.read()?;
            (
                group_id(Some(&request.group_id))?,
                GroupAction::Transfer(user_id(&request.new_owner_id)?),
            )
        }
        "group.set_member_role" => {
            let request: SetMemberRoleRequest = payload.read()?;
            let role = role_from_number(request.role).ok_or(Reason::InvalidParam)?;
            let member = user_id(&request.member_id)?;
            (group_id(Some(&request.group_id))?, GroupAction::SetRole(member, role))
        }
        _ => return Err(Reason::NotImplemented),
    })
}
