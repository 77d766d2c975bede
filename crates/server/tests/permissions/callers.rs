//! The columns of the matrix: who sends a request.

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Nobody,
    /// An account of the world by its part there: it has a token of a sign-in.
    User(&'static str),
    /// An API key with this one scope.
    Key(&'static str),
    /// An API key that had the scope `admin` until it was revoked.
    RevokedKey,
}

pub(crate) const CALLERS: [Caller; 12] = [
    Caller::Nobody,
    Caller::User("stranger"),
    Caller::User("peer"),
    Caller::User("member"),
    Caller::User("admin"),
    Caller::User("owner"),
    Caller::User("bot"),
    Caller::Key("backend"),
    Caller::Key("admin"),
    Caller::Key("metrics"),
    Caller::Key("system"),
    Caller::RevokedKey,
];

impl Caller {
    /// The head of its column.
    pub(crate) fn title(self) -> String {
        match self {
            Self::Nobody => "nobody".to_owned(),
            Self::User(part) => part.to_owned(),
            Self::Key(scope) => format!("key `{scope}`"),
            Self::RevokedKey => "revoked key".to_owned(),
        }
    }

    /// Whether this caller may read the private chat.
    pub(crate) fn reads_private_chat(self) -> bool {
        matches!(self, Self::User("peer") | Self::Key("admin"))
    }

    /// Whether this caller may read the group.
    pub(crate) fn reads_group(self) -> bool {
        matches!(self, Self::User("member" | "admin" | "owner") | Self::Key("admin"))
    }

    /// Whether a security scheme of the document is meant for this caller.
    pub(crate) fn fits(self, scheme: &str) -> bool {
        match self {
            Self::Nobody | Self::RevokedKey => false,
            Self::User(_) => scheme == "bearer",
            // The scope `admin` includes `backend`, and no other scope includes another.
            Self::Key("admin") => ["admin_key", "backend_key"].contains(&scheme),
            Self::Key(scope) => scheme.strip_suffix("_key") == Some(scope),
        }
    }
}
