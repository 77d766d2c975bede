//! The answers to requests.

use nexo_chat::Reason;
use nexo_chat::auth::Tokens;
use nexo_chat::command::{Reply, Saved};
use nexo_chat::conversations::{Line, With};
use nexo_chat::ids::{Millis, UserId};
use nexo_chat::membership::{Group, GroupMember};
use nexo_chat::model::{Caller, Receive, User};
use nexo_chat::query::Found;

use super::encode::{Outcome, answer, called, done, push};
use super::events::{shown, status};
use super::payload::{
    Conversation, CreateGroupResponse, Empty, GroupInfo, GroupInfoResponse, GroupsResponse,
    HeartbeatResponse, HistoryResponse, KickedPush, LoginResponse, Member, MembersResponse,
    PullOfflineResponse, Refusal, RegisterResponse, SendResponse, SyncConversationsResponse,
    ValidateTokenResponse,
};
use super::{chat_type, content, int32, int64, role_number};
use crate::codes;
use crate::dialect::{Call, Echo, Frame};

/// What a client gives back to pull the next page. Where that begins is known to the connection.
const NEXT: &str = "next";

/// The token was good.
pub fn validated(caller: &Caller, echo: &Echo, binary: bool) -> Frame {
    let payload = ValidateTokenResponse {
        user_id: caller.user.to_string(),
        expire_at: int64(caller.expires_at.0),
        reason: String::new(),
    };
    done(echo, &payload, binary)
}

/// The account was made.
pub fn registered(user: &User, echo: &Echo, binary: bool) -> Frame {
    let user_id = user.id.to_string();
    let payload = RegisterResponse { success: true, user_id, ..RegisterResponse::default() };
    done(echo, &payload, binary)
}

/// Name and password were good.
pub fn signed_in(tokens: &Tokens, caller: &Caller, echo: &Echo, binary: bool) -> Frame {
    let payload = LoginResponse {
        success: true,
        user_id: caller.user.to_string(),
        token: tokens.access.clone(),
        expire_at: int64(caller.expires_at.0),
        refresh_token: tokens.refresh.clone(),
        ..LoginResponse::default()
    };
    done(echo, &payload, binary)
}

/// The answer to a command, if there is anything to say.
pub fn reply(reply: &Reply, echo: &Echo, now: Millis, binary: bool) -> Option<Frame> {
    Some(match reply {
        Reply::Quiet | Reply::Recalled(_) => done(echo, &Empty {}, binary),
        Reply::Authenticated(caller) => validated(caller, echo, binary),
        Reply::Saved(saved) => done(echo, &sent(saved), binary),
        Reply::Pong => done(echo, &HeartbeatResponse { server_time: int64(now.0) }, binary),
        Reply::Found(it) => return found(it, echo, binary),
        Reply::Accepted(_) | Reply::Resend(_) => return None,
    })
}

fn sent(saved: &Saved) -> SendResponse {
    let message = &saved.message;
    SendResponse {
        success: true,
        msg_id: message.id.to_string(),
        timestamp: int64(message.sent_at.0),
        seq: int64(message.seq.0),
        conversation_id: message.conversation.to_string(),
        client_msg_id: message.client_id.as_str().to_owned(),
        content: saved.cleaned.then(|| content::show(&message.content).content),
        ..SendResponse::default()
    }
}

fn found(found: &Found, echo: &Echo, binary: bool) -> Option<Frame> {
    Some(match found {
        Found::Messages(listed, _) => {
            let messages = listed.items.iter().map(|message| shown(message, false)).collect();
            done(echo, &HistoryResponse { messages, has_more: listed.has_more }, binary)
        }
        Found::Offline(listed) => {
            let messages = listed.items.iter().map(|message| shown(message, false)).collect();
            let next_cursor = if listed.has_more { NEXT.to_owned() } else { String::new() };
            let has_more = listed.has_more;
            done(echo, &PullOfflineResponse { messages, next_cursor, has_more }, binary)
        }
        Found::Conversations(lines) => {
            let conversations = lines.items.iter().map(conversation).collect();
            let has_more = lines.has_more;
            done(echo, &SyncConversationsResponse { conversations, has_more }, binary)
        }
        Found::Group(group, _) if called(echo).0 == "group.create" => {
            let group_id = group.id.to_string();
            let made = CreateGroupResponse { success: true, group_id, ..Default::default() };
            done(echo, &made, binary)
        }
        Found::Group(group, member) => {
            let me = member.as_ref().map(|member| &member.user);
            let group = Some(group_info(group, me));
            done(echo, &GroupInfoResponse { group }, binary)
        }
        Found::Members(group, people) => {
            let members = people.iter().map(|(it, account)| member(group, it, account)).collect();
            done(echo, &MembersResponse { members, total: int32(group.members) }, binary)
        }
        Found::Groups(groups) => {
            let groups = groups.iter().map(|group| group_info(group, None)).collect();
            done(echo, &GroupsResponse { groups }, binary)
        }
        Found::Done | Found::SignedOut => done(echo, &Empty {}, binary),
        Found::Newest(_) | Found::State(_) => return None, // nothing here asks for them
    })
}

fn conversation(line: &Line) -> Conversation {
    let (standing, last) = (&line.standing, line.last_message.as_ref());
    let (id, name, avatar) = match &line.with {
        With::Peer { user, profile, .. } => (user.as_str(), &profile.nickname, &profile.avatar),
        With::Group(group) => (group.id.as_str(), &group.profile.name, &group.profile.avatar),
    };
    let said = last.filter(|last| last.recalled.is_none());
    let said = said.map(|last| content::show(&last.content)).unwrap_or_default();
    Conversation {
        chat_id: id.to_owned(),
        chat_type: chat_type(&standing.conversation),
        peer_id: id.to_owned(),
        peer_name: name.clone(),
        peer_avatar: avatar.clone(),
        unread_count: int32(standing.unread()),
        updated_at: int64(standing.updated_at().0),
        last_msg_id: last.map(|last| last.id.to_string()).unwrap_or_default(),
        last_content: said.content,
        last_timestamp: last.map_or(0, |last| int64(last.sent_at.0)),
        mention_unread_count: int32(line.mentions),
        is_pinned: standing.settings.pinned,
        max_seq: int64(standing.visible_max().0),
        read_seq: int64(standing.cursors.read.0),
        change_seq: int64(standing.visible_change_max().0),
        conversation_id: standing.conversation.to_string(),
        last_media_type: said.media_type,
        is_muted: standing.settings.receive != Receive::Normal,
        last_status: last.map_or(0, |last| status(last)),
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

/// A request was refused. Answers that have fields for it repeat it there.
pub fn refusal(reason: Reason, echo: &Echo, binary: bool) -> Frame {
    let row = codes::row(reason);
    let (error, word) = (reason.to_string(), row.typed.to_owned());
    let message = error.clone();
    let outcome = Outcome { code: row.dotted, message: &message };
    match called(echo).0 {
        "auth.register" => {
            let it = RegisterResponse { error, reason: word, ..RegisterResponse::default() };
            answer(echo, &outcome, &it, binary)
        }
        "auth.login" => {
            let it = LoginResponse { error, reason: word, ..LoginResponse::default() };
            answer(echo, &outcome, &it, binary)
        }
        "auth.validate_token" => {
            let it = ValidateTokenResponse { reason: word, ..ValidateTokenResponse::default() };
            answer(echo, &outcome, &it, binary)
        }
        "chat.send_message" => {
            let client_msg_id = echo.client_msg_id.clone().unwrap_or_default();
            let it = SendResponse { error, reason: word, client_msg_id, ..SendResponse::default() };
            answer(echo, &outcome, &it, binary)
        }
        "group.create" => {
            let it = CreateGroupResponse { error, reason: word, ..CreateGroupResponse::default() };
            answer(echo, &outcome, &it, binary)
        }
        _ => answer(echo, &outcome, &Refusal { reason: word }, binary),
    }
}

/// The connection ends. What ends the sign-in is nobody's answer; anything else answers the request
/// that it came of, if there was one.
pub fn farewell(reason: Reason, echo: &Echo, binary: bool) -> Frame {
    let is_end = matches!(reason, Reason::Kicked | Reason::SessionInvalid | Reason::TokenExpired);
    if !is_end && matches!(echo.call, Call::Dotted { .. }) {
        return refusal(reason, echo, binary);
    }
    let row = codes::row(reason);
    let payload =
        KickedPush { reason: row.typed.to_owned(), message: reason.to_string(), code: row.dotted };
    push("system.kicked", &payload, binary)
}
