//! The domain's nouns under one path.

pub use crate::account::{
    AccountDetails, AccountStatus, Audience, Caller, Consent, Login, LoginDevice, Profile,
    ProfileChange, ResetCode, Totp, User,
};
pub use crate::change::{Change, ChangeKind};
pub use crate::message::{Content, ContentKind, Draft, Fingerprint, Message, Recall, ReplyTo};
pub use crate::standing::{
    CursorKind, Cursors, HiddenChange, HiddenMark, Receive, Settings, SettingsChange, Standing,
    Window, WindowEnd,
};
