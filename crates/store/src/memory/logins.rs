//! Logins of the reference engine.

use nexo_chat::ids::{LoginId, Millis, UserId};
use nexo_chat::model::Login;
use nexo_chat::store::{CreatedLogin, LoginStore, RotateRequest, Rotation, StoreFuture};

use crate::login_rules::{self, LIVE_LOGINS_MAX};

use super::{Memory, MemoryState};

impl LoginStore for Memory {
    fn create_login(
        &self,
        login: Login,
        session_version: u64,
        now: Millis,
    ) -> StoreFuture<'_, Option<CreatedLogin>> {
        self.write(|state| state.create_login(login, session_version, now))
    }

    fn login(&self, id: LoginId) -> StoreFuture<'_, Option<Login>> {
        self.read(|state| state.logins.get(&id).cloned())
    }

    fn logins(&self, user: &UserId) -> StoreFuture<'_, Vec<Login>> {
        self.read(|state| {
            let mine = state.logins.values().filter(|login| login.user == *user);
            login_rules::newest_first(mine.cloned().collect())
        })
    }

    fn rotate_refresh_token(&self, request: RotateRequest) -> StoreFuture<'_, Rotation> {
        self.write(|state| state.rotate(&request))
    }

    fn end_logins(
        &self,
        user: &UserId,
        which: Box<dyn Fn(&Login) -> bool + Send + Sync>,
    ) -> StoreFuture<'_, Vec<LoginId>> {
        self.write(|state| state.end_logins(user, &which))
    }
}

impl MemoryState {
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

    fn create_login(
        &mut self,
        mut login: Login,
        version: u64,
        now: Millis,
    ) -> Option<CreatedLogin> {
        if self.users.get(&login.user)?.session_version != version {
            return None;
        }
        let mine = self.logins.values().filter(|old| old.user == login.user);
        login.created_at = login_rules::created_after(login.created_at, mine);
        self.logins.retain(|_, old| old.user != login.user || login_rules::is_live(old, now));
        let mine = self.logins.values().filter(|old| old.user == login.user);
        let ended = login_rules::oldest_beyond(mine, LIVE_LOGINS_MAX - 1);
        for old in &ended {
            if let Some(old) = self.logins.get_mut(old) {
                old.ended = true;
            }
        }
        self.logins.insert(login.id, login.clone());
        Some(CreatedLogin { login, ended })
    }

    fn rotate(&mut self, request: &RotateRequest) -> Rotation {
        let old_hash = request.old_hash;
        let used = self.used_tokens.get(&old_hash).copied();
        let knows = |login: &&mut Login| login.refresh_hash == old_hash || used == Some(login.id);
        let Some(login) = self.logins.values_mut().find(knows) else { return Rotation::Unknown };
        let id = login.id;
        let rotated = login_rules::rotate(login, request);
        if let Rotation::Done(_) = rotated {
            self.used_tokens.insert(old_hash, id);
        }
        rotated
    }
}
