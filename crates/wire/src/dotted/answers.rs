//! Encodes the answers to requests.

use std::ops::RangeInclusive;

use nexo_chat::Reason;
use nexo_chat::auth::Tokens;
use nexo_chat::command::{Reply, Saved};
use nexo_chat::conversations::{ConversationSummary, Counterpart};
use nexo_chat::ids::{Millis, Seq, UserId};
use nexo_chat::membership::{Group, GroupMember};
use nexo_chat::model::{Caller, Receive, User};
use nexo_chat::query::QueryReply;

use super::encode::{ResponseStatus, echoed_call, push, respond, success};
use super::events::{message_push, recall_at, status};
use super::payload::{
    BlockListResponse, Conversation, CreateGroupResponse, DamagedSeqs, Empty, GroupInfo,
    GroupInfoResponse, GroupsResponse, HeartbeatResponse, HistoryResponse, KickedPush,
    LoginResponse, Member, MembersResponse, PullOfflineResponse, Refusal, RegisterResponse,
    SendResponse, SyncConversationsResponse, ValidateTokenResponse,
};
use super::{chat_type, content, int32, int64, role_number};
use crate::codes;
use crate::dialect::{Call, Echo, Frame};

/// The cursor of `chat.pull_offline`. It has no position: the connection knows where the next page begins.
const NEXT: &str = "next";

pub fn validated(caller: &Caller, echo: &Echo, binary: bool) -> Frame {
    let payload = ValidateTokenResponse {
        user_id: caller.user.to_string(),
        expire_at: int64(caller.expires_at.0),
        reason: String::new(),
    };
    success(echo, &payload, binary)
}

pub fn registered(user: &User, echo: &Echo, binary: bool) -> Frame {
    let user_id = user.id.to_string();
    let payload = RegisterResponse { success: true, user_id, ..RegisterResponse::default() };
    success(echo, &payload, binary)
}

pub fn signed_in(tokens: &Tokens, caller: &Caller, echo: &Echo, binary: bool) -> Frame {
    let payload = LoginResponse {
        success: true,
        user_id: caller.user.to_string(),
        token: tokens.access.clone(),
        expire_at: int64(caller.expires_at.0),
        refresh_token: tokens.refresh.clone(),
        ..LoginResponse::default()
    };
    success(echo, &payload, binary)
}

pub fn reply(reply: &Reply, echo: &Echo, now: Millis, binary: bool) -> Option<Frame> {
    Some(match reply {
        Reply::Nothing | Reply::Recalled(_) => success(echo, &Empty {}, binary),
        Reply::Authenticated(caller) => validated(caller, echo, binary),
        Reply::Saved(saved) => success(echo, &send_response(saved), binary),
        Reply::Pong => success(echo, &HeartbeatResponse { server_time: int64(now.0) }, binary),
        Reply::QueryReply(it) => return query_response(it, echo, binary),
        Reply::Accepted(_) | Reply::Resend(_) => return None,
    })
}

fn send_response(saved: &Saved) -> SendResponse {
    let message = &saved.message;
    SendResponse {
        success: true,
        msg_id: message.id.to_string(),
        timestamp: int64(message.sent_at.0),
        seq: int64(message.seq.0),
        conversation_id: message.conversation.to_string(),
        client_msg_id: message.client_id.as_str().to_owned(),
        content: saved.cleaned.then(|| content::encode(&message.content).content),
        ..SendResponse::default()
    }
}

fn query_response(reply: &QueryReply, echo: &Echo, binary: bool) -> Option<Frame> {
    Some(match reply {
        QueryReply::Messages(listed, _) => {
            let messages =
                listed.items.iter().map(|message| message_push(message, false)).collect();
            let seqs = |range: &RangeInclusive<Seq>| DamagedSeqs {
                from: int64(range.start().0),
                to: int64(range.end().0),
            };
            let (has_more, damaged) = (listed.has_more, listed.damaged.iter().map(seqs).collect());
            success(echo, &HistoryResponse { messages, has_more, damaged }, binary)
        }
        QueryReply::Offline(listed) => {
            let messages =
                listed.items.iter().map(|message| message_push(message, false)).collect();
            let next_cursor = if listed.has_more { NEXT.to_owned() } else { String::new() };
            let has_more = listed.has_more;
            success(echo, &PullOfflineResponse { messages, next_cursor, has_more }, binary)
        }
        QueryReply::Conversations(lines) => {
            let conversations = lines.items.iter().map(conversation).collect();
            let has_more = lines.has_more;
            success(echo, &SyncConversationsResponse { conversations, has_more }, binary)
        }
        QueryReply::Group(group, _) if echoed_call(echo).0 == "group.create" => {
            let group_id = group.id.to_string();
            let made = CreateGroupResponse { success: true, group_id, ..Default::default() };
            success(echo, &made, binary)
        }
        QueryReply::Group(group, member) => {
            let me = member.as_ref().map(|member| &member.user);
            let group = Some(group_info(group, me));
            success(echo, &GroupInfoResponse { group }, binary)
        }
        QueryReply::Members(group, people) => {
            let members = people.iter().map(|(it, account)| member(group, it, account)).collect();
            success(echo, &MembersResponse { members, total: int32(group.members) }, binary)
        }
        QueryReply::Groups(groups) => {
            let groups = groups.iter().map(|group| group_info(group, None)).collect();
            success(echo, &GroupsResponse { groups }, binary)
        }
        QueryReply::Blocks(users) => {
            let blocked_ids = users.iter().map(ToString::to_string).collect();
            success(echo, &BlockListResponse { blocked_ids }, binary)
        }
        QueryReply::Done | QueryReply::SignedOut => success(echo, &Empty {}, binary),
        QueryReply::Newest(_) | QueryReply::State(_) => return None, // no command of this dialect asks for them
    })
}

fn conversation(line: &ConversationSummary) -> Conversation {
    let (standing, last) = (&line.standing, line.last_message.as_ref());
    let (id, name, avatar) = match &line.with {
        Counterpart::Peer { user, profile, .. } => {
            (user.as_str(), &profile.nickname, &profile.avatar)
        }
        Counterpart::Group(group) => {
            (group.id.as_str(), &group.profile.name, &group.profile.avatar)
        }
    };
    let content = last.filter(|last| last.recalled.is_none());
    let content = content.map(|last| content::encode(&last.content)).unwrap_or_default();
    Conversation {
        chat_id: id.to_owned(),
        chat_type: chat_type(&standing.conversation),
        peer_id: id.to_owned(),
        peer_name: name.clone(),
        peer_avatar: avatar.clone(),
        unread_count: int32(standing.unread()),
        updated_at: int64(standing.updated_at().0),
        last_msg_id: last.map(|last| last.id.to_string()).unwrap_or_default(),
        last_content: content.content,
        last_timestamp: last.map_or(0, |last| int64(last.sent_at.0)),
        mention_unread_count: int32(line.mentions),
        is_pinned: standing.settings.pinned,
        max_seq: int64(standing.visible_max().0),
        read_seq: int64(standing.cursors.read.0),
        change_seq: int64(standing.visible_change_max().0),
        conversation_id: standing.conversation.to_string(),
        last_media_type: content.media_type,
        is_muted: standing.settings.receive != Receive::Normal,
        last_status: last.map_or(0, |last| status(last)),
        last_recall_at: last.map_or(0, |last| recall_at(last)),
    }
}

fn group_info(group: &Group, me: Option<&UserId>) -> GroupInfo {
    let profile = &group.profile;
    GroupInfo {
        group_id: group.id.to_string(),
        group_name: profile.name.clone(),
        avatar_url: profile.avatar.clone(),
        owner_id: group.owner.to_string(),
        member_count: int32(group.members),
        announcement: profile.announcement.clone(),
        created_at: int64(group.created_at.0),
        introduction: profile.introduction.clone(),
        my_role: me.map(|me| role_number(group.role(me))),
    }
}

fn member(group: &Group, member: &GroupMember, account: &User) -> Member {
    Member {
        user_id: member.user.to_string(),
        role: role_number(group.role(&member.user)),
        nickname: account.profile.nickname.clone(),
        joined_at: int64(member.joined_at.0),
    }
}

/// A refusal. Answers with fields for the error repeat it there.
pub fn refusal(reason: Reason, echo: &Echo, binary: bool) -> Frame {
    let row = codes::row(reason);
    let (error, word) = (reason.to_string(), row.typed.to_owned());
    let message = error.clone();
    let status = ResponseStatus { code: row.dotted, message: &message };
    match echoed_call(echo).0 {
        "auth.register" => {
            let it = RegisterResponse { error, reason: word, ..RegisterResponse::default() };
            respond(echo, &status, &it, binary)
        }
        "auth.login" => {
            let it = LoginResponse { error, reason: word, ..LoginResponse::default() };
            respond(echo, &status, &it, binary)
        }
        "auth.validate_token" => {
            let it = ValidateTokenResponse { reason: word, ..ValidateTokenResponse::default() };
            respond(echo, &status, &it, binary)
        }
        "chat.send_message" => {
            let client_msg_id = echo.client_msg_id.clone().unwrap_or_default();
            let it = SendResponse { error, reason: word, client_msg_id, ..SendResponse::default() };
            respond(echo, &status, &it, binary)
        }
        "group.create" => {
            let it = CreateGroupResponse { error, reason: word, ..CreateGroupResponse::default() };
            respond(echo, &status, &it, binary)
        }
        _ => respond(echo, &status, &Refusal { reason: word }, binary),
    }
}

/// The end of a sign-in is a push; any other reason answers the request that caused it, if there was one.
pub fn close_notice(reason: Reason, echo: &Echo, binary: bool) -> Frame {
    let is_end = matches!(reason, Reason::Kicked | Reason::SessionInvalid | Reason::TokenExpired);
    if !is_end && matches!(echo.call, Call::Dotted { .. }) {
        return refusal(reason, echo, binary);
    }
    let row = codes::row(reason);
    let payload =
        KickedPush { reason: row.typed.to_owned(), message: reason.to_string(), code: row.dotted };
    push("system.kicked", &payload, binary)
}
