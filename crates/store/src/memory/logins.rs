//! Sign-ins of the reference engine.

use nexo_chat::ids::{LoginId, Millis, UserId};
use nexo_chat::model::Login;
use nexo_chat::store::{Rotated, SignedIn};

use super::State;
use crate::sign_ins::{self, LIVE_MAX};

impl State {
    pub(super) fn end_logins(
        &mut self,
        user: &UserId,
        which: &dyn Fn(&Login) -> bool,
    ) -> Vec<LoginId> {
        let picked = self.logins.values_mut().filter(|login| login.user == *user && !login.ended);
        let mut ended = Vec::new();
        for login in picked.filter(|login| which(login)) {
            login.ended = true;
            ended.push(login.id);
        }
        ended
    }

    pub(super) fn create_login(
        &mut self,
        mut login: Login,
        version: u64,
        now: Millis,
    ) -> Option<SignedIn> {
        if self.users.get(&login.user)?.session_version != version {
            return None;
        }
        let mine = self.logins.values().filter(|old| old.user == login.user);
        login.created_at = sign_ins::begin(login.created_at, mine);
        self.logins.retain(|_, old| old.user != login.user || sign_ins::is_live(old, now));
        let mine = self.logins.values().filter(|old| old.user == login.user);
        let ended = sign_ins::too_many(mine, LIVE_MAX - 1);
        for old in &ended {
            if let Some(old) = self.logins.get_mut(old) {
                old.ended = true;
            }
        }
        self.logins.insert(login.id, login.clone());
        Some(SignedIn { login, ended })
    }

    pub(super) fn rotate(
        &mut self,
        old_hash: [u8; 32],
        new_hash: [u8; 32],
        expires_at: Millis,
        now: Millis,
        grace_ms: u64,
    ) -> Rotated {
        let used = self.used.get(&old_hash).copied();
        let knows = |login: &&mut Login| login.refresh_hash == old_hash || used == Some(login.id);
        let Some(login) = self.logins.values_mut().find(knows) else { return Rotated::Unknown };
        let id = login.id;
        let rotated = sign_ins::rotate(login, old_hash, new_hash, expires_at, now, grace_ms);
        if let Rotated::Done(_) = rotated {
            self.used.insert(old_hash, id);
        }
        rotated
    }
}
