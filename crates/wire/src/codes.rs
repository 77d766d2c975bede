//! The table of reasons: name and code of each in every dialect, its HTTP status, and whether it closes the connection.

use nexo_chat::Reason;
use nexo_chat::Reason::{
    AccountDisabled, AckNotAllowed, AlreadyMember, AuthTimeout, BadGroupName, BadGroupProfile,
    BadJson, BadMsgId, BadNickname, BadPassword, BadProfile, BadServerMsgId, BadUserId,
    BodyTooLong, CannotDeletePrivate, CannotSendToSelf, CannotTouchAdmin, CannotTouchOwner,
    ClientMsgIdConflict, ConversationNotFound, CooldownNotReached, Damaged, Forbidden,
    FrameTooLarge, GroupDissolved, GroupFull, GroupMuted, GroupNotFound, GroupSpeakMuted,
    GroupTooSmall, IdleTimeout, InternalError, InvalidParam, InvalidRefreshToken, InvalidToken,
    InviteInvalid, JoinNotAllowed, JoinRequestNotFound, Kicked, LoginFailed, MemberNotActive,
    MentionNotMember, MessageNotFound, MethodNotAllowed, MissingAckType, MissingBody,
    MissingGroupId, MissingMsgId, MissingServerMsgId, MissingTo, MissingToken, MissingType,
    NotAccepting, NotFound, NotGroupAdmin, NotGroupMember, NotGroupOwner, NotImplemented,
    NotMessageSender, OriginNotAllowed, OwnerMustTransfer, ReauthUidMismatch, ReceiverBlocked,
    RegistrationClosed, ReservedUserId, ResetFailed, RevokeTimeout, ScopeMissing, ServerBusy,
    SessionInvalid, ShuttingDown, SlowConsumer, TargetIsSelf, TargetNotMember, TokenExpired,
    TokenRefused, TooManyAdmins, TooManyConnections, TooManyGroups, TooManyJoinRequests,
    TooManyMentions, TooManyRequests, TooManyStrangers, TooManyUsers, TotpRequired, TotpWrong,
    Unauthorized, UnknownAckType, UnknownMsgType, UserExists, UserNotFound,
};

/// The codes of one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRow {
    /// The name in the typed dialect, also `reason` in HTTP errors.
    pub typed: &'static str,
    /// The code of the numbered dialect, also `code` in HTTP errors.
    pub numbered: i32,
    pub dotted: i32,
    pub http: u16,
    pub close: Close,
    /// Whether the same request may succeed a little later.
    pub retry: bool,
}

/// What a reason does to the connection of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The connection stays.
    Stays,
    /// The connection stays; too many of these in a short time end it.
    Strike,
    /// The connection ends with this WebSocket close code.
    Ends(u16),
}

/// Close code for repeated protocol violations: do not reconnect with this client.
pub const CLOSE_PROTOCOL: u16 = 4400;

impl Close {
    /// What a client does after a close code.
    pub fn advice(code: u16) -> &'static str {
        match code {
            4000..=4099 => "reconnect with backoff",
            4100..=4199 => "refresh the token, then reconnect",
            4400..=4499 => "do not reconnect; sign in again or mend the client",
            _ => "as RFC 6455 says",
        }
    }
}

pub fn row(reason: Reason) -> CodeRow {
    use Close::{Ends, Stays, Strike};
    let row = |typed, numbered, dotted, http, close| CodeRow {
        typed,
        numbered,
        dotted,
        http,
        close,
        retry: passes(reason),
    };
    match reason {
        MissingToken => row("missing_token", 2003, 102, 401, Ends(4401)),
        InvalidToken => row("invalid_token", 2001, 102, 401, Ends(4401)),
        TokenExpired => row("token_expired", 2002, 101, 401, Ends(4100)),
        SessionInvalid => row("session_invalid", 2001, 117, 401, Ends(4401)),
        Unauthorized => row("unauthorized", 1003, 100, 401, Ends(4401)),
        AuthTimeout => row("auth_timeout", 1003, 100, 401, Ends(4001)),
        ReauthUidMismatch => row("reauth_uid_mismatch", 2004, 102, 401, Ends(4402)),
        Kicked => row("kicked", 2001, 608, 401, Ends(4403)),
        LoginFailed => row("login_failed", 2005, 100, 401, Stays),
        ResetFailed => row("reset_failed", 2005, 100, 401, Stays),
        InvalidRefreshToken => row("invalid_refresh_token", 2001, 102, 401, Stays),
        AccountDisabled => row("account_disabled", 1004, 108, 403, Ends(4405)),
        TokenRefused => row("token_refused", 2001, 102, 401, Stays),
        TotpRequired => row("totp_required", 2005, 114, 401, Stays),
        TotpWrong => row("totp_wrong", 2005, 114, 401, Stays),
        Forbidden => row("forbidden", 1004, 6, 403, Stays),
        ScopeMissing => row("scope_missing", 1007, 6, 403, Stays),
        OriginNotAllowed => row("origin_not_allowed", 1004, 6, 403, Ends(4404)),
        UserExists => row("user_exists", 2007, 105, 409, Stays),
        ReservedUserId => row("reserved_user_id", 2007, 106, 409, Stays),
        RegistrationClosed => row("registration_closed", 1004, 6, 403, Stays),
        InviteInvalid => row("invite_invalid", 1004, 6, 403, Stays),
        UserNotFound => row("user_not_found", 2006, 103, 404, Stays),
        BadUserId => row("bad_user_id", 1001, 106, 400, Stays),
        BadPassword => row("bad_password", 1001, 107, 400, Stays),
        BadNickname => row("bad_nickname", 1001, 2, 400, Stays),
        BadProfile => row("bad_profile", 1001, 2, 400, Stays),
        TooManyRequests => row("too_many_requests", 1006, 7, 429, Ends(4029)),
        TooManyConnections => row("too_many_connections", 5001, 607, 429, Ends(4030)),
        FrameTooLarge => row("frame_too_large", 5003, 604, 413, Ends(1009)),
        SlowConsumer => row("slow_consumer", 5002, 600, 408, Ends(4002)),
        IdleTimeout => row("idle_timeout", 5002, 606, 408, Ends(4003)),
        ShuttingDown => row("shutting_down", 5002, 8, 503, Ends(4004)),
        BadJson => row("bad_json", 1001, 605, 400, Strike),
        MissingType => row("missing_type", 1001, 605, 400, Strike),
        NotImplemented => row("not_implemented", 5003, 12, 501, Strike),
        InvalidParam => row("invalid_param", 1001, 2, 400, Stays),
        NotFound => row("not_found", 1005, 4, 404, Stays),
        MethodNotAllowed => row("method_not_allowed", 1005, 12, 405, Stays),
        MissingMsgId => row("missing_msg_id", 1001, 2, 400, Stays),
        BadMsgId => row("bad_msg_id", 1001, 2, 400, Stays),
        MissingTo => row("missing_to", 1001, 2, 400, Stays),
        MissingBody => row("missing_body", 1001, 304, 400, Stays),
        BodyTooLong => row("body_too_long", 1001, 303, 400, Stays),
        CannotSendToSelf => row("cannot_send_to_self", 1001, 206, 400, Stays),
        ReceiverBlocked => row("receiver_blocked", 1004, 312, 403, Stays),
        NotAccepting => row("not_accepting", 1004, 312, 403, Stays),
        TooManyStrangers => row("too_many_strangers", 1006, 7, 429, Stays),
        UnknownMsgType => row("unknown_msg_type", 1001, 305, 400, Stays),
        ClientMsgIdConflict => row("client_msg_id_conflict", 4002, 5, 409, Stays),
        MentionNotMember => row("mention_not_member", 1001, 2, 400, Stays),
        TooManyMentions => row("too_many_mentions", 1001, 2, 400, Stays),
        MissingGroupId => row("missing_group_id", 1001, 2, 400, Stays),
        GroupNotFound => row("group_not_found", 3001, 500, 404, Stays),
        GroupDissolved => row("group_dissolved", 3002, 507, 410, Stays),
        NotGroupMember => row("not_group_member", 3003, 503, 403, Stays),
        MemberNotActive => row("member_not_active", 3004, 503, 403, Stays),
        TargetNotMember => row("target_not_member", 3003, 503, 404, Stays),
        TargetIsSelf => row("target_is_self", 1001, 206, 400, Stays),
        AlreadyMember => row("already_member", 3005, 504, 409, Stays),
        NotGroupOwner => row("not_group_owner", 3006, 506, 403, Stays),
        NotGroupAdmin => row("not_group_admin", 3007, 505, 403, Stays),
        CannotTouchOwner => row("cannot_touch_owner", 3008, 510, 403, Stays),
        CannotTouchAdmin => row("cannot_touch_admin", 3006, 516, 403, Stays),
        TooManyGroups => row("too_many_groups", 1004, 6, 403, Stays),
        OwnerMustTransfer => row("owner_must_transfer", 3008, 515, 409, Stays),
        JoinNotAllowed => row("join_not_allowed", 1007, 509, 403, Stays),
        JoinRequestNotFound => row("join_request_not_found", 1005, 4, 404, Stays),
        GroupSpeakMuted => row("group_speak_muted", 1007, 512, 403, Stays),
        GroupMuted => row("group_muted", 1007, 511, 403, Stays),
        GroupFull => row("group_full", 1007, 502, 409, Stays),
        TooManyAdmins => row("too_many_admins", 1007, 514, 409, Stays),
        TooManyJoinRequests => row("too_many_join_requests", 1007, 509, 409, Stays),
        GroupTooSmall => row("group_too_small", 1001, 517, 400, Stays),
        BadGroupName => row("bad_group_name", 1001, 513, 400, Stays),
        BadGroupProfile => row("bad_group_profile", 1001, 2, 400, Stays),
        TooManyUsers => row("too_many_users", 1001, 2, 400, Stays),
        CooldownNotReached => row("cooldown_not_reached", 1006, 7, 429, Stays),
        CannotDeletePrivate => row("cannot_delete_private", 1007, 313, 403, Stays),
        NotMessageSender => row("not_message_sender", 1004, 302, 403, Stays),
        RevokeTimeout => row("revoke_timeout", 1004, 301, 403, Stays),
        MissingAckType => row("missing_ack_type", 1001, 2, 400, Stays),
        UnknownAckType => row("unknown_ack_type", 1001, 2, 400, Stays),
        MissingServerMsgId => row("missing_server_msg_id", 1001, 2, 400, Stays),
        BadServerMsgId => row("bad_server_msg_id", 1001, 2, 400, Stays),
        MessageNotFound => row("message_not_found", 4001, 300, 404, Stays),
        AckNotAllowed => row("ack_not_allowed", 1004, 6, 403, Stays),
        ConversationNotFound => row("conversation_not_found", 4003, 306, 404, Stays),
        Damaged => row("damaged", 4006, 11, 500, Stays),
        ServerBusy => row("server_busy", 1002, 8, 503, Stays),
        InternalError => row("internal_error", 1002, 3, 500, Stays),
    }
}

/// Reasons that pass by themselves, soon. Not an internal error: it may never pass. Not a cooldown, which takes hours,
/// nor a full or muted group, which waits for its members.
fn passes(reason: Reason) -> bool {
    matches!(
        reason,
        TooManyRequests
            | TooManyConnections
            | ServerBusy
            | ShuttingDown
            | AuthTimeout
            | SlowConsumer
            | IdleTimeout
    )
}

/// The page `docs/errors.md`.
pub fn page() -> String {
    use std::fmt::Write;
    let mut page = String::from(
        "# Errors\n\nMade from `crates/wire/src/codes.rs` by `make gen`. The word is `reason` in typed frames and \
         HTTP errors; the numbers are `code` in HTTP and in the other dialects. *Stays*: only that \
         request failed. *Strike*: the fourth within ten seconds ends the connection with 4400. A close \
         code of 40xx means reconnect with backoff, 41xx refresh the token and reconnect, 44xx do not \
         reconnect. *Retry*: it passes by itself, so the same request may succeed a little later (after \
         `Retry-After` seconds, if HTTP says so).\n\n| reason | numbered, HTTP `code` | dotted | HTTP status | connection | retry | text |\n|---|---|---|---|---|---|---|\n",
    );
    for reason in Reason::ALL {
        let row = row(*reason);
        let close = match row.close {
            Close::Stays => "stays".to_owned(),
            Close::Strike => "strike".to_owned(),
            Close::Ends(code) => format!("ends, {code}: {}", Close::advice(code)),
        };
        let CodeRow { typed, numbered, dotted, http, .. } = row;
        let retry = if row.retry { "yes" } else { "" };
        writeln!(
            page,
            "| `{typed}` | {numbered} | {dotted} | {http} | {close} | {retry} | {reason} |"
        )
        .expect("writing to a string cannot fail");
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_reason_has_its_own_word() {
        let words: HashSet<&str> = Reason::ALL.iter().map(|reason| row(*reason).typed).collect();
        assert_eq!(words.len(), Reason::ALL.len());
    }

    #[test]
    fn the_word_of_a_reason_is_its_name() {
        for reason in Reason::ALL {
            let mut word = String::new();
            for letter in format!("{reason:?}").chars() {
                if letter.is_ascii_uppercase() && !word.is_empty() {
                    word.push('_');
                }
                word.push(letter.to_ascii_lowercase());
            }
            assert_eq!(row(*reason).typed, word);
        }
    }

    #[test]
    fn what_document_000_says_closes_does() {
        for reason in [
            Kicked,
            SessionInvalid,
            TokenExpired,
            Unauthorized,
            AuthTimeout,
            ReauthUidMismatch,
            TooManyRequests,
        ] {
            assert!(matches!(row(reason).close, Close::Ends(4000..=4999)), "{reason:?}");
        }
        for reason in [ServerBusy, InternalError, MissingTo, BodyTooLong, AckNotAllowed] {
            assert_eq!(row(reason).close, Close::Stays, "{reason:?}");
        }
    }

    #[test]
    fn what_passes_by_itself_is_nobodys_mistake() {
        for reason in Reason::ALL.iter().filter(|reason| row(**reason).retry) {
            let row = row(*reason);
            let is_fault = matches!(row.http, 400 | 403 | 404 | 405 | 409 | 410 | 413);
            assert!(!is_fault, "{}", row.typed);
            assert!(!matches!(row.close, Close::Ends(4100..=4499)), "{}", row.typed);
        }
    }

    #[test]
    fn the_documentation_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(committed == page(), "docs/errors.md is stale: run `make gen`");
    }
}
