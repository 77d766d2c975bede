//! What a user lets others do: write to them, add them to groups, see when they are online.

use crate::audit::{self, Act};
use crate::chat::Chat;
use crate::model::{Caller, Consent};
use crate::reason::{Error, Reason};

/// The caller's choices.
pub async fn get(chat: &Chat, caller: &Caller) -> Result<Consent, Error> {
    let user = chat.store.user(&caller.user).await?.ok_or(Reason::SessionInvalid)?;
    Ok(user.details.consent)
}

/// Replaces the caller's choices. They hold from the next message on.
pub async fn set(chat: &Chat, caller: &Caller, consent: Consent) -> Result<Consent, Error> {
    let changed = chat.store.change_account(
        &caller.user,
        Box::new(move |user| {
            let mut user = user.clone();
            user.details.consent = consent;
            Some(user)
        }),
    );
    let user = changed.await?.ok_or(Reason::SessionInvalid)?;
    audit::record_now(chat, &Act::by_user(&caller.user, "consent_changed", None)).await?;
    Ok(user.details.consent)
}
