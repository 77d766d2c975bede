//! What most accounts and logins have none of, as JSON beside their fixed fields: a new detail needs
//! no new column and no new disk format.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The bytes to store. Nothing for the default: a plain account costs nothing.
///
/// # Panics
///
/// If the type has no JSON form, whatever its value: a map with keys that are no text.
pub(crate) fn encode<T: Default + PartialEq + Serialize>(details: &T) -> Vec<u8> {
    if *details == T::default() {
        return Vec::new();
    }
    serde_json::to_vec(details).expect("plain structs have a JSON form")
}

/// Reads what [`encode`] returned, also in an older version.
pub(crate) fn decode<T: Default + DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    if bytes.is_empty() { Ok(T::default()) } else { serde_json::from_slice(bytes) }
}

#[cfg(test)]
mod tests {
    use nexo_chat::ids::Millis;
    use nexo_chat::model::{AccountDetails, AccountStatus, Audience, Consent, Totp};

    use super::*;

    #[test]
    fn details_read_back_the_same_and_plain_ones_take_no_room() {
        let plain = AccountDetails::default();
        assert_eq!(encode(&plain), b"");
        assert_eq!(decode::<AccountDetails>(b"").unwrap(), plain);
        let full = AccountDetails {
            status: AccountStatus::Disabled {
                reason: "“spam”".into(),
                at: Millis(5),
                until: Some(Millis(u64::MAX)),
            },
            is_bot: true,
            consent: Consent { write: Audience::SharedGroup, ..Consent::default() },
            totp: Some(Totp {
                secret: vec![0, 255],
                confirmed: true,
                last_step: 9,
                recovery: vec![[7; 32]],
            }),
            password_changed_at: Some(Millis(3)),
        };
        assert_eq!(decode::<AccountDetails>(&encode(&full)).unwrap(), full);
        let deleted = AccountStatus::Deleted { at: Millis(1) };
        let deleted = AccountDetails { status: deleted, ..plain };
        assert_eq!(decode::<AccountDetails>(&encode(&deleted)).unwrap(), deleted);
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        assert!(decode::<AccountDetails>(b"{").is_err());
    }
}
