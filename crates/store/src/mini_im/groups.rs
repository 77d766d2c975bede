//! Groups and their members. In mini-im a member sees everything from the first message on, and
//! joins by a code when an admin approves.

use std::collections::{BTreeMap, HashSet};

use nexo_chat::ids::{GroupId, Millis, Seq, UserId};
use nexo_chat::membership::{
    Group, GroupMember, GroupProfile, HistoryPolicy, JoinCode, JoinPolicy, JoinRequest,
    MemberProfile,
};
use nexo_chat::model::Window;
use nexo_chat::store::StoreError;

use super::MiniImReader;
use super::chats::SourceMember;
use super::history::MessageSource;
use super::report::ImportNote;
use super::source::{SourceId, SourceRow};
use super::users::allowed;
use crate::archive::Item;

const OWNER: i64 = 1;
const ADMIN: i64 = 2;
/// The state of a join request that is open.
const PENDING: i64 = 1;
/// The end of a mute forever: the last second of 9999.
const MUTED_FOREVER: u64 = 253_402_300_799_000;

/// A row of `t_group`.
struct GroupRow {
    key: SourceId,
    id: GroupId,
    profile: GroupProfile,
    creator: Option<SourceId>,
    created_at: Millis,
    updated_at: Millis,
    code: Option<JoinCode>,
    code_at: Millis,
}

/// A row of `t_group_member`.
struct GroupMemberRow {
    user: UserId,
    role: i64,
    joined_at: Millis,
    muted_until: Millis,
    member: SourceMember,
}

/// Group ids and join codes that are taken.
#[derive(Default)]
struct UsedNames {
    ids: HashSet<GroupId>,
    codes: HashSet<JoinCode>,
}

impl MiniImReader {
    /// Imports all groups.
    pub(super) async fn groups(&mut self) -> Result<(), StoreError> {
        let columns = ["created_at", "updated_at", "group_code_updated_at"];
        let [created_at, updated_at, code_at] =
            columns.map(|column| self.source.time("t_group", column));
        let code = self.source.column("t_group", "group_code");
        let sql = format!(
            "SELECT id, name, avatar_url, created_by, {created_at}, {updated_at}, {code}, {code_at} \
             FROM t_group ORDER BY id"
        );
        let mut taken = UsedNames::default();
        for row in self.source.rows(sql, Vec::new()).await? {
            if let Some(row) = self.read_group_row(row, &mut taken) {
                self.group(row, &mut taken).await?;
            }
        }
        Ok(())
    }

    fn read_group_row(&mut self, mut row: SourceRow, taken: &mut UsedNames) -> Option<GroupRow> {
        let key = row.key()?;
        let id = allowed(&key.text(), "group", |id| {
            GroupId::parse(id).ok().filter(|id| !taken.ids.contains(id))
        });
        taken.ids.insert(id.clone());
        if id.as_str() != key.text() {
            self.report.note(ImportNote::GroupRenamed, format!("{} is {id}", key.text()));
        }
        let (name, avatar) = (row.text().unwrap_or_default(), row.text().unwrap_or_default());
        let profile = GroupProfile { name, avatar, ..GroupProfile::default() };
        let (creator, created_at, updated_at) = (row.key(), row.millis(), row.millis());
        let code = row.text().and_then(|code| JoinCode::parse(&code));
        let code_at = row.millis();
        Some(GroupRow { key, id, profile, creator, created_at, updated_at, code, code_at })
    }

    /// Returns the join code of a group: its own, or a new one.
    fn code(&mut self, row: &GroupRow, taken: &mut UsedNames) -> JoinCode {
        let member = row.code.clone().filter(|code| !taken.codes.contains(code));
        let code = member.unwrap_or_else(|| {
            self.report.note(ImportNote::NewCode, row.id.as_str());
            loop {
                let mut bytes = [0; 8];
                self.options.rng.fill(&mut bytes);
                let code = JoinCode::random(bytes);
                if !taken.codes.contains(&code) {
                    return code;
                }
            }
        });
        taken.codes.insert(code.clone());
        code
    }

    async fn group(&mut self, row: GroupRow, taken: &mut UsedNames) -> Result<(), StoreError> {
        let members = self.members(&row.key).await?;
        if members.is_empty() {
            self.report.note(ImportNote::EmptyGroup, row.id.as_str());
            let sql = "SELECT COUNT(*) FROM t_message WHERE chat_type = 2 AND group_id = ?";
            let lost = self.source.rows(sql, vec![row.key.value()]).await?;
            let lost = lost.into_iter().next().and_then(|mut row| row.number()).unwrap_or_default();
            self.visited += u64::try_from(lost).unwrap_or_default();
            return Ok(());
        }
        let source = MessageSource {
            condition: "chat_type = 2 AND group_id = ?",
            keys: vec![row.key.value()],
            group: Some(&row.key),
        };
        let history = self.history(row.id.conversation(), &source).await?;
        let requests = self.requests(&row, &members).await?;
        let code = self.code(&row, taken);
        let group = self.build_group(&row, code, &members, requests.len());
        self.send(Item::JoinCode { code: group.code.clone(), group: group.id.clone() }).await?;
        self.send(Item::Group(Box::new(group))).await?;
        for request in requests {
            self.send(Item::JoinRequest(request)).await?;
        }
        for it in members {
            let window = Window { since: it.joined_at, ..Window::ALL };
            self.member(&history, it.user.clone(), &it.member, window).await?;
            let member = GroupMember {
                user: it.user,
                joined_at: it.joined_at,
                join_seq: Seq(1),
                came_after: history.newest_before(it.joined_at),
                inviter: None,
                muted_until: it.muted_until,
                profile: MemberProfile::default(),
            };
            self.send(Item::GroupMember { group: row.id.clone(), member }).await?;
        }
        Ok(())
    }

    /// Reads the members of a group, in the order in which they joined.
    async fn members(&mut self, group: &SourceId) -> Result<Vec<GroupMemberRow>, StoreError> {
        let table = "t_group_member";
        let joined_at = self.source.time(table, "join_at");
        let (quiet, muted) = (
            self.source.column(table, "mute_until"),
            self.source.column(table, "speak_mute_until"),
        );
        // A mute forever has a time that no clock reaches.
        let sql = format!(
            "SELECT user_id, role, {joined_at}, last_delivered_msg_id, last_read_msg_id, \
             {quiet} > NOW(), CASE WHEN {muted} > NOW() + INTERVAL 5 YEAR THEN {MUTED_FOREVER} \
             WHEN {muted} > NOW() THEN CAST(UNIX_TIMESTAMP({muted}) * 1000 AS UNSIGNED) END \
             FROM {table} WHERE group_id = ? ORDER BY join_at, id"
        );
        let mut members: Vec<GroupMemberRow> = Vec::new();
        for mut row in self.source.rows(sql, vec![group.value()]).await? {
            let Some(user) = row.key() else {
                self.report.note(ImportNote::NoMember, group.text());
                continue;
            };
            let user = self.person(&user).await?;
            let (role, joined_at) = (row.number().unwrap_or_default(), row.millis());
            let (delivered, read) = (row.key(), row.key());
            let member = SourceMember { delivered, read, is_muted: row.number() == Some(1) };
            members.push(GroupMemberRow {
                user,
                role,
                joined_at,
                muted_until: row.millis(),
                member,
            });
        }
        let mut known = HashSet::new();
        members.retain(|it| known.insert(it.user.clone()));
        Ok(members)
    }

    /// Builds the group. It has one owner: the one with that role, else its creator, else an admin,
    /// else the first member.
    fn build_group(
        &mut self,
        row: &GroupRow,
        code: JoinCode,
        members: &[GroupMemberRow],
        requests: usize,
    ) -> Group {
        let creator = row.creator.as_ref().and_then(|creator| self.users.get(creator));
        let owners: Vec<&GroupMemberRow> = members.iter().filter(|it| it.role == OWNER).collect();
        let by_creator = members.iter().find(|it| Some(&it.user) == creator.as_ref());
        let admin = || members.iter().find(|it| it.role == ADMIN);
        let owner = owners.first().copied().or(by_creator).or_else(admin).unwrap_or(&members[0]);
        if owners.len() != 1 {
            self.report.note(ImportNote::NewOwner, format!("{} has {}", row.id, owner.user));
        }
        let helps = |it: &&GroupMemberRow| it.role == ADMIN || it.role == OWNER;
        let admins = members.iter().filter(helps).filter(|it| it.user != owner.user);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Group {
            id: row.id.clone(),
            profile: row.profile.clone(),
            creator: creator.unwrap_or_else(|| owner.user.clone()),
            owner: owner.user.clone(),
            admins: admins.map(|it| it.user.clone()).collect(),
            joining: JoinPolicy::Approval,
            history: HistoryPolicy::All,
            is_muted: false,
            members: count(members.len()),
            requests: count(requests),
            code,
            code_at: row.code_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
            ended: None,
        }
    }

    /// Reads the open join requests.
    async fn requests(
        &mut self,
        group: &GroupRow,
        members: &[GroupMemberRow],
    ) -> Result<Vec<JoinRequest>, StoreError> {
        let table = "t_group_join_request";
        if !self.source.has(table) {
            return Ok(Vec::new());
        }
        let at = self.source.time(table, "created_at");
        let sql = format!(
            "SELECT from_user_id, message, {at} FROM {table} \
             WHERE group_id = ? AND status = {PENDING} ORDER BY id"
        );
        let mut waiting: BTreeMap<UserId, JoinRequest> = BTreeMap::new();
        for mut row in self.source.rows(sql, vec![group.key.value()]).await? {
            let Some(user) = row.key() else { continue };
            let user = self.person(&user).await?;
            let (message, at) = (row.text().unwrap_or_default(), row.millis());
            if members.iter().any(|it| it.user == user) {
                self.report.note(ImportNote::NoRequest, user.as_str());
                continue;
            }
            let request = JoinRequest { group: group.id.clone(), user: user.clone(), message, at };
            if waiting.insert(user.clone(), request).is_some() {
                self.report.note(ImportNote::NoRequest, user.as_str());
            }
        }
        Ok(waiting.into_values().collect())
    }
}
