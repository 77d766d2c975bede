//! Accounts and their new ids.

use std::collections::{HashMap, HashSet};

use nexo_chat::ids::{Millis, UserId};
use nexo_chat::model::{AccountDetails, Profile, User};
use nexo_chat::password_reset;
use nexo_chat::store::StoreError;

use super::report::ImportNote;
use super::source::{SourceId, SourceRow};
use super::{MiniImReader, UserIds};
use crate::archive::Item;

/// Accounts read at a time.
const PAGE: usize = 1000;
/// The state of an account that is not disabled.
const ACTIVE: i64 = 1;

/// The new ids of users.
pub(super) struct UserMap {
    user_ids: UserIds,
    known: HashMap<SourceId, UserId>,
    taken: HashSet<UserId>,
}

impl UserMap {
    pub(super) fn new(user_ids: UserIds) -> Self {
        // No account may get the id of the system user.
        Self { user_ids, known: HashMap::new(), taken: [UserId::system()].into() }
    }

    pub(super) fn get(&self, key: &SourceId) -> Option<UserId> {
        self.known.get(key).cloned()
    }

    /// Assigns an id, as close to the wanted one as possible.
    fn call(&mut self, key: &SourceId, wanted: &str) -> UserId {
        let id = allowed(wanted, &key.text(), |id| match UserId::parse(id) {
            Ok(id) if !self.taken.contains(&id) => Some(id),
            _ => None,
        });
        self.taken.insert(id.clone());
        self.known.insert(key.clone(), id.clone());
        id
    }
}

/// Returns the wanted id, or one like it that is allowed.
pub(super) fn allowed<T>(wanted: &str, key: &str, fits: impl Fn(&str) -> Option<T>) -> T {
    let clean = |text: &str, length: usize| -> String {
        let sign =
            |sign: char| if sign.is_ascii_alphanumeric() || sign == '.' { sign } else { '-' };
        text.chars().map(sign).take(length).collect()
    };
    if let Some(id) = fits(wanted).or_else(|| fits(&clean(wanted, UserId::LEN_MAX))) {
        return id;
    }
    // Two ids may be the same after characters were replaced.
    let (name, key) = (clean(wanted, 24), clean(key, 24));
    let mut numbers = 0_u64..;
    loop {
        let number = numbers.next().unwrap_or_default();
        let id =
            if number == 0 { format!("{name}-{key}") } else { format!("{name}-{key}-{number}") };
        if let Some(id) = fits(&id) {
            return id;
        }
    }
}

impl MiniImReader {
    /// Imports all accounts.
    pub(super) async fn accounts(&mut self) -> Result<(), StoreError> {
        let created_at = self.source.time("t_user", "created_at");
        let status = self.source.column("t_user", "status");
        let mut last: Option<SourceId> = None;
        loop {
            let after = if last.is_some() { "WHERE id > ?" } else { "" };
            let sql = format!(
                "SELECT id, username, nickname, avatar_url, password_hash, {status}, {created_at} \
                 FROM t_user {after} ORDER BY id LIMIT {PAGE}"
            );
            let rows = self.source.rows(sql, last.iter().map(SourceId::value).collect()).await?;
            let is_last = rows.len() < PAGE;
            for mut row in rows {
                let Some(key) = row.key() else { continue };
                last = Some(key.clone());
                self.account(&key, row).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    async fn account(&mut self, key: &SourceId, mut row: SourceRow) -> Result<(), StoreError> {
        let username = row.text().unwrap_or_default();
        let nickname = row.text().filter(|name| !name.is_empty());
        let (avatar, password) = (row.text().unwrap_or_default(), row.text());
        let (status, created_at) = (row.number().unwrap_or(ACTIVE), row.millis());
        let wanted = match self.users.user_ids {
            UserIds::Username if !username.is_empty() => username.clone(),
            _ => key.text(),
        };
        let id = self.users.call(key, &wanted);
        if id.as_str() != wanted {
            self.report.note(ImportNote::UserRenamed, format!("{wanted} is {id}"));
        }
        let is_usable = |password: &String| (self.options.is_usable)(password);
        let (is_active, password) = (status == ACTIVE, password.filter(is_usable));
        let needs_code = is_active && password.is_none();
        let password_hash = match password {
            Some(password) if is_active => password,
            _ => {
                let note = if is_active { ImportNote::NoPassword } else { ImportNote::SwitchedOff };
                self.report.note(note, id.as_str());
                self.options.unusable_password.clone()
            }
        };
        // The name with which the user logged in is kept in the profile.
        let extra = if username.is_empty() {
            String::new()
        } else {
            serde_json::json!({ "username": username }).to_string()
        };
        let nickname = nickname.unwrap_or_else(|| username.clone());
        let profile = Profile { nickname, avatar, extra };
        if needs_code {
            let (issued, code) =
                password_reset::generate(&*self.options.rng, &id, self.options.now);
            self.codes.push(issued);
            self.send(Item::ResetCode { user: id.clone(), code }).await?;
        }
        let user = User {
            id,
            profile,
            created_at,
            updated_at: created_at,
            password_hash,
            session_version: 1,
            details: AccountDetails::default(),
        };
        self.send(Item::User(user)).await
    }

    /// Returns the id of a user that a chat or group refers to. If there is no such account, one is
    /// created, so that no message is lost.
    pub(super) async fn person(&mut self, key: &SourceId) -> Result<UserId, StoreError> {
        if let Some(id) = self.users.get(key) {
            return Ok(id);
        }
        let id = self.users.call(key, &key.text());
        self.report.note(ImportNote::MadeUp, id.as_str());
        let user = User {
            id: id.clone(),
            profile: Profile { nickname: key.text(), ..Profile::default() },
            created_at: Millis(0),
            updated_at: Millis(0),
            password_hash: self.options.unusable_password.clone(),
            session_version: 1,
            details: AccountDetails::default(),
        };
        self.send(Item::User(user)).await?;
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_to_fit_and_never_meet() {
        let mut users = UserMap::new(UserIds::Username);
        let mut call =
            |n, wanted: &str| users.call(&SourceId::Number(n), wanted).as_str().to_owned();
        assert_eq!(call(1, "alice"), "alice");
        assert_eq!(call(2, "a_b"), "a-b");
        assert_eq!(call(3, "a:b"), "a-b-3");
        assert_eq!(call(4, "system"), "system-4");
        assert_eq!(call(5, "张三"), "--");
        assert_eq!(call(6, "李四"), "---6");
        assert_eq!(call(7, &"x".repeat(70)), "x".repeat(64));
        assert_eq!(call(8, ""), "-8");
    }
}
