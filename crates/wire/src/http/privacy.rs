//! Whom a user does not want to hear from.

use nexo_chat::DetailedReason;
use nexo_chat::model::{Audience, Consent};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockBody {
    pub user_id: String,
}

#[derive(Deserialize, IntoParams)]
pub struct BlocksParams {
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}

/// The people you blocked, by id.
#[derive(Debug, Serialize, ToSchema)]
pub struct BlockPage {
    pub user_ids: Vec<String>,
    pub has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Choices to change; what is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "write": "shared_group", "last_seen": "nobody" }))]
pub struct ConsentBody {
    /// Who may begin a conversation with you: `everybody`, `shared_group` (people you share a group or a conversation
    /// with), `nobody`.
    pub write: Option<String>,
    /// Who may add you to groups.
    pub invite: Option<String>,
    /// Who sees whether you are online, of the people you share a conversation with: `everybody` or `nobody`.
    pub online: Option<String>,
    /// Who sees when you were last online, likewise.
    pub last_seen: Option<String>,
}

impl ConsentBody {
    pub fn apply(self, mut consent: Consent) -> Result<Consent, DetailedReason> {
        let fields = [
            ("write", self.write, &mut consent.write),
            ("invite", self.invite, &mut consent.invite),
            ("online", self.online, &mut consent.online),
            ("last_seen", self.last_seen, &mut consent.last_seen),
        ];
        for (name, given, field) in fields {
            if let Some(given) = given {
                *field = audience(&given).ok_or_else(|| DetailedReason::field(name))?;
            }
        }
        Ok(consent)
    }
}

fn audience(name: &str) -> Option<Audience> {
    [Audience::Everybody, Audience::SharedGroup, Audience::Nobody]
        .into_iter()
        .find(|audience| audience_name(*audience) == name)
}

fn audience_name(audience: Audience) -> &'static str {
    match audience {
        Audience::Everybody => "everybody",
        Audience::SharedGroup => "shared_group",
        Audience::Contacts => "contacts",
        Audience::Nobody => "nobody",
    }
}

/// Your choices.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConsentInfo {
    pub write: &'static str,
    pub invite: &'static str,
    pub online: &'static str,
    pub last_seen: &'static str,
}

impl From<Consent> for ConsentInfo {
    fn from(consent: Consent) -> Self {
        Self {
            write: audience_name(consent.write),
            invite: audience_name(consent.invite),
            online: audience_name(consent.online),
            last_seen: audience_name(consent.last_seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_stays() {
        let body = |json: &str| serde_json::from_str::<ConsentBody>(json).unwrap();
        let changed = body(r#"{"write": "nobody"}"#).apply(Consent::default()).unwrap();
        assert_eq!(changed, Consent { write: Audience::Nobody, ..Consent::default() });
        let changed = body(r#"{"invite": "shared_group"}"#).apply(changed).unwrap();
        assert_eq!((changed.write, changed.invite), (Audience::Nobody, Audience::SharedGroup));
        for bad in [r#"{"write": "friends"}"#, r#"{"online": ""}"#] {
            assert!(body(bad).apply(changed).is_err(), "{bad}");
        }
    }
}
