//! The settings of groups.

use nexo_chat::rules::{GroupRules, Strategy};
use serde::{Deserialize, Serialize};

/// Sizes of groups and how their messages are told.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Groups {
    pub(crate) members_max: u32,
    pub(crate) admins_max: usize,
    pub(crate) batch_max: usize,
    pub(crate) join_requests_max: u32,
    pub(crate) mentions_max: usize,
    pub(crate) code_cooldown_seconds: u64,
    pub(crate) strategy: String,
    pub(crate) notify_members: u32,
    pub(crate) notify_online: usize,
    pub(crate) none_members: u32,
    pub(crate) none_online: usize,
}

impl Default for Groups {
    fn default() -> Self {
        let rules = GroupRules::default();
        Self {
            members_max: rules.members_max,
            admins_max: rules.admins_max,
            batch_max: rules.batch_max,
            join_requests_max: rules.requests_max,
            mentions_max: rules.mentions_max,
            code_cooldown_seconds: rules.code_cooldown_ms / 1000,
            strategy: "auto".into(),
            notify_members: rules.notify_members,
            notify_online: rules.notify_online,
            none_members: rules.none_members,
            none_online: rules.none_online,
        }
    }
}

/// Who hears that something was read.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Receipts {
    pub(crate) group_members_max: u32,
}

impl Default for Receipts {
    fn default() -> Self {
        Self { group_members_max: GroupRules::default().receipts_members_max }
    }
}

impl Groups {
    fn strategy(&self) -> Option<Strategy> {
        match self.strategy.as_str() {
            "push" => Some(Strategy::Push),
            "notify" => Some(Strategy::Notify),
            "none" => Some(Strategy::None),
            "auto" => Some(Strategy::Auto),
            _ => None,
        }
    }

    /// What is wrong.
    pub(crate) fn problems(&self) -> Vec<String> {
        let known = self.strategy().is_some();
        let told = "groups.strategy is `push`, `notify`, `none` or `auto`";
        let problem = (!known).then(|| told.to_owned());
        let empty = self.members_max == 0 || self.batch_max == 0;
        let problem_too =
            empty.then(|| "groups.members_max and groups.batch_max are at least 1".to_owned());
        problem.into_iter().chain(problem_too).collect()
    }

    /// In the domain's words.
    pub(crate) fn rules(&self, receipts: &Receipts) -> GroupRules {
        GroupRules {
            members_max: self.members_max,
            admins_max: self.admins_max,
            batch_max: self.batch_max,
            requests_max: self.join_requests_max,
            mentions_max: self.mentions_max,
            code_cooldown_ms: self.code_cooldown_seconds.saturating_mul(1000),
            receipts_members_max: receipts.group_members_max,
            strategy: self.strategy().unwrap_or_default(),
            notify_members: self.notify_members,
            notify_online: self.notify_online,
            none_members: self.none_members,
            none_online: self.none_online,
        }
    }
}
