//! Group commands decode to the same request in both forms.

use nexo_chat::Reason;
use nexo_chat::group::NewGroupRequest;
use nexo_chat::membership::{GroupAction, GroupChange, GroupProfile, Role};
use nexo_chat::query::Query;
use nexo_wire::dotted::payload::{
    CreateGroupRequest, Empty, GroupRequest, InviteRequest, MembersRequest, RemoveMemberRequest,
    SetMemberRoleRequest, TransferOwnerRequest, UpdateGroupRequest,
};
use serde_json::{Value, json};

use crate::requests::{asks, refused};
use crate::{group, user};

#[test]
fn what_is_done_to_groups() {
    let act = |act: GroupAction| Query::ChangeGroup(group(), act);
    let wanted = NewGroupRequest {
        profile: GroupProfile { name: "Us".into(), avatar: "a.png".into(), ..Default::default() },
        members: vec![user("bob"), user("carol")],
        members_min: 3,
        ..NewGroupRequest::default()
    };
    let payload = json!({ "creator_id": "mallory", "group_name": "Us",
        "member_ids": ["bob", "carol"], "avatar_url": "a.png" });
    asks::<CreateGroupRequest>("group.create", &payload, Query::CreateGroup(wanted));
    let payload = json!({ "group_name": "Us", "member_ids": ["a_b"] });
    refused::<CreateGroupRequest>("group.create", &payload, Reason::UserNotFound);

    let payload = json!({ "group_id": "g1", "operator_id": "mallory" });
    asks::<GroupRequest>("group.dismiss", &payload, act(GroupAction::Dismiss));
    asks::<GroupRequest>("group.leave", &payload, act(GroupAction::Leave));
    asks::<GroupRequest>("group.get_info", &payload, Query::Group(group()));
    for cmd in ["group.dismiss", "group.leave", "group.get_info"] {
        refused::<GroupRequest>(cmd, &json!({}), Reason::MissingGroupId);
        refused::<GroupRequest>(cmd, &json!({ "group_id": "g_1" }), Reason::GroupNotFound);
    }
    let payload = json!({ "group_id": "g1", "member_ids": ["bob"] });
    asks::<InviteRequest>(
        "group.invite_members",
        &payload,
        act(GroupAction::Invite(vec![user("bob")])),
    );
    let payload = json!({ "group_id": "g1", "member_id": "bob" });
    asks::<RemoveMemberRequest>(
        "group.remove_member",
        &payload,
        act(GroupAction::Kick(user("bob"))),
    );
    let payload = json!({ "group_id": "g1", "new_owner_id": "bob" });
    let give = act(GroupAction::Transfer(user("bob")));
    asks::<TransferOwnerRequest>("group.transfer_owner", &payload, give);
    for (number, role) in [(1, Role::Member), (2, Role::Admin)] {
        let payload = json!({ "group_id": "g1", "member_id": "bob", "role": number });
        let set = act(GroupAction::SetRole(user("bob"), role));
        asks::<SetMemberRoleRequest>("group.set_member_role", &payload, set);
    }
    for number in [0, 3, -1] {
        let payload = json!({ "group_id": "g1", "member_id": "bob", "role": number });
        refused::<SetMemberRoleRequest>("group.set_member_role", &payload, Reason::InvalidParam);
    }
}

#[test]
fn an_update_changes_only_what_it_names() {
    let change = |payload: Value, change: GroupChange| {
        let query = Query::ChangeGroup(group(), GroupAction::Update(change));
        asks::<UpdateGroupRequest>("group.update", &payload, query);
    };
    let none = GroupChange::default;
    change(json!({ "group_id": "g1" }), none());
    change(json!({ "group_id": "g1", "announcement": null }), none());
    let emptied = GroupChange { announcement: Some(String::new()), ..none() };
    change(json!({ "group_id": "g1", "announcement": "" }), emptied);
    let all = GroupChange {
        name: Some("n".into()),
        avatar: Some("a".into()),
        announcement: Some("b".into()),
        introduction: Some("i".into()),
        ..none()
    };
    change(
        json!({ "group_id": "g1", "group_name": "n", "avatar_url": "a", "announcement": "b", "introduction": "i" }),
        all,
    );
}

#[test]
fn members_come_in_pages() {
    let page = |payload: Value, skip, limit| {
        asks::<MembersRequest>("group.get_members", &payload, Query::Members(group(), skip, limit));
    };
    page(json!({ "group_id": "g1" }), 0, 20);
    page(json!({ "group_id": "g1", "page": 1, "page_size": 100 }), 0, 100);
    page(json!({ "group_id": "g1", "page": 3, "page_size": 7 }), 14, 7);
    let most = usize::try_from(i32::MAX - 1).unwrap() * 100;
    page(json!({ "group_id": "g1", "page": i32::MAX, "page_size": 100 }), most, 100);
    page(json!({ "group_id": "g1", "page": 2, "page_size": 101 }), 100, 100);
    for (page, page_size) in [(-1, 1), (1, -1)] {
        let payload = json!({ "group_id": "g1", "page": page, "page_size": page_size });
        refused::<MembersRequest>("group.get_members", &payload, Reason::InvalidParam);
    }
    asks::<Empty>("group.get_user_groups", &json!({}), Query::MyGroups);
}
