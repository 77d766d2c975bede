//! Group members: their profile, role and read state.

use nexo_chat::DetailedReason;
use nexo_chat::ids::{Millis, UserId};
use nexo_chat::membership::{Group, GroupMember, Role};
use nexo_chat::model::User;
use nexo_chat::read::MemberCursors;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{enum_values, field_schemas};

#[derive(Deserialize, IntoParams)]
pub struct GroupPageParams {
    #[param(value_type = String)]
    pub group_id: Option<String>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}

#[derive(Deserialize, IntoParams)]
pub struct MemberParams {
    #[param(value_type = String)]
    pub group_id: Option<String>,
    pub user_id: String,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct GroupReadStateParams {
    #[param(value_type = String)]
    pub group_id: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberInfoBody {
    #[schema(value_type = String)]
    pub group_id: Option<String>,
    /// Your name in this group; empty is that of your account.
    #[schema(max_length = 128)]
    pub group_nickname: Option<String>,
    pub group_avatar: Option<String>,
    /// Your app's own data, up to 4,096 bytes; the members see it.
    pub extra: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InviteBody {
    #[schema(value_type = String)]
    pub group_id: Option<String>,
    #[schema(min_items = 1)]
    pub user_ids: Vec<String>,
}

/// A request about one person of a group.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetBody {
    #[schema(value_type = String)]
    pub group_id: Option<String>,
    pub user_id: String,
}

/// A role by its number or its word.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
pub enum GivenRole {
    Number(i64),
    Word(String),
}

impl GivenRole {
    pub fn role(&self) -> Result<Role, DetailedReason> {
        let role = match self {
            Self::Number(number) => enum_values::role_from_number(*number),
            Self::Word(word) => enum_values::parse_role(word),
        };
        role.ok_or_else(|| DetailedReason::field("role"))
    }
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleBody {
    #[schema(value_type = String)]
    pub group_id: Option<String>,
    pub user_id: String,
    /// 0 or `member`, 1 or `admin`.
    pub role: GivenRole,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MuteBody {
    #[schema(value_type = String)]
    pub group_id: Option<String>,
    pub user_id: String,
    /// Up to a year; -1 is for ever, 0 ends it.
    #[schema(minimum = -1, maximum = 31_536_000)]
    pub seconds: i64,
}

impl MuteBody {
    pub fn until(&self, now: Millis) -> Result<Millis, DetailedReason> {
        muted_until(self.seconds, now)
    }
}

/// `muted_until` of a mute without end: the largest integer that a JSON number keeps exactly.
const FOR_EVER: Millis = Millis(9_007_199_254_740_991);

/// A year: the longest mute that ends.
const MUTE_SECONDS_MAX: i64 = 31_536_000;

/// When a mute of so many seconds ends: -1 never, 0 at once.
fn muted_until(seconds: i64, now: Millis) -> Result<Millis, DetailedReason> {
    match u64::try_from(seconds) {
        Err(_) if seconds == -1 => Ok(FOR_EVER),
        Ok(0) => Ok(Millis(0)),
        Ok(some) if seconds <= MUTE_SECONDS_MAX => Ok(now.plus(some * 1000)),
        _ => Err(DetailedReason::field("seconds")),
    }
}

/// Somebody in a group.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemberInfo {
    group_id: String,
    user_id: String,
    nickname: String,
    avatar: String,
    /// How they want to be seen in this group; empty: as everywhere.
    group_nickname: String,
    group_avatar: String,
    /// Their app's own data in this group.
    extra: String,
    #[schema(schema_with = field_schemas::role_number)]
    role_level: i32,
    /// Always 0: those who left are not listed.
    status: i32,
    joined_at: u64,
    join_seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    inviter_user_id: Option<String>,
    muted_until: u64,
}

impl MemberInfo {
    /// `account` gives nickname and avatar.
    pub fn new(group: &Group, member: &GroupMember, account: Option<&User>) -> Self {
        let profile = account.map(|account| account.profile.clone()).unwrap_or_default();
        Self {
            group_id: group.id.to_string(),
            user_id: member.user.to_string(),
            nickname: profile.nickname,
            avatar: profile.avatar,
            group_nickname: member.profile.nickname.clone(),
            group_avatar: member.profile.avatar.clone(),
            extra: member.profile.extra.clone(),
            role_level: enum_values::role_number(group.role(&member.user)),
            status: 0,
            joined_at: member.joined_at.0,
            join_seq: member.join_seq.0,
            inviter_user_id: member.inviter.as_ref().map(ToString::to_string),
            muted_until: member.muted_until.0,
        }
    }
}

/// How far everybody in a group has come.
#[derive(Debug, Serialize, ToSchema)]
pub struct GroupReadState {
    /// Whether the group has more members than receipts are told for
    /// (`receipts.group_members_max`): then nobody is listed.
    too_large: bool,
    /// By user id, with the caller.
    members: Vec<MemberReadState>,
}

/// How far a member has come.
#[derive(Debug, Serialize, ToSchema)]
struct MemberReadState {
    user_id: String,
    /// The first message they were there for. They have not read what was said before, although
    /// their cursors are behind it.
    from_seq: u64,
    delivered_seq: u64,
    read_seq: u64,
}

impl From<Option<Vec<MemberCursors>>> for GroupReadState {
    fn from(found: Option<Vec<MemberCursors>>) -> Self {
        let shown = |member: MemberCursors| MemberReadState {
            user_id: member.user.to_string(),
            from_seq: member.from.0,
            delivered_seq: member.cursors.delivered.0,
            read_seq: member.cursors.read.0,
        };
        let too_large = found.is_none();
        Self { too_large, members: found.into_iter().flatten().map(shown).collect() }
    }
}

/// Who came by an invitation: those who were not in already.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Invited)]
pub struct InviteResult {
    joined: Vec<String>,
}

impl From<&[UserId]> for InviteResult {
    fn from(joined: &[UserId]) -> Self {
        Self { joined: joined.iter().map(ToString::to_string).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mute_lasts_up_to_a_year_or_for_ever() {
        let check = |seconds, expect| {
            assert_eq!(muted_until(seconds, Millis(5)), expect, "{seconds}");
        };
        check(-1, Ok(FOR_EVER));
        check(0, Ok(Millis(0)));
        check(1, Ok(Millis(1005)));
        check(31_536_000, Ok(Millis(31_536_000_005)));
        for bad in [-2, 31_536_001, i64::MIN, i64::MAX] {
            check(bad, Err(DetailedReason::field("seconds")));
        }
    }
}
