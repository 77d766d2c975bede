//! Groups, with everybody in them. There a member sees everything from the first message on, and
//! comes in by a code when somebody lets them.

use std::collections::{BTreeMap, HashSet};

use nexo_chat::ids::{GroupId, Millis, Seq, UserId};
use nexo_chat::membership::{
    Group, GroupMember, GroupProfile, History, JoinCode, JoinRequest, Joining, MemberProfile,
};
use nexo_chat::model::Window;
use nexo_chat::store::StoreError;

use super::Reader;
use super::chats::Kept;
use super::old::{Cells, Key};
use super::people::allowed;
use super::report::Note;
use super::talk::Place;
use crate::archive::Item;

const OWNER: i64 = 1;
const ADMIN: i64 = 2;
/// The state of a wish that nobody has answered.
const PENDING: i64 = 1;
/// Until when somebody is muted for good: the last second of 9999.
const FOR_GOOD: u64 = 253_402_300_799_000;

/// A row of `t_group`.
struct Row {
    key: Key,
    id: GroupId,
    profile: GroupProfile,
    creator: Option<Key>,
    created_at: Millis,
    updated_at: Millis,
    code: Option<JoinCode>,
    code_at: Millis,
}

/// A row of `t_group_member`.
struct Belongs {
    user: UserId,
    role: i64,
    joined_at: Millis,
    muted_until: Millis,
    kept: Kept,
}

/// Names that are gone.
#[derive(Default)]
struct Taken {
    ids: HashSet<GroupId>,
    codes: HashSet<JoinCode>,
}

impl Reader {
    /// All groups.
    pub(super) async fn groups(&mut self) -> Result<(), StoreError> {
        let columns = ["created_at", "updated_at", "group_code_updated_at"];
        let [created_at, updated_at, code_at] =
            columns.map(|column| self.old.time("t_group", column));
        let code = self.old.column("t_group", "group_code");
        let sql = format!(
            "SELECT id, name, avatar_url, created_by, {created_at}, {updated_at}, {code}, {code_at} \
             FROM t_group ORDER BY id"
        );
        let mut taken = Taken::default();
        for row in self.old.rows(sql, Vec::new()).await? {
            if let Some(row) = self.row(row, &mut taken) {
                self.group(row, &mut taken).await?;
            }
        }
        Ok(())
    }

    fn row(&mut self, mut row: Cells, taken: &mut Taken) -> Option<Row> {
        let key = row.key()?;
        let id = allowed(&key.text(), "group", |id| {
            GroupId::parse(id).ok().filter(|id| !taken.ids.contains(id))
        });
        taken.ids.insert(id.clone());
        if id.as_str() != key.text() {
            self.report.note(Note::GroupRenamed, format!("{} is {id}", key.text()));
        }
        let (name, avatar) = (row.text().unwrap_or_default(), row.text().unwrap_or_default());
        let profile = GroupProfile { name, avatar, ..GroupProfile::default() };
        let (creator, created_at, updated_at) = (row.key(), row.millis(), row.millis());
        let code = row.text().and_then(|code| JoinCode::parse(&code));
        let code_at = row.millis();
        Some(Row { key, id, profile, creator, created_at, updated_at, code, code_at })
    }

    /// The code that leads to a group: its own, or a new one.
    fn code(&mut self, row: &Row, taken: &mut Taken) -> JoinCode {
        let kept = row.code.clone().filter(|code| !taken.codes.contains(code));
        let code = kept.unwrap_or_else(|| {
            self.report.note(Note::NewCode, row.id.as_str());
            loop {
                let mut bytes = [0; 8];
                self.options.dice.fill(&mut bytes);
                let code = JoinCode::random(bytes);
                if !taken.codes.contains(&code) {
                    return code;
                }
            }
        });
        taken.codes.insert(code.clone());
        code
    }

    async fn group(&mut self, row: Row, taken: &mut Taken) -> Result<(), StoreError> {
        let members = self.members(&row.key).await?;
        if members.is_empty() {
            self.report.note(Note::EmptyGroup, row.id.as_str());
            let sql = "SELECT COUNT(*) FROM t_message WHERE chat_type = 2 AND group_id = ?";
            let lost = self.old.rows(sql, vec![row.key.value()]).await?;
            let lost = lost.into_iter().next().and_then(|mut row| row.number()).unwrap_or_default();
            self.visited += u64::try_from(lost).unwrap_or_default();
            return Ok(());
        }
        let place = Place {
            condition: "chat_type = 2 AND group_id = ?",
            keys: vec![row.key.value()],
            group: Some(&row.key),
        };
        let talk = self.talk(row.id.conversation(), &place).await?;
        let requests = self.requests(&row, &members).await?;
        let code = self.code(&row, taken);
        let group = self.made(&row, code, &members, requests.len());
        self.give(Item::Code { code: group.code.clone(), group: group.id.clone() }).await?;
        self.give(Item::Group(Box::new(group))).await?;
        for request in requests {
            self.give(Item::Request(request)).await?;
        }
        for it in members {
            let window = Window { since: it.joined_at, ..Window::ALL };
            self.member(&talk, it.user.clone(), &it.kept, window).await?;
            let member = GroupMember {
                user: it.user,
                joined_at: it.joined_at,
                join_seq: Seq(1),
                came_after: talk.newest_at(it.joined_at),
                inviter: None,
                muted_until: it.muted_until,
                profile: MemberProfile::default(),
            };
            self.give(Item::GroupMember { group: row.id.clone(), member }).await?;
        }
        Ok(())
    }

    /// Everybody in a group, those who came first before the others.
    async fn members(&mut self, group: &Key) -> Result<Vec<Belongs>, StoreError> {
        let table = "t_group_member";
        let joined_at = self.old.time(table, "join_at");
        let (quiet, muted) =
            (self.old.column(table, "mute_until"), self.old.column(table, "speak_mute_until"));
        // Who may never speak again has a time that no clock reaches.
        let sql = format!(
            "SELECT user_id, role, {joined_at}, last_delivered_msg_id, last_read_msg_id, \
             {quiet} > NOW(), CASE WHEN {muted} > NOW() + INTERVAL 5 YEAR THEN {FOR_GOOD} \
             WHEN {muted} > NOW() THEN CAST(UNIX_TIMESTAMP({muted}) * 1000 AS UNSIGNED) END \
             FROM {table} WHERE group_id = ? ORDER BY join_at, id"
        );
        let mut members: Vec<Belongs> = Vec::new();
        for mut row in self.old.rows(sql, vec![group.value()]).await? {
            let Some(user) = row.key() else {
                self.report.note(Note::NoMember, group.text());
                continue;
            };
            let user = self.person(&user).await?;
            let (role, joined_at) = (row.number().unwrap_or_default(), row.millis());
            let (delivered, read) = (row.key(), row.key());
            let kept = Kept { delivered, read, is_quiet: row.number() == Some(1) };
            members.push(Belongs { user, role, joined_at, muted_until: row.millis(), kept });
        }
        let mut known = HashSet::new();
        members.retain(|it| known.insert(it.user.clone()));
        Ok(members)
    }

    /// The group itself. It has one owner: who is called so, else who made it, else who helps, else
    /// who came first.
    fn made(&mut self, row: &Row, code: JoinCode, members: &[Belongs], requests: usize) -> Group {
        let creator = row.creator.as_ref().and_then(|creator| self.people.get(creator));
        let owners: Vec<&Belongs> = members.iter().filter(|it| it.role == OWNER).collect();
        let by_creator = members.iter().find(|it| Some(&it.user) == creator.as_ref());
        let admin = || members.iter().find(|it| it.role == ADMIN);
        let owner = owners.first().copied().or(by_creator).or_else(admin).unwrap_or(&members[0]);
        if owners.len() != 1 {
            self.report.note(Note::NewOwner, format!("{} has {}", row.id, owner.user));
        }
        let helps = |it: &&Belongs| it.role == ADMIN || it.role == OWNER;
        let admins = members.iter().filter(helps).filter(|it| it.user != owner.user);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Group {
            id: row.id.clone(),
            profile: row.profile.clone(),
            creator: creator.unwrap_or_else(|| owner.user.clone()),
            owner: owner.user.clone(),
            admins: admins.map(|it| it.user.clone()).collect(),
            joining: Joining::Approval,
            history: History::All,
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

    /// Those who wait to be let in.
    async fn requests(
        &mut self,
        group: &Row,
        members: &[Belongs],
    ) -> Result<Vec<JoinRequest>, StoreError> {
        let table = "t_group_join_request";
        if !self.old.has(table) {
            return Ok(Vec::new());
        }
        let at = self.old.time(table, "created_at");
        let sql = format!(
            "SELECT from_user_id, message, {at} FROM {table} \
             WHERE group_id = ? AND status = {PENDING} ORDER BY id"
        );
        let mut waiting: BTreeMap<UserId, JoinRequest> = BTreeMap::new();
        for mut row in self.old.rows(sql, vec![group.key.value()]).await? {
            let Some(user) = row.key() else { continue };
            let user = self.person(&user).await?;
            let (message, at) = (row.text().unwrap_or_default(), row.millis());
            if members.iter().any(|it| it.user == user) {
                self.report.note(Note::NoRequest, user.as_str());
                continue;
            }
            let request = JoinRequest { group: group.id.clone(), user: user.clone(), message, at };
            if waiting.insert(user.clone(), request).is_some() {
                self.report.note(Note::NoRequest, user.as_str());
            }
        }
        Ok(waiting.into_values().collect())
    }
}
