//! Invite links: with `auth.registration = "invite"`, an account needs one. A link counts its uses and expires. Its code
//! is random; the store keeps only a hash of it, under an id derived from that.

use std::net::IpAddr;

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};

use crate::audit::{self, Act};
use crate::chat::Chat;
use crate::documents;
use crate::ids::{Millis, UserId};
use crate::keys::{Operator, Scope};
use crate::model::Caller;
use crate::reason::{DetailedReason, Error, Reason};
use crate::store::{Collection, DocumentId, DocumentPage};

const USES_MAX: u32 = 10_000;
const DEFAULT_TTL_MS: u64 = 7 * 24 * 60 * 60 * 1000;
const TTL_MAX_MS: u64 = 366 * 24 * 60 * 60 * 1000;
/// Links that can exist at a time, and those that one user can have.
const INVITES_MAX: usize = 10_000;
const INVITES_PER_USER: usize = 20;
/// Accounts that are listed with their link.
const LISTED_USERS: usize = 100;

/// A link without its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    pub id: String,
    /// `user:alice`, or the name of the operator's key.
    pub created_by: String,
    pub created_at: Millis,
    pub expires_at: Millis,
    pub uses_max: u32,
    pub uses: u32,
    /// Who came by it, up to a hundred.
    pub users: Vec<String>,
    /// BLAKE3 of the code.
    hash: [u8; 32],
}

/// A request for a link; what is absent has a default: one use, a week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewInvite {
    pub uses: Option<u32>,
    pub expires_in_ms: Option<u64>,
}

fn hash_of(code: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("nexo invite v1");
    for c in code.chars().filter(char::is_ascii_alphanumeric) {
        hasher.update(&[c.to_ascii_uppercase() as u8]);
    }
    hasher.finalize().into()
}

fn id_of(hash: [u8; 32]) -> DocumentId {
    let id = BASE32_NOPAD.encode(&blake3::hash(&hash).as_bytes()[..10]).to_lowercase();
    DocumentId::new(Collection::Invites, id)
}

/// Makes a link for an operator.
pub async fn create(
    chat: &Chat,
    operator: &Operator,
    new: NewInvite,
) -> Result<(Invite, String), Error> {
    operator.require(Scope::Admin)?;
    let act = Act::by(operator, "invite_created", String::new());
    store_new(chat, operator.name.clone(), act, new).await
}

/// Makes a link for a member, if the operator lets members invite.
pub async fn create_own(
    chat: &Chat,
    caller: &Caller,
    from: IpAddr,
    new: NewInvite,
) -> Result<(Invite, String), Error> {
    if !chat.rules.members_invite {
        return Err(Reason::Forbidden.into());
    }
    if list_own(chat, caller).await?.len() >= INVITES_PER_USER {
        let why = "you have as many links as one can have";
        return Err(DetailedReason::new(Reason::Forbidden, why).into());
    }
    let act = Act::by_user(&caller.user, "invite_created", Some(from));
    store_new(chat, format!("user:{}", caller.user), act, new).await
}

async fn store_new(
    chat: &Chat,
    created_by: String,
    act: Act,
    new: NewInvite,
) -> Result<(Invite, String), Error> {
    let uses_max = new.uses.unwrap_or(1);
    if !(1..=USES_MAX).contains(&uses_max) {
        return Err(DetailedReason::field("uses").into());
    }
    let ttl = new.expires_in_ms.unwrap_or(DEFAULT_TTL_MS);
    if !(1..=TTL_MAX_MS).contains(&ttl) {
        return Err(DetailedReason::field("expires_in").into());
    }
    let now = chat.clock.now();
    forget_expired(chat, now).await?;
    let mut bytes = [0; 15];
    chat.rng.fill(&mut bytes);
    let code = BASE32_NOPAD.encode(&bytes);
    let hash = hash_of(&code);
    let id = id_of(hash);
    let invite = Invite {
        id: id.key.clone(),
        created_by,
        created_at: now,
        expires_at: now.plus(ttl),
        uses_max,
        uses: 0,
        users: Vec::new(),
        hash,
    };
    let stored = invite.clone();
    documents::change(&*chat.store, &id, move |_: Option<Invite>| Ok((Some(stored.clone()), ())))
        .await?;
    let act = Act { target: format!("invite:{}", invite.id), ..act };
    audit::record_now(chat, &act.with("uses", uses_max.to_string())).await?;
    Ok((invite, code))
}

/// Deletes links that expired, so that those that exist can be listed.
async fn forget_expired(chat: &Chat, now: Millis) -> Result<(), Error> {
    let invites = all(chat).await?;
    if invites.len() >= INVITES_MAX {
        return Err(DetailedReason::new(Reason::Forbidden, "there are too many links").into());
    }
    for invite in invites.iter().filter(|invite| invite.expires_at <= now) {
        let id = DocumentId::new(Collection::Invites, invite.id.clone());
        documents::change(&*chat.store, &id, |_: Option<Invite>| Ok((None, ()))).await?;
    }
    Ok(())
}

async fn all(chat: &Chat) -> Result<Vec<Invite>, Error> {
    let page = DocumentPage::first(Collection::Invites, INVITES_MAX);
    let found = documents::list(&*chat.store, page).await?;
    Ok(found.into_iter().map(|(_, invite)| invite).collect())
}

/// All links that have not expired.
pub async fn list(chat: &Chat, operator: &Operator) -> Result<Vec<Invite>, Error> {
    operator.require(Scope::Admin)?;
    let now = chat.clock.now();
    Ok(all(chat).await?.into_iter().filter(|invite| now < invite.expires_at).collect())
}

/// The caller's links that have not expired.
pub async fn list_own(chat: &Chat, caller: &Caller) -> Result<Vec<Invite>, Error> {
    let (now, mine) = (chat.clock.now(), format!("user:{}", caller.user));
    let is_mine = |invite: &Invite| invite.created_by == mine && now < invite.expires_at;
    Ok(all(chat).await?.into_iter().filter(is_mine).collect())
}

/// Ends a link.
pub async fn revoke(chat: &Chat, operator: &Operator, id: &str) -> Result<Invite, Error> {
    operator.require(Scope::Admin)?;
    let revoked = delete(chat, id, None).await?;
    let act = Act::by(operator, "invite_revoked", format!("invite:{}", revoked.id));
    audit::record_now(chat, &act).await?;
    Ok(revoked)
}

/// Ends one of the caller's links.
pub async fn revoke_own(chat: &Chat, caller: &Caller, id: &str) -> Result<Invite, Error> {
    delete(chat, id, Some(format!("user:{}", caller.user))).await
}

async fn delete(chat: &Chat, id: &str, owner: Option<String>) -> Result<Invite, Error> {
    let id = DocumentId::parse(Collection::Invites, id).ok_or(Reason::NotFound)?;
    documents::change(&*chat.store, &id, move |invite: Option<Invite>| match invite {
        Some(invite) if owner.as_ref().is_none_or(|owner| *owner == invite.created_by) => {
            Ok((None, invite))
        }
        _ => Err(Reason::NotFound),
    })
    .await
}

/// Fails unless a code can be used now. A wrong, used-up, expired and revoked one are the same.
pub(crate) async fn check(chat: &Chat, code: &str) -> Result<(), Error> {
    let hash = hash_of(code);
    let found: Option<Invite> = documents::get(&*chat.store, &id_of(hash)).await?;
    let now = chat.clock.now();
    let is_usable = found.is_some_and(|invite| is_usable(&invite, hash, now));
    if is_usable { Ok(()) } else { Err(Reason::InviteInvalid.into()) }
}

fn is_usable(invite: &Invite, hash: [u8; 32], now: Millis) -> bool {
    blake3::Hash::from(invite.hash) == blake3::Hash::from(hash)
        && now < invite.expires_at
        && invite.uses < invite.uses_max
}

/// Uses a code for an account that is about to be made.
pub(crate) async fn take(chat: &Chat, code: &str, user: &UserId) -> Result<(), Error> {
    let (hash, now) = (hash_of(code), chat.clock.now());
    let user = user.to_string();
    documents::change(&*chat.store, &id_of(hash), move |invite: Option<Invite>| {
        let invite = invite.filter(|invite| is_usable(invite, hash, now));
        let mut invite = invite.ok_or(Reason::InviteInvalid)?;
        invite.uses += 1;
        if invite.users.len() < LISTED_USERS {
            invite.users.push(user.clone());
        }
        Ok((Some(invite), ()))
    })
    .await
}

/// Gives a use back: the account could not be made.
pub(crate) async fn give_back(chat: &Chat, code: &str, user: &UserId) -> Result<(), Error> {
    let user = user.to_string();
    documents::change(&*chat.store, &id_of(hash_of(code)), move |invite: Option<Invite>| {
        let given_back = invite.map(|mut invite| {
            invite.uses = invite.uses.saturating_sub(1);
            invite.users.retain(|known| *known != user);
            invite
        });
        Ok((given_back, ()))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_known_however_it_is_typed() {
        let code = hash_of("A4DQOBYHA4DQOBYH");
        assert_eq!(hash_of(" a4dq-obyh a4dq-obyh "), code);
        assert_ne!(hash_of("A4DQOBYHA4DQOBYG"), code);
    }

    #[test]
    fn uses_and_time_run_out() {
        let invite = Invite {
            id: String::new(),
            created_by: String::new(),
            created_at: Millis(0),
            expires_at: Millis(10),
            uses_max: 2,
            uses: 1,
            users: Vec::new(),
            hash: [1; 32],
        };
        assert!(is_usable(&invite, [1; 32], Millis(9)));
        assert!(!is_usable(&invite, [1; 32], Millis(10)));
        assert!(!is_usable(&invite, [2; 32], Millis(9)));
        assert!(!is_usable(&Invite { uses: 2, ..invite }, [1; 32], Millis(9)));
    }
}
