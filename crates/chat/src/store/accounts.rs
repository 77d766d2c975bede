//! Accounts: profiles, passwords, reset codes and when a user was last seen.

use std::sync::Arc;

use super::StoreFuture;
use crate::ids::{FoldedId, Millis, UserId};
use crate::model::{ProfileChange, ResetCode, User};

/// Changes an account. Pure: it runs inside the atomic operation, and again on every retry.
pub type ChangeAccount = Box<dyn Fn(&User) -> Option<User> + Send + Sync>;

/// Creates, reads and changes accounts. An account is deleted by its status
/// ([`AccountStatus::Deleted`]): the record stays, and its id is never free again.
///
/// [`AccountStatus::Deleted`]: crate::model::AccountStatus::Deleted
pub trait AccountStore: Send + Sync {
    /// Records when a user was last seen. It need not outlive a crash.
    fn record_seen(&self, user: &UserId, at: Millis) -> StoreFuture<'_, ()>;

    /// Returns when a user was last seen.
    fn last_seen(&self, user: &UserId) -> StoreFuture<'_, Option<Millis>>;

    /// Creates an account; `false` if the id is taken, or one that folds to the same
    /// ([`UserId::folded`]). Durable when it returns.
    fn create_user(&self, user: User) -> StoreFuture<'_, bool>;

    /// Returns the user id that holds a folded id. Of accounts that were created before ids were
    /// folded and that fold to the same id, the oldest holds it.
    fn user_by_folded_id<'a>(&'a self, folded: &'a FoldedId) -> StoreFuture<'a, Option<UserId>>;

    /// Returns the account, deleted or not, if there is one. Called for every send, so it is shared,
    /// not copied.
    fn user(&self, id: &UserId) -> StoreFuture<'_, Option<Arc<User>>>;

    /// Whether there is such an account, and it is not deleted. Called for every send, so an engine
    /// may answer from memory; see [`AccountStore::forget_user`].
    fn user_exists<'a>(&'a self, id: &'a UserId) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let user = self.user(id).await?;
            Ok(user.is_some_and(|user| !user.details.status.is_deleted()))
        })
    }

    /// Tells the store that another node changed this account: whatever this node has in memory
    /// about it is read again.
    fn forget_user(&self, _id: &UserId) {}

    /// Returns up to `limit` accounts, deleted or not, in the order of their ids (bytes), after a
    /// given one.
    fn users(&self, after: Option<&UserId>, limit: usize) -> StoreFuture<'_, Vec<Arc<User>>>;

    /// Changes an account in one atomic operation: `change` gets it as it is now and returns it
    /// changed, or `None` to leave it. The id and the creation time stay, and neither the session
    /// version nor the time of last change goes back. If the session version was raised, all logins
    /// of the user end in the same operation and a reset code is deleted. Returns the account as it
    /// is now; `None` if there is no such user. Durable when it returns.
    fn change_account(
        &self,
        id: &UserId,
        change: ChangeAccount,
    ) -> StoreFuture<'_, Option<Arc<User>>>;

    /// Changes a profile and its time of last change, which never goes back. Returns the account as
    /// it is now; `None` if there is no such user.
    fn update_profile(
        &self,
        id: &UserId,
        change: ProfileChange,
        at: Millis,
    ) -> StoreFuture<'_, Option<Arc<User>>>;

    /// Replaces the password, raises the session version and ends all logins of the user, in one
    /// atomic operation. Returns the new version; `None` if there is no such user, or if the
    /// session version is no longer the given one: a client that knew only the old password comes
    /// too late.
    fn change_password(
        &self,
        id: &UserId,
        session_version: u64,
        hash: String,
    ) -> StoreFuture<'_, Option<u64>>;

    /// Stores a one-time reset code, replacing the previous one; `false` if there is no such user.
    /// Durable when it returns. A new password deletes it.
    fn put_reset_code(&self, id: &UserId, code: ResetCode) -> StoreFuture<'_, bool>;

    /// Returns a user's reset code that was not used yet; it may have expired.
    fn reset_code(&self, id: &UserId) -> StoreFuture<'_, Option<ResetCode>>;

    /// Replaces the password by a reset code, as [`AccountStore::change_password`] would: deletes
    /// the code, raises the session version and ends all logins, in one atomic operation. Returns
    /// the new version; `None`, and nothing changed, if it is not the user's code or has expired.
    fn reset_password(
        &self,
        id: &UserId,
        code_hash: [u8; 32],
        now: Millis,
        hash: String,
    ) -> StoreFuture<'_, Option<u64>>;
}
