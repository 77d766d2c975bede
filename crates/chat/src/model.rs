//! The domain's nouns under one path.

pub use crate::account::{Caller, Login, Profile, ProfileChange, ResetCode, User};
pub use crate::change::{Change, ChangeKind};
pub use crate::message::{Content, ContentKind, Draft, Fingerprint, Message, Recall, ReplyTo};
pub use crate::standing::{
    CursorKind, Cursors, HiddenChange, HiddenMark, Receive, Settings, SettingsChange, Standing,
    Window, WindowEnd,
};
