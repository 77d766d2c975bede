//! Every answer has the same fields in both forms.

use std::collections::BTreeMap;
use std::sync::Arc;

use nexo_chat::auth::Tokens;
use nexo_chat::command::{Reply, ResendPage, Saved};
use nexo_chat::conversations::{ConversationSummary, Counterpart};
use nexo_chat::ids::{ConversationId, LoginId, Millis, Platform, Seq};
use nexo_chat::membership::{
    Group, GroupMember, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy, MemberProfile,
};
use nexo_chat::model::{
    AccountDetails, Caller, Content, ContentKind, Cursors, Profile, Recall, Receive, Settings,
    Standing, User, Window,
};
use nexo_chat::query::QueryReply;
use nexo_chat::read::Page;
use nexo_wire::dotted::payload::{
    CreateGroupResponse, Empty, GroupInfoResponse, GroupsResponse, HeartbeatResponse,
    HistoryResponse, LoginResponse, MembersResponse, PullOfflineResponse, RegisterResponse,
    SendResponse, SyncConversationsResponse, ValidateTokenResponse,
};
use nexo_wire::dotted::{registered, reply, signed_in, validated};
use serde_json::{Value, json};

use crate::{Payload, echo, group, heard, msg_id, said, user};

fn caller() -> Caller {
    Caller {
        user: user("alice"),
        login: LoginId([2; 16]),
        platform: Platform(5),
        signed_in_at: Millis(1),
        expires_at: Millis(99),
        connection: None,
    }
}

fn account(id: &str, nickname: &str) -> User {
    let profile =
        Profile { nickname: nickname.into(), avatar: "b.png".into(), extra: String::new() };
    User {
        id: user(id),
        profile,
        created_at: Millis(1),
        updated_at: Millis(1),
        password_hash: String::new(),
        session_version: 1,
        details: AccountDetails::default(),
    }
}

fn our_group() -> Arc<Group> {
    Arc::new(Group {
        id: group(),
        profile: GroupProfile {
            name: "Us".into(),
            introduction: "i".into(),
            announcement: "a".into(),
            avatar: "g.png".into(),
            extra: String::new(),
            group_type: 0,
        },
        creator: user("alice"),
        owner: user("alice"),
        admins: vec![user("bob")],
        joining: JoinPolicy::Open,
        history: HistoryPolicy::Joined,
        is_muted: false,
        members: 3,
        requests: 0,
        code: JoinCode::random([0; 8]),
        code_at: Millis(1),
        created_at: Millis(7),
        updated_at: Millis(8),
        ended: None,
    })
}

fn in_group(id: &str) -> GroupMember {
    let (joined_at, join_seq) = (Millis(6), Seq(1));
    GroupMember {
        user: user(id),
        joined_at,
        join_seq,
        came_after: Seq(0),
        inviter: None,
        muted_until: Millis(0),
        profile: MemberProfile::default(),
    }
}

fn ok(cmd: &str, payload: &Value) -> Value {
    json!({ "cmd": cmd, "request_id": "r1", "code": 0, "message": "ok", "payload": payload })
}

/// A reply in both forms has this payload.
fn check<P: Payload>(cmd: &str, given: &Reply, payload: &Value) {
    let answer = heard::<P>(|binary| reply(given, &echo(cmd), Millis(77), binary));
    assert_eq!(answer, ok(cmd, payload));
}

#[test]
fn signing_in() {
    let tokens = Tokens { access: "t".into(), refresh: "f".into(), expires_in_ms: 5 };
    let cmd = "auth.validate_token";
    let answer =
        heard::<ValidateTokenResponse>(|binary| Some(validated(&caller(), &echo(cmd), binary)));
    let valid = json!({ "user_id": "alice", "expire_at": 99 });
    assert_eq!(answer, ok(cmd, &valid));
    check::<ValidateTokenResponse>(cmd, &Reply::Authenticated(caller()), &valid);
    let cmd = "auth.register";
    let made = account("alice", "A");
    let answer = heard::<RegisterResponse>(|binary| Some(registered(&made, &echo(cmd), binary)));
    assert_eq!(answer, ok(cmd, &json!({ "success": true, "user_id": "alice", "error": "" })));
    let cmd = "auth.login";
    let answer =
        heard::<LoginResponse>(|binary| Some(signed_in(&tokens, &caller(), &echo(cmd), binary)));
    let expect = json!({ "success": true, "user_id": "alice", "token": "t", "expire_at": 99,
        "error": "", "refresh_token": "f" });
    assert_eq!(answer, ok(cmd, &expect));
}

#[test]
fn short_answers() {
    check::<HeartbeatResponse>("heartbeat", &Reply::Pong, &json!({ "server_time": 77 }));
    check::<Empty>("chat.typing", &Reply::Nothing, &json!({}));
    let recalled = said(Content::text("hi"));
    check::<Empty>("chat.recall_message", &Reply::Recalled(Arc::new(recalled)), &json!({}));
    check::<Empty>("chat.mark_read", &Reply::QueryReply(QueryReply::Done), &json!({}));
    check::<Empty>("auth.logout", &Reply::QueryReply(QueryReply::SignedOut), &json!({}));
    for quiet in
        [Reply::Resend(ResendPage::default()), Reply::QueryReply(QueryReply::Newest(Vec::new()))]
    {
        assert!(reply(&quiet, &echo("x"), Millis(1), true).is_none());
    }
}

#[test]
fn a_save_tells_where_it_is() {
    let message = Arc::new(said(Content::text("a ***")));
    let mut saved = Saved { message, duplicate: false, cleaned: false };
    let mut expect = json!({ "success": true, "msg_id": msg_id(), "timestamp": 5, "error": "",
        "seq": 3, "conversation_id": "sg_g1", "client_msg_id": "c-1" });
    check::<SendResponse>("chat.send_message", &Reply::Saved(saved.clone()), &expect);
    saved.cleaned = true;
    expect["content"] = json!("a ***");
    check::<SendResponse>("chat.send_message", &Reply::Saved(saved), &expect);
}

fn listed<T>(items: Vec<T>, has_more: bool) -> Page<T> {
    Page::new(items, has_more)
}

#[test]
fn lists_of_messages() {
    let extra =
        [("caption", "look"), ("colour", "red"), ("file_size", "9"), ("media_type", "image/png")];
    let extra = extra.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let picture = Content {
        kind: ContentKind::IMAGE,
        extra: BTreeMap::from(extra),
        ..Content::text("http://u")
    };
    let shown = json!({ "msg_id": msg_id(), "from_user_id": "alice", "to_id": "g1", "chat_type": 2,
        "content": "look", "media_url": "http://u", "media_type": "image/png", "timestamp": 5,
        "mentions": [], "reply_to_msg_id": "", "seq": 3, "conversation_id": "sg_g1",
        "client_msg_id": "c-1", "is_recalled": false, "is_important": false, "file_size": 9,
        "extra": { "colour": "red" }, "status": 0, "recall_at": 0 });
    let mut gone = shown.clone();
    (gone["content"], gone["media_url"], gone["media_type"]) =
        (json!(""), json!(""), json!("image"));
    (gone["is_recalled"], gone["file_size"]) = (json!(true), json!(0));
    (gone["status"], gone["recall_at"]) = (json!(1), json!(9));
    gone.as_object_mut().unwrap().remove("extra");
    let message = said(picture);
    let recalled = message.recalled(Recall { by: user("alice"), at: Millis(9) });
    let both = vec![Arc::new(message), Arc::new(recalled)];
    let history = Reply::QueryReply(QueryReply::Messages(listed(both.clone(), true), Seq(4)));
    let expect = json!({ "messages": [shown, gone], "has_more": true });
    check::<HistoryResponse>("chat.get_history", &history, &expect);
    let around = Page { damaged: vec![Seq(1)..=Seq(2)], ..listed(both.clone(), false) };
    let history = Reply::QueryReply(QueryReply::Messages(around, Seq(4)));
    let damaged = json!([{ "from": 1, "to": 2 }]);
    let expect = json!({ "messages": [shown, gone], "has_more": false, "damaged": damaged });
    check::<HistoryResponse>("chat.get_history", &history, &expect);
    for (has_more, next_cursor) in [(true, "next"), (false, "")] {
        let page = Reply::QueryReply(QueryReply::Offline(listed(both.clone(), has_more)));
        let expect =
            json!({ "messages": [shown, gone], "next_cursor": next_cursor, "has_more": has_more });
        check::<PullOfflineResponse>("chat.pull_offline", &page, &expect);
    }
}

fn standing(conversation: ConversationId) -> Standing {
    Standing {
        conversation,
        window: Window::ALL,
        cursors: Cursors { delivered: Seq(2), read: Seq(1) },
        own_unread: 0,
        settings: Settings { pinned: true, ..Settings::default() },
        max_seq: Seq(3),
        change_seq: Seq(4),
        newest_at: Millis(5),
        has_ended: false,
    }
}

#[test]
fn the_list_of_conversations() {
    let profile = Profile { nickname: "Bob".into(), avatar: "b.png".into(), extra: String::new() };
    let mut quiet = standing(ConversationId::private(&user("alice"), &user("bob")));
    quiet.settings.receive = Receive::Silent;
    let with_bob = ConversationSummary {
        standing: quiet,
        with: Counterpart::Peer { user: user("bob"), profile, cursors: Cursors::default() },
        mentions: 0,
        last_message: None,
    };
    let in_group = ConversationSummary {
        standing: standing(group().conversation()),
        with: Counterpart::Group(our_group()),
        mentions: 1,
        last_message: Some(Arc::new(said(Content::text("hi")))),
    };
    let mut taken_back = in_group.clone();
    let recalled = said(Content::text("hi")).recalled(Recall { by: user("alice"), at: Millis(9) });
    taken_back.last_message = Some(Arc::new(recalled));
    let person = json!({ "chat_id": "bob", "chat_type": 1, "peer_id": "bob", "peer_name": "Bob",
        "peer_avatar": "b.png", "unread_count": 2, "updated_at": 5, "last_msg_id": "",
        "last_content": "", "last_timestamp": 0, "mention_unread_count": 0, "is_pinned": true,
        "max_seq": 3, "read_seq": 1, "change_seq": 4, "conversation_id": "si_alice_bob",
        "last_media_type": "", "is_muted": true, "last_status": 0,
        "last_recall_at": 0 });
    let people = json!({ "chat_id": "g1", "chat_type": 2, "peer_id": "g1", "peer_name": "Us",
        "peer_avatar": "g.png", "unread_count": 2, "updated_at": 5, "last_msg_id": msg_id(),
        "last_content": "hi", "last_timestamp": 5, "mention_unread_count": 1, "is_pinned": true,
        "max_seq": 3, "read_seq": 1, "change_seq": 4, "conversation_id": "sg_g1",
        "last_media_type": "text", "is_muted": false, "last_status": 0,
        "last_recall_at": 0 });
    let mut gone = people.clone();
    (gone["last_content"], gone["last_media_type"]) = (json!(""), json!(""));
    (gone["last_status"], gone["last_recall_at"]) = (json!(1), json!(9));
    let lines = listed(vec![with_bob, in_group, taken_back], false);
    let expect = json!({ "conversations": [person, people, gone], "has_more": false });
    let found = Reply::QueryReply(QueryReply::Conversations(lines));
    check::<SyncConversationsResponse>("chat.sync_conversations", &found, &expect);
}

#[test]
fn groups_and_their_members() {
    let mut info = json!({ "group_id": "g1", "group_name": "Us", "avatar_url": "g.png",
        "owner_id": "alice", "member_count": 3, "announcement": "a", "created_at": 7,
        "introduction": "i" });
    let groups = Reply::QueryReply(QueryReply::Groups(vec![our_group()]));
    check::<GroupsResponse>("group.get_user_groups", &groups, &json!({ "groups": [info] }));
    let stranger = Reply::QueryReply(QueryReply::Group(our_group(), None));
    check::<GroupInfoResponse>("group.get_info", &stranger, &json!({ "group": info }));
    for (id, role) in [("alice", 0), ("carol", 1), ("bob", 2)] {
        let found = Reply::QueryReply(QueryReply::Group(our_group(), Some(in_group(id))));
        info["my_role"] = json!(role);
        check::<GroupInfoResponse>("group.get_info", &found, &json!({ "group": info }));
        let made = json!({ "success": true, "group_id": "g1", "error": "" });
        check::<CreateGroupResponse>("group.create", &found, &made);
    }
    let people = ["alice", "bob", "carol"]
        .map(|id| (in_group(id), Arc::new(account(id, &id.to_uppercase()))));
    let found = Reply::QueryReply(QueryReply::Members(our_group(), people.to_vec()));
    let member = |id: &str, role: i32| json!({ "user_id": id, "role": role, "nickname": id.to_uppercase(), "joined_at": 6 });
    let members = [member("alice", 0), member("bob", 2), member("carol", 1)];
    let expect = json!({ "members": members, "total": 3 });
    check::<MembersResponse>("group.get_members", &found, &expect);
}

#[test]
fn counts_that_do_not_fit_stay_at_the_end() {
    let mut group = (*our_group()).clone();
    group.members = u32::MAX;
    let found = Reply::QueryReply(QueryReply::Groups(vec![Arc::new(group)]));
    let answer = heard::<GroupsResponse>(|b| reply(&found, &echo("x"), Millis(u64::MAX), b));
    assert_eq!(answer["payload"]["groups"][0]["member_count"], i32::MAX);
    let pong = heard::<HeartbeatResponse>(|b| {
        reply(&Reply::Pong, &echo("heartbeat"), Millis(u64::MAX), b)
    });
    assert_eq!(pong["payload"]["server_time"], i64::MAX);
}
