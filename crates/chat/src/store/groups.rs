//! Groups, their members and the requests to join them.

use std::sync::Arc;

use super::{Actor, StoreFuture};
use crate::ids::{GroupId, UserId};
use crate::membership::{Group, GroupDecision, GroupFacts, GroupMember, JoinCode, JoinRequest};
use crate::model::{Change, Cursors};
use crate::reason::Reason;

/// Decides how a group changes. Pure: it runs inside the atomic operation, and again on every
/// retry.
pub type DecideGroup = Box<dyn Fn(&GroupFacts) -> Result<GroupDecision, Reason> + Send + Sync>;

/// The facts that a decision about a group needs.
#[derive(Clone, Debug, Default)]
pub struct GroupFactsQuery {
    /// Users besides the asker.
    pub users: Vec<UserId>,
    /// A join code the group would take.
    pub code: Option<JoinCode>,
}

/// A group after a decision about it was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOutcome {
    pub group: Arc<Group>,
    pub joined: Vec<UserId>,
    /// New requests to join.
    pub asked: Vec<JoinRequest>,
    /// Requests to join that are no longer open.
    pub settled: Vec<JoinRequest>,
    /// The changes that all members are notified of.
    pub changes: Vec<Arc<Change>>,
}

/// Reads and changes groups.
pub trait GroupStore: Send + Sync {
    /// Changes a group in one atomic operation, in one order with the messages of its conversation:
    /// reads the facts, asks `decide`, and carries out the decision. A user who joins begins with
    /// both cursors at the newest message. Durable when it returns, and the listener receives the
    /// changes, in order. A refusal changes nothing; a decision that changes nothing writes
    /// nothing.
    fn change_group(
        &self,
        id: &GroupId,
        asker: Actor,
        about: GroupFactsQuery,
        decide: DecideGroup,
    ) -> StoreFuture<'static, Result<GroupOutcome, Reason>>;

    /// Returns a group, ended or not. Called for every send, so the group is shared, not copied.
    fn group(&self, id: &GroupId) -> StoreFuture<'_, Option<Arc<Group>>>;

    /// Returns up to `limit` groups, ended or not, in the order of their ids (bytes), after a given
    /// one.
    fn groups(&self, after: Option<&GroupId>, limit: usize) -> StoreFuture<'_, Vec<Arc<Group>>>;

    /// Returns the group that a join code leads to.
    fn group_by_code(&self, code: &JoinCode) -> StoreFuture<'_, Option<GroupId>>;

    /// Returns a member of a group; `None` if the user is not in it, or the group has ended.
    fn group_member(&self, group: &GroupId, user: &UserId) -> StoreFuture<'_, Option<GroupMember>>;

    /// Returns up to `limit` members of a group in the order of their ids, after a given one. None
    /// once the group has ended.
    fn group_members(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<GroupMember>>;

    /// Returns the same members with their cursors, in one read.
    fn group_cursors(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(GroupMember, Cursors)>>;

    /// Tells for each of `others`, in the order given, whether `user` shares a conversation with
    /// them: it is the user themselves, or the two have exchanged a private message, or both are in
    /// a group now. Settings of a private conversation without messages do not count.
    fn share_conversation(&self, user: &UserId, others: Vec<UserId>) -> StoreFuture<'_, Vec<bool>>;

    /// Returns up to `limit` open requests to join, in the order of the user ids, after a given
    /// one.
    fn join_requests(
        &self,
        group: &GroupId,
        after: Option<&UserId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<JoinRequest>>;
}
