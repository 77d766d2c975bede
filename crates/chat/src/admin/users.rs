//! Accounts, as an operator or a backend sees and changes them.

use std::sync::Arc;

use crate::admin::groups::leave_everything;
use crate::admin::messages::recall_all_of;
use crate::audit::{self, Act};
use crate::auth::{self, SignInDevice, Tokens, publish_logins_ended};
use crate::chat::Chat;
use crate::event::Logins;
use crate::ids::{Millis, UserId};
use crate::keys::{Operator, Scope};
use crate::model::{AccountDetails, AccountStatus, Profile, ProfileChange, User};
use crate::password_reset::{self, IssuedCode};
use crate::policy::{account, password};
use crate::profile;
use crate::read::Page;
use crate::reason::{DetailedReason, Error, Reason};
use crate::user_lookup;

/// Accounts that one search looks at; the page then says where to go on.
const SEARCHED_MAX: usize = 20_000;
const READ_PAGE: usize = 500;
const REASON_CHARS_MAX: usize = 500;

/// Which accounts to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserFilter {
    /// In the id or the nickname, in any case.
    pub text: String,
    pub status: Option<StatusFilter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusFilter {
    Active,
    Disabled,
    Deleted,
}

impl UserFilter {
    fn includes(&self, user: &User, now: Millis) -> bool {
        let has_status = self.status.is_none_or(|wanted| match &user.details.status {
            AccountStatus::Deleted { .. } => wanted == StatusFilter::Deleted,
            status if status.is_active_at(now) => wanted == StatusFilter::Active,
            _ => wanted == StatusFilter::Disabled,
        });
        let has_text = |field: &str| field.to_lowercase().contains(&self.text);
        has_status
            && (self.text.is_empty()
                || has_text(user.id.as_str())
                || has_text(&user.profile.nickname))
    }
}

/// A page of accounts in the order of their ids, and where the next one begins. A search may return fewer than
/// `limit` although there are more.
pub async fn list(
    chat: &Chat,
    operator: &Operator,
    mut filter: UserFilter,
    after: Option<UserId>,
    limit: usize,
) -> Result<(Page<Arc<User>>, Option<UserId>), Error> {
    operator.require(Scope::Backend)?;
    filter.text = filter.text.trim().to_lowercase();
    let now = chat.clock.now();
    let (mut at, mut found, mut seen) = (after, Vec::new(), 0);
    loop {
        let users = chat.store.users(at.as_ref(), READ_PAGE).await?;
        let is_last = users.len() < READ_PAGE;
        seen += users.len();
        for user in users {
            if found.len() == limit {
                return Ok((Page::new(found, true), at));
            }
            at = Some(user.id.clone());
            if filter.includes(&user, now) {
                found.push(user);
            }
        }
        if is_last {
            return Ok((Page::new(found, false), None));
        }
        if seen >= SEARCHED_MAX {
            return Ok((Page::new(found, true), at));
        }
    }
}

/// The account of a typed id, deleted or not.
pub async fn get(chat: &Chat, operator: &Operator, typed: &UserId) -> Result<Arc<User>, Error> {
    operator.require(Scope::Backend)?;
    find(chat, typed).await
}

async fn find(chat: &Chat, typed: &UserId) -> Result<Arc<User>, Error> {
    let found = user_lookup::find_account(&*chat.store, typed).await?;
    Ok(found.ok_or(Reason::UserNotFound)?)
}

/// What an account should be. What is absent stays as it is, or is empty for a new account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserUpsert {
    pub profile: ProfileChange,
    /// A new account without one cannot sign in by password.
    pub password: Option<String>,
    pub is_bot: Option<bool>,
}

/// Creates the account or changes it. Returns whether it was created.
pub async fn upsert(
    chat: &Chat,
    operator: &Operator,
    typed: &UserId,
    wanted: UserUpsert,
) -> Result<(Arc<User>, bool), Error> {
    operator.require(Scope::Backend)?;
    if wanted.is_bot == Some(true) && wanted.password.is_some() {
        return Err(bot_password().into());
    }
    let (user, created) = match user_lookup::find_account(&*chat.store, typed).await? {
        Some(user) => (change(chat, &user, wanted).await?, false),
        None => match create(chat, typed, wanted.clone()).await? {
            Some(user) => (user, true),
            // Another request created it meanwhile.
            None => (change(chat, &*find(chat, typed).await?, wanted).await?, false),
        },
    };
    let action = if created { "user_created" } else { "user_changed" };
    audit::record_now(chat, &Act::by(operator, action, format!("user:{}", user.id))).await?;
    Ok((user, created))
}

/// A bot signs in by a key alone.
fn bot_password() -> DetailedReason {
    DetailedReason::new(Reason::BadPassword, "a bot has no password")
}

/// Creates an account; `None` if the id is taken meanwhile.
pub(crate) async fn create(
    chat: &Chat,
    id: &UserId,
    wanted: UserUpsert,
) -> Result<Option<Arc<User>>, Error> {
    account::check_not_reserved(id)?;
    let mut profile = Profile { nickname: id.to_string(), ..Profile::default() };
    profile.apply(checked_profile(wanted.profile)?);
    account::check_profile(&profile)?;
    let password_hash = match wanted.password {
        Some(password) => {
            password::check(&chat.rules.passwords, &password, Some(id.as_str()))?;
            chat.passwords.hash(password).await?
        }
        None => String::new(), // no password matches it
    };
    let now = chat.clock.now();
    let details =
        AccountDetails { is_bot: wanted.is_bot.unwrap_or_default(), ..AccountDetails::default() };
    let user = User {
        id: id.clone(),
        profile,
        created_at: now,
        updated_at: now,
        password_hash,
        session_version: 1,
        details,
    };
    if chat.store.create_user(user.clone()).await? {
        return Ok(Some(Arc::new(user)));
    }
    // Another request took the id meanwhile, or an account has an id that looks like it.
    match user_lookup::find_account(&*chat.store, id).await? {
        Some(_) => Ok(None),
        None => Err(Reason::UserExists.into()),
    }
}

fn checked_profile(change: ProfileChange) -> Result<ProfileChange, Reason> {
    let nickname = change.nickname.as_deref().map(account::normalize_nickname).transpose()?;
    Ok(ProfileChange { nickname, ..change })
}

async fn change(chat: &Chat, user: &User, wanted: UserUpsert) -> Result<Arc<User>, Error> {
    if let AccountStatus::Deleted { .. } = user.details.status {
        return Err(Reason::UserNotFound.into());
    }
    let is_bot = wanted.is_bot.unwrap_or(user.details.is_bot);
    if is_bot && wanted.password.is_some() {
        return Err(bot_password().into());
    }
    let profile = checked_profile(wanted.profile)?;
    let mut whole = user.profile.clone();
    whole.apply(profile.clone());
    account::check_profile(&whole)?;
    let hash = match wanted.password {
        Some(password) => {
            password::check(&chat.rules.passwords, &password, Some(user.id.as_str()))?;
            Some(chat.passwords.hash(password).await?)
        }
        None => None,
    };
    let becomes_bot = is_bot && !user.details.is_bot;
    // An account that becomes a bot loses its password, and its sign-ins with it.
    let hash = if becomes_bot { Some(String::new()) } else { hash };
    let ends_logins = hash.is_some();
    let now = chat.clock.now();
    let changed = chat.store.change_account(
        &user.id,
        Box::new(move |user| {
            let mut user = user.clone();
            user.update(profile.clone(), now);
            user.details.is_bot = is_bot;
            if let Some(hash) = &hash {
                user.password_hash.clone_from(hash);
                user.session_version += 1;
            }
            Some(user)
        }),
    );
    let changed = changed.await?.ok_or(Reason::UserNotFound)?;
    if ends_logins {
        publish_logins_ended(chat, &user.id, Logins::All, Reason::SessionInvalid);
    }
    publish_updated(chat, &changed).await;
    Ok(changed)
}

/// Lets the clients of others read the profile again. The change is stored, so a failure only delays that.
async fn publish_updated(chat: &Chat, user: &User) {
    if let Err(error) = profile::publish_profile(chat, &user.id).await {
        tracing::warn!(user = %user.id, %error, "a new profile could not be published");
    }
}

/// Signs a user in on behalf of the app's own backend, which has checked who they are.
pub async fn login(
    chat: &Chat,
    operator: &Operator,
    typed: &UserId,
    create_with: Option<UserUpsert>,
    device: &SignInDevice,
) -> Result<(Tokens, Arc<User>), Error> {
    operator.require(Scope::Backend)?;
    let user = match (user_lookup::find_account(&*chat.store, typed).await?, create_with) {
        (Some(user), _) => user,
        (None, Some(wanted)) => upsert(chat, operator, typed, wanted).await?.0,
        (None, None) => return Err(Reason::UserNotFound.into()),
    };
    let tokens = auth::open_login(chat, &user, device).await?.ok_or(Reason::ServerBusy)?;
    let act = Act::by(operator, "sign_in_by_key", format!("user:{}", user.id));
    audit::record_now(chat, &act).await?;
    Ok((tokens, user))
}

/// Disables an account until it is enabled or a time has passed: every sign-in ends at once, and none begins.
pub async fn disable(
    chat: &Chat,
    operator: &Operator,
    typed: &UserId,
    reason: String,
    until: Option<Millis>,
) -> Result<Arc<User>, Error> {
    operator.require(Scope::Admin)?;
    if reason.chars().count() > REASON_CHARS_MAX {
        return Err(DetailedReason::field("reason").into());
    }
    let now = chat.clock.now();
    let status = AccountStatus::Disabled { reason: reason.clone(), at: now, until };
    let user = set_status(chat, typed, status, true).await?;
    publish_logins_ended(chat, &user.id, Logins::All, Reason::AccountDisabled);
    let act = Act::by(operator, "user_disabled", format!("user:{}", user.id));
    let until = until.map_or_else(String::new, |until| until.0.to_string());
    audit::record_now(chat, &act.with("reason", reason).with("until", until)).await?;
    Ok(user)
}

/// Lets a disabled account sign in again.
pub async fn enable(chat: &Chat, operator: &Operator, typed: &UserId) -> Result<Arc<User>, Error> {
    operator.require(Scope::Admin)?;
    let user = set_status(chat, typed, AccountStatus::Active, false).await?;
    audit::record_now(chat, &Act::by(operator, "user_enabled", format!("user:{}", user.id)))
        .await?;
    Ok(user)
}

async fn set_status(
    chat: &Chat,
    typed: &UserId,
    status: AccountStatus,
    ends_logins: bool,
) -> Result<Arc<User>, Error> {
    let id = find(chat, typed).await?.id.clone();
    let changed = chat.store.change_account(
        &id,
        Box::new(move |user| {
            if let AccountStatus::Deleted { .. } = user.details.status {
                return None;
            }
            let mut user = user.clone();
            user.details.status = status.clone();
            user.session_version += u64::from(ends_logins);
            Some(user)
        }),
    );
    let user = changed.await?.ok_or(Reason::UserNotFound)?;
    match user.details.status {
        AccountStatus::Deleted { .. } => Err(Reason::UserNotFound.into()),
        _ => Ok(user),
    }
}

/// What happens to the messages of a deleted account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessagesOfDeleted {
    #[default]
    Keep,
    /// They are recalled, as their sender could have done.
    Remove,
}

/// Deletes an account: its profile, password and sign-ins go, it leaves its groups, and its id is never used
/// again. Repeating it goes on where an interrupted call stopped.
pub async fn delete(
    chat: &Chat,
    operator: &Operator,
    typed: &UserId,
    messages: MessagesOfDeleted,
) -> Result<(), Error> {
    operator.require(Scope::Admin)?;
    let id = find(chat, typed).await?.id.clone();
    let now = chat.clock.now();
    let changed = chat.store.change_account(
        &id,
        Box::new(move |user| {
            if let AccountStatus::Deleted { .. } = user.details.status {
                return None;
            }
            Some(User {
                profile: Profile::default(),
                updated_at: user.updated_at.max(now),
                password_hash: String::new(),
                session_version: user.session_version + 1,
                details: AccountDetails {
                    status: AccountStatus::Deleted { at: now },
                    is_bot: user.details.is_bot,
                    ..AccountDetails::default()
                },
                ..user.clone()
            })
        }),
    );
    let user = changed.await?.ok_or(Reason::UserNotFound)?;
    publish_logins_ended(chat, &id, Logins::All, Reason::SessionInvalid);
    publish_updated(chat, &user).await;
    leave_everything(chat, &id).await?;
    if messages == MessagesOfDeleted::Remove {
        recall_all_of(chat, &id).await?;
    }
    let act = Act::by(operator, "user_deleted", format!("user:{id}"));
    let kept = if messages == MessagesOfDeleted::Keep { "kept" } else { "removed" };
    audit::record_now(chat, &act.with("messages", kept)).await
}

/// Makes a one-time code with which the user sets a new password. It is shown once.
pub async fn issue_reset_code(
    chat: &Chat,
    operator: &Operator,
    typed: &UserId,
) -> Result<IssuedCode, Error> {
    operator.require(Scope::Admin)?;
    let (store, now) = (&*chat.store, chat.clock.now());
    let issued = password_reset::issue(store, &*chat.rng, now, typed).await?;
    let act = Act::by(operator, "reset_code_created", format!("user:{}", issued.user));
    audit::record_now(chat, &act).await?;
    Ok(issued)
}
