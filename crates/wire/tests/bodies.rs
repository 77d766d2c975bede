//! The bodies of HTTP answers: what each kind of conversation and each kind of viewer sees.

use std::sync::Arc;

use nexo_chat::conversations::{ConversationSummary, Counterpart};
use nexo_chat::ids::{ClientMsgId, ConversationId, GroupId, MessageId, Millis, Seq, UserId};
use nexo_chat::membership::{
    Group, GroupMember, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy, JoinRequest,
    MemberProfile,
};
use nexo_chat::model::{
    Content, Cursors, Message, Profile, Recall, Receive, ReplyTo, Settings, Standing, Window,
    WindowEnd,
};
use nexo_chat::presence::Presence;
use nexo_wire::http::accounts::OnlineStatus;
use nexo_wire::http::conversations::ConversationInfo;
use nexo_wire::http::groups::GroupInfo;
use nexo_wire::http::history::{ConversationLine, GroupLine, MemberState, MessageEntity};
use nexo_wire::http::joining::JoinRequestInfo;
use nexo_wire::http::members::MemberInfo;
use nexo_wire::http::messages::MessageInfo;
use nexo_wire::http::sync::ConversationHead;
use serde::Serialize;
use serde_json::{Value, json};

fn user(id: &str) -> UserId {
    UserId::parse(id).expect("a user id")
}

fn shown(body: impl Serialize) -> Value {
    serde_json::to_value(body).expect("a body is JSON")
}

/// Checks the named fields; `null` stands for a field that is not there.
fn check(body: &Value, fields: &Value) {
    for (name, expect) in fields.as_object().expect("fields") {
        let found = body.get(name);
        assert!(found.unwrap_or(&Value::Null) == expect, "{name} of {body}");
        assert!(!expect.is_null() || found.is_none(), "{name} of {body}");
    }
}

fn group() -> Group {
    Group {
        id: GroupId::parse("g1").expect("a group id"),
        profile: GroupProfile { name: "Chess".into(), ..GroupProfile::default() },
        creator: user("alice"),
        owner: user("alice"),
        admins: vec![user("bob")],
        joining: JoinPolicy::Approval,
        history: HistoryPolicy::All,
        is_muted: true,
        members: 3,
        requests: 2,
        code: JoinCode::random([0; 8]),
        code_at: Millis(1),
        created_at: Millis(1),
        updated_at: Millis(2),
        ended: None,
    }
}

fn member(id: &str) -> GroupMember {
    GroupMember {
        user: user(id),
        joined_at: Millis(3),
        join_seq: Seq(7),
        came_after: Seq(0),
        inviter: Some(user("alice")),
        muted_until: Millis(9),
        profile: MemberProfile { nickname: "Bobby".into(), ..MemberProfile::default() },
    }
}

fn standing(conversation: ConversationId) -> Standing {
    Standing {
        conversation,
        window: Window { min: Seq(2), change_min: Seq(3), ..Window::ALL },
        cursors: Cursors { delivered: Seq(5), read: Seq(4) },
        own_unread: 1,
        settings: Settings { pinned: true, receive: Receive::Silent, ..Settings::default() },
        max_seq: Seq(9),
        change_seq: Seq(8),
        newest_at: Millis(50),
        has_ended: false,
    }
}

fn message(conversation: ConversationId) -> Message {
    let client_id = ClientMsgId::parse("c").expect("an id");
    let reply_to = Some(ReplyTo { message: MessageId([7; 16]), sender: user("bob") });
    let content =
        Content { mentions: vec![user("bob")], mentions_all: true, reply_to, ..Content::text("x") };
    Message {
        id: MessageId([1; 16]),
        conversation,
        seq: Seq(9),
        sender: user("alice"),
        client_id,
        sent_at: Millis(50),
        content,
        recalled: None,
    }
}

fn line(with: Counterpart) -> ConversationSummary {
    let conversation = match &with {
        Counterpart::Peer { user: peer, .. } => ConversationId::private(&user("alice"), peer),
        Counterpart::Group(group) => group.id.conversation(),
    };
    let last_message = Some(Arc::new(message(conversation.clone())));
    ConversationSummary { standing: standing(conversation), with, mentions: 2, last_message }
}

#[test]
fn a_message_shows_where_it_is_and_whom_it_speaks_of() {
    let answered = MessageId([7; 16]).to_string();
    let here = message(group().id.conversation());
    let camel = json!({ "chatType": "GROUP", "singleChatId": null, "groupId": "g1", "toUserId": null,
        "mentions": ["bob", "@all"], "replyToServerMsgId": answered });
    check(&shown(MessageEntity::from(&here)), &camel);
    let snake = json!({ "session_type": 2, "group_id": "g1", "recv_id": null,
        "mentions": ["bob", "@all"], "reply_to_server_msg_id": answered });
    check(&shown(MessageInfo::from(&here)), &snake);

    let private = message(ConversationId::private(&user("alice"), &user("bob")));
    let camel = json!({ "chatType": "SINGLE", "singleChatId": "si_alice_bob", "groupId": null,
        "toUserId": "bob" });
    check(&shown(MessageEntity::from(&private)), &camel);
    let snake = json!({ "session_type": 1, "group_id": null, "recv_id": "bob" });
    check(&shown(MessageInfo::from(&private)), &snake);

    let recalled = here.recalled(Recall { by: user("alice"), at: Millis(60) });
    let camel = json!({ "status": 4, "content": "", "mentions": null, "replyToServerMsgId": null });
    check(&shown(MessageEntity::from(&recalled)), &camel);
    let snake = json!({ "content": {}, "mentions": null, "reply_to_server_msg_id": null });
    check(&shown(MessageInfo::from(&recalled)), &snake);
}

#[test]
fn a_line_is_of_one_person_or_of_a_group() {
    let cursors = Cursors { delivered: Seq(7), read: Seq(6) };
    let private =
        line(Counterpart::Peer { user: user("bob"), profile: Profile::default(), cursors });
    let shared = line(Counterpart::Group(Arc::new(group())));
    assert!(GroupLine::new(&private).is_none());
    assert!(ConversationLine::new(&shared).is_none() && MemberState::new(&shared).is_none());
    let state = json!({ "singleChatId": "si_alice_bob", "peerUserId": "bob",
        "myLastReadMsgSeq": "4", "peerLastReadMsgSeq": "6" });
    assert_eq!(MemberState::new(&private).map(shown), Some(state.clone()));
    check(&shown(ConversationLine::new(&private)), &state);
    let fields = json!({ "groupId": "g1", "conversationId": "sg_g1", "name": "Chess",
        "memberCount": 3, "unreadCount": 4, "mentionUnreadCount": 2, "maxMsgSeq": "9",
        "myLastReadMsgSeq": "4", "isMember": true, "updatedAt": 50 });
    check(&shown(GroupLine::new(&shared)), &fields);

    let fields = json!({ "conversation_type": 1, "peer_user_id": "bob", "peer_read_seq": 6,
        "peer_delivered_seq": 7, "group_id": null, "recv_msg_opt": 1, "is_pinned": true, "is_active": true, "min_seq": 2 });
    check(&shown(ConversationInfo::new(&private, true)), &fields);
    let fields = json!({ "conversation_type": 2, "peer_user_id": null, "group_id": "g1",
        "group_name": "Chess", "member_count": 3, "mention_unread_count": 2,
        "last_message": null });
    check(&shown(ConversationInfo::new(&shared, false)), &fields);
}

#[test]
fn a_head_ends_where_its_window_does() {
    let mut left = standing(group().id.conversation());
    left.window.since = Millis(5);
    let fields = json!({ "min_seq": 2, "max_seq": 9, "min_change_seq": 3, "change_seq": 8,
        "is_active": true, "is_pinned": true, "recv_msg_opt": 1, "joined_at": 5 });
    check(&shown(ConversationHead::from(&left)), &fields);
    left.window.end = Some(WindowEnd { seq: Seq(6), change_seq: Seq(4), at: Millis(20) });
    let fields = json!({ "max_seq": 6, "change_seq": 4, "is_active": false, "updated_at": 20 });
    check(&shown(ConversationHead::from(&left)), &fields);
}

#[test]
fn a_group_shows_each_what_is_theirs_to_see() {
    let group = group();
    let stranger = json!({ "id": "g1", "group_id": "g1", "conversation_id": "sg_g1", "status": 0,
        "name": "Chess", "owner_user_id": "alice", "member_count": 3, "join_type": "approval",
        "history": "all", "is_muted": true, "my_role": null, "group_code": null,
        "join_seq": null, "join_request_count": null });
    check(&shown(GroupInfo::new(&group, None)), &stranger);
    let carol = json!({ "my_role": 0, "join_seq": 7, "muted_until": 9, "group_code": "AAAAAAAA",
        "join_request_count": null });
    check(&shown(GroupInfo::new(&group, Some(&member("carol")))), &carol);
    for (name, role) in [("bob", 1), ("alice", 2)] {
        let fields = json!({ "my_role": role, "join_request_count": 2 });
        check(&shown(GroupInfo::new(&group, Some(&member(name)))), &fields);
    }
}

#[test]
fn members_and_those_who_wait() {
    let bob = json!({ "group_id": "g1", "user_id": "bob", "nickname": "", "avatar": "",
        "group_nickname": "Bobby", "group_avatar": "", "extra": "",
        "role_level": 1, "status": 0, "joined_at": 3, "join_seq": 7, "inviter_user_id": "alice",
        "muted_until": 9 });
    assert_eq!(shown(MemberInfo::new(&group(), &member("bob"), None)), bob);
    let (group, user) = (group().id, user("dave"));
    let request = JoinRequest { group, user, message: "me too".into(), at: Millis(5) };
    let dave = json!({ "request_id": "g1_dave", "group_id": "g1", "user_id": "dave",
        "message": "me too", "created_at": 5 });
    assert_eq!(shown(JoinRequestInfo::from(&request)), dave);
}

#[test]
fn whoever_is_away_was_here_once() {
    let mut bob =
        Presence { user: user("bob"), registrations: Vec::new(), last_seen: Some(Millis(7)) };
    let away = json!({ "user_id": "bob", "status": 0, "last_seen_at": 7 });
    assert_eq!(shown(OnlineStatus::from(&bob)), away);
    bob.last_seen = None;
    assert_eq!(shown(OnlineStatus::from(&bob)), json!({ "user_id": "bob", "status": 0 }));
}
