//! How an account changes, the same for every engine: pure, so that the engines differ only in how
//! they store it.

use nexo_chat::model::User;

/// An account after a change.
pub(crate) struct ChangedAccount {
    pub(crate) user: User,
    /// Whether all logins of the user end, and a reset code is deleted.
    pub(crate) ends_logins: bool,
}

/// Asks `change` for the account as it should be. `None` if it stays as it is.
pub(crate) fn apply(
    before: &User,
    change: &(dyn Fn(&User) -> Option<User> + Send + Sync),
) -> Option<ChangedAccount> {
    let mut user = change(before)?;
    user.id = before.id.clone();
    user.created_at = before.created_at;
    user.updated_at = user.updated_at.max(before.updated_at);
    user.session_version = user.session_version.max(before.session_version);
    let ends_logins = user.session_version > before.session_version;
    (user != *before).then_some(ChangedAccount { user, ends_logins })
}

#[cfg(test)]
mod tests {
    use nexo_chat::ids::{Millis, UserId};
    use nexo_chat::model::{AccountDetails, Profile};

    use super::*;

    fn account() -> User {
        User {
            id: UserId::parse("alice").unwrap(),
            profile: Profile::default(),
            created_at: Millis(5),
            updated_at: Millis(7),
            password_hash: "hash".into(),
            session_version: 3,
            details: AccountDetails::default(),
        }
    }

    #[test]
    fn what_must_stay_stays() {
        let changed = apply(&account(), &|before| {
            Some(User {
                id: UserId::parse("bob").unwrap(),
                created_at: Millis(1),
                updated_at: Millis(1),
                session_version: 1,
                password_hash: "new".into(),
                ..before.clone()
            })
        });
        let changed = changed.unwrap();
        assert_eq!(changed.user, User { password_hash: "new".into(), ..account() });
        assert!(!changed.ends_logins);
    }

    #[test]
    fn a_change_without_effect_is_none() {
        assert!(apply(&account(), &|_| None).is_none());
        assert!(apply(&account(), &|before| Some(before.clone())).is_none());
        let older = |before: &User| Some(User { session_version: 2, ..before.clone() });
        assert!(apply(&account(), &older).is_none());
    }

    #[test]
    fn a_raised_session_version_ends_logins() {
        let raised = |before: &User| Some(User { session_version: 4, ..before.clone() });
        assert!(apply(&account(), &raised).unwrap().ends_logins);
    }
}
