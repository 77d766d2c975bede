//! Accounts of the reference engine.

use std::ops::Bound;
use std::sync::Arc;

use nexo_chat::ids::{FoldedId, Millis, UserId};
use nexo_chat::model::{ProfileChange, ResetCode, User};
use nexo_chat::store::{AccountStore, ChangeAccount, StoreFuture};

use super::{Memory, MemoryState};
use crate::account_rules;

impl AccountStore for Memory {
    fn record_seen(&self, user: &UserId, at: Millis) -> StoreFuture<'_, ()> {
        self.write(|state| {
            state.last_seen.insert(user.clone(), at);
        })
    }

    fn last_seen(&self, user: &UserId) -> StoreFuture<'_, Option<Millis>> {
        self.read(|state| state.last_seen.get(user).copied())
    }

    fn create_user(&self, user: User) -> StoreFuture<'_, bool> {
        self.write(|state| {
            let folded = user.id.folded();
            let free = !state.folded_ids.contains_key(&folded);
            if free {
                state.folded_ids.insert(folded, user.id.clone());
                state.users.insert(user.id.clone(), user);
            }
            free
        })
    }

    fn user_by_folded_id<'a>(&'a self, folded: &'a FoldedId) -> StoreFuture<'a, Option<UserId>> {
        self.read(|state| state.folded_ids.get(folded).cloned())
    }

    fn user(&self, id: &UserId) -> StoreFuture<'_, Option<Arc<User>>> {
        self.read(|state| state.users.get(id).cloned().map(Arc::new))
    }

    fn users(&self, after: Option<&UserId>, limit: usize) -> StoreFuture<'_, Vec<Arc<User>>> {
        self.read(|state| {
            let from = after.map_or(Bound::Unbounded, Bound::Excluded);
            let rest = state.users.range::<UserId, _>((from, Bound::Unbounded));
            rest.take(limit).map(|(_, user)| Arc::new(user.clone())).collect()
        })
    }

    fn change_account(
        &self,
        id: &UserId,
        change: ChangeAccount,
    ) -> StoreFuture<'_, Option<Arc<User>>> {
        self.write(|state| {
            let before = state.users.get_mut(id)?;
            let Some(changed) = account_rules::apply(before, &*change) else {
                return Some(Arc::new(before.clone()));
            };
            *before = changed.user.clone();
            if changed.ends_logins {
                state.end_all_logins(id);
            }
            Some(Arc::new(changed.user))
        })
    }

    fn update_profile(
        &self,
        id: &UserId,
        change: ProfileChange,
        at: Millis,
    ) -> StoreFuture<'_, Option<Arc<User>>> {
        self.write(|state| {
            let user = state.users.get_mut(id)?;
            user.update(change, at);
            Some(Arc::new(user.clone()))
        })
    }

    fn change_password(
        &self,
        id: &UserId,
        session_version: u64,
        hash: String,
    ) -> StoreFuture<'_, Option<u64>> {
        self.write(|state| {
            let user = state.users.get(id)?;
            if user.session_version != session_version {
                return None;
            }
            Some(state.set_password(id, hash))
        })
    }

    fn put_reset_code(&self, id: &UserId, code: ResetCode) -> StoreFuture<'_, bool> {
        self.write(|state| {
            let exists = state.users.contains_key(id);
            if exists {
                state.reset_codes.insert(id.clone(), code);
            }
            exists
        })
    }

    fn reset_code(&self, id: &UserId) -> StoreFuture<'_, Option<ResetCode>> {
        self.read(|state| state.reset_codes.get(id).copied())
    }

    fn reset_password(
        &self,
        id: &UserId,
        code_hash: [u8; 32],
        now: Millis,
        hash: String,
    ) -> StoreFuture<'_, Option<u64>> {
        self.write(|state| {
            let is_right = state.reset_codes.get(id)?.matches(code_hash, now);
            is_right.then(|| state.set_password(id, hash))
        })
    }
}

impl MemoryState {
    /// Replaces the password of an existing user, ends their logins and returns the new session
    /// version.
    fn set_password(&mut self, id: &UserId, hash: String) -> u64 {
        let mut version = 0;
        if let Some(user) = self.users.get_mut(id) {
            user.password_hash = hash;
            user.session_version += 1;
            version = user.session_version;
        }
        self.end_all_logins(id);
        version
    }

    /// Ends the logins of a user whose session version was raised.
    fn end_all_logins(&mut self, id: &UserId) {
        self.reset_codes.remove(id);
        self.end_logins(id, &|_| true);
    }
}
