//! The reasons of refusals. The same table as `sdk/typescript/src/codes.ts`; a test compares them.
use serde::{Deserialize, Serialize};

/// What happens to the connection after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// Only that request failed.
    Stays,
    /// It stays unless this happens often.
    Strike,
    /// It ends with this close code.
    Ends(u16),
}

macro_rules! reasons {
    ($($name:ident $word:literal $http:literal $close:expr, $retry:literal, $text:literal;)*) => {
        /// One reason for a refusal.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Reason {
            $(#[doc = $text] $name,)*
            /// A reason of a later server.
            #[serde(other)]
            Unknown,
        }

        impl Reason {
            /// All reasons, in the order of `docs/errors.md`.
            pub const ALL: &[Reason] = &[$(Reason::$name),*];

            /// The name on the wire.
            pub fn word(self) -> &'static str {
                match self { $(Reason::$name => $word,)* Reason::Unknown => "unknown" }
            }

            /// The HTTP status.
            pub fn http(self) -> u16 {
                match self { $(Reason::$name => $http,)* Reason::Unknown => 500 }
            }

            /// What happens to the connection.
            pub fn close(self) -> Close {
                match self { $(Reason::$name => $close,)* Reason::Unknown => Stays }
            }

            /// Temporary: the same request may succeed later.
            pub fn may_retry(self) -> bool {
                match self { $(Reason::$name => $retry,)* Reason::Unknown => false }
            }

            /// A description.
            pub fn text(self) -> &'static str {
                match self { $(Reason::$name => $text,)* Reason::Unknown => "refused" }
            }
        }
    };
}

use Close::{Ends, Stays, Strike};

reasons! {
    MissingToken "missing_token" 401 Ends(4401), false, "no token was given; over HTTP it is `Authorization: Bearer <token>`";
    InvalidToken "invalid_token" 401 Ends(4401), false, "the token is not valid";
    TokenExpired "token_expired" 401 Ends(4100), false, "the token has expired, refresh it";
    SessionInvalid "session_invalid" 401 Ends(4401), false, "this sign-in has ended, sign in again";
    Unauthorized "unauthorized" 401 Ends(4401), false, "authenticate first";
    AuthTimeout "auth_timeout" 401 Ends(4001), true, "authentication timed out";
    ReauthUidMismatch "reauth_uid_mismatch" 401 Ends(4402), false, "the token belongs to another user";
    Kicked "kicked" 401 Ends(4403), false, "signed in on another device";
    LoginFailed "login_failed" 401 Stays, false, "user id or password is wrong";
    InvalidRefreshToken "invalid_refresh_token" 401 Stays, false, "the refresh token is not valid, sign in again";
    ResetFailed "reset_failed" 401 Stays, false, "user id or reset code is wrong, or the code was used or has expired";
    AccountDisabled "account_disabled" 403 Ends(4405), false, "this account is disabled, ask the operator of this server";
    TokenRefused "token_refused" 401 Stays, false, "the identity provider's sign-in was not accepted";
    TotpRequired "totp_required" 401 Stays, false, "the code of your authenticator app is needed too";
    TotpWrong "totp_wrong" 401 Stays, false, "the code of your authenticator app is wrong";
    Forbidden "forbidden" 403 Stays, false, "you are not allowed to do this";
    ScopeMissing "scope_missing" 403 Stays, false, "this key does not have the scope for this";
    OriginNotAllowed "origin_not_allowed" 403 Ends(4404), false, "this origin is not allowed";
    UserExists "user_exists" 409 Stays, false, "this user id is taken, or looks like one that is";
    ReservedUserId "reserved_user_id" 409 Stays, false, "this user id is reserved, choose another one";
    RegistrationClosed "registration_closed" 403 Stays, false, "this server does not accept new accounts";
    InviteInvalid "invite_invalid" 403 Stays, false, "this invite link is not valid any more, ask for another one";
    UserNotFound "user_not_found" 404 Stays, false, "no such user";
    BadUserId "bad_user_id" 400 Stays, false, "a user id is 1 to 64 of A-Z a-z 0-9 . -";
    BadPassword "bad_password" 400 Stays, false, "this password is too short, too long, or too easy to guess";
    BadNickname "bad_nickname" 400 Stays, false, "a nickname has 1 to 128 visible characters, no control or direction marks";
    BadProfile "bad_profile" 400 Stays, false, "a profile field is too long";
    TooManyRequests "too_many_requests" 429 Ends(4029), true, "too many requests, slow down";
    TooManyConnections "too_many_connections" 429 Ends(4030), true, "too many connections for this user";
    FrameTooLarge "frame_too_large" 413 Ends(1009), false, "the frame is too large";
    SlowConsumer "slow_consumer" 408 Ends(4002), true, "the connection reads too slowly";
    IdleTimeout "idle_timeout" 408 Ends(4003), true, "the connection was idle for too long";
    ShuttingDown "shutting_down" 503 Ends(4004), true, "the server is restarting, reconnect";
    BadJson "bad_json" 400 Strike, false, "not a valid JSON object of this protocol";
    MissingType "missing_type" 400 Strike, false, "the frame has no type";
    NotImplemented "not_implemented" 501 Strike, false, "this operation is not known";
    InvalidParam "invalid_param" 400 Stays, false, "a parameter has the wrong form";
    NotFound "not_found" 404 Stays, false, "there is nothing at this path";
    MethodNotAllowed "method_not_allowed" 405 Stays, false, "this method is not allowed here";
    MissingMsgId "missing_msg_id" 400 Stays, false, "the client message id is missing";
    BadMsgId "bad_msg_id" 400 Stays, false, "a client message id has 1 to 128 printable bytes";
    MissingTo "missing_to" 400 Stays, false, "the receiver is missing";
    MissingBody "missing_body" 400 Stays, false, "the message is empty";
    BodyTooLong "body_too_long" 400 Stays, false, "the message is too long";
    CannotSendToSelf "cannot_send_to_self" 400 Stays, false, "you cannot send to yourself";
    ReceiverBlocked "receiver_blocked" 403 Stays, false, "this person has blocked you";
    NotAccepting "not_accepting" 403 Stays, false, "this person does not accept messages from you";
    TooManyStrangers "too_many_strangers" 429 Stays, false, "you have begun many conversations, try again later";
    UnknownMsgType "unknown_msg_type" 400 Stays, false, "unknown message type";
    ClientMsgIdConflict "client_msg_id_conflict" 409 Stays, false, "you used this client message id for another message";
    MentionNotMember "mention_not_member" 400 Stays, false, "a mentioned person is not in this conversation";
    TooManyMentions "too_many_mentions" 400 Stays, false, "too many people are mentioned";
    MissingGroupId "missing_group_id" 400 Stays, false, "the group is missing";
    GroupNotFound "group_not_found" 404 Stays, false, "no such group";
    GroupDissolved "group_dissolved" 410 Stays, false, "this group has ended";
    NotGroupMember "not_group_member" 403 Stays, false, "you are not a member of this group";
    MemberNotActive "member_not_active" 403 Stays, false, "you are no longer a member of this group";
    TargetNotMember "target_not_member" 404 Stays, false, "that person is not a member of this group";
    TargetIsSelf "target_is_self" 400 Stays, false, "you cannot do this to yourself";
    AlreadyMember "already_member" 409 Stays, false, "you are already a member of this group";
    NotGroupOwner "not_group_owner" 403 Stays, false, "only the owner of the group may do this";
    NotGroupAdmin "not_group_admin" 403 Stays, false, "only the owner and admins of the group may do this";
    CannotTouchOwner "cannot_touch_owner" 403 Stays, false, "this cannot be done to the owner";
    CannotTouchAdmin "cannot_touch_admin" 403 Stays, false, "only the owner can do this to an admin";
    TooManyGroups "too_many_groups" 403 Stays, false, "you are in as many groups as one can be, leave one first";
    OwnerMustTransfer "owner_must_transfer" 409 Stays, false, "transfer ownership before you leave, or dissolve the group";
    JoinNotAllowed "join_not_allowed" 403 Stays, false, "this group can only be joined by invitation";
    JoinRequestNotFound "join_request_not_found" 404 Stays, false, "no such request to join";
    GroupSpeakMuted "group_speak_muted" 403 Stays, false, "you are muted in this group";
    GroupMuted "group_muted" 403 Stays, false, "only the owner and admins can post in this group now";
    GroupFull "group_full" 409 Stays, false, "the group is full";
    TooManyAdmins "too_many_admins" 409 Stays, false, "the group has too many admins";
    TooManyJoinRequests "too_many_join_requests" 409 Stays, false, "too many people are waiting to join this group";
    GroupTooSmall "group_too_small" 400 Stays, false, "a group needs at least three people";
    BadGroupName "bad_group_name" 400 Stays, false, "a group name has 1 to 128 characters";
    BadGroupProfile "bad_group_profile" 400 Stays, false, "a field of the group is too long";
    TooManyUsers "too_many_users" 400 Stays, false, "too many people in one request";
    CooldownNotReached "cooldown_not_reached" 429 Stays, false, "this was done a short while ago, try again later";
    CannotDeletePrivate "cannot_delete_private" 403 Stays, false, "a private conversation cannot be deleted";
    NotMessageSender "not_message_sender" 403 Stays, false, "you cannot unsend this message";
    RevokeTimeout "revoke_timeout" 403 Stays, false, "it is too late to unsend this message";
    MissingAckType "missing_ack_type" 400 Stays, false, "ackType is missing";
    UnknownAckType "unknown_ack_type" 400 Stays, false, "ackType is not known";
    MissingServerMsgId "missing_server_msg_id" 400 Stays, false, "the message id is missing";
    BadServerMsgId "bad_server_msg_id" 400 Stays, false, "this is not a message id";
    MessageNotFound "message_not_found" 404 Stays, false, "no such message";
    AckNotAllowed "ack_not_allowed" 403 Stays, false, "you cannot acknowledge this message";
    ConversationNotFound "conversation_not_found" 404 Stays, false, "no such conversation";
    Damaged "damaged" 500 Stays, false, "this part of the data is damaged and cannot be read";
    ServerBusy "server_busy" 503 Stays, true, "the server is busy, try again";
    InternalError "internal_error" 500 Stays, false, "internal error";
}

impl Reason {
    /// The reason with this name.
    pub fn of(word: &str) -> Option<Reason> {
        Self::ALL.iter().copied().find(|reason| reason.word() == word)
    }

    /// Whether it ends the sign-in.
    pub(crate) fn ends_session(self) -> bool {
        use Reason::{
            AccountDisabled, InvalidToken, Kicked, MissingToken, ReauthUidMismatch, SessionInvalid,
            Unauthorized,
        };
        matches!(
            self,
            MissingToken
                | InvalidToken
                | SessionInvalid
                | Unauthorized
                | ReauthUidMismatch
                | Kicked
                | AccountDisabled
        )
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares a line of the generated table.
    fn row(reason: Reason, line: &str) {
        let close = match reason.close() {
            Stays => "\"stays\"".to_owned(),
            Strike => "\"strike\"".to_owned(),
            Ends(code) => code.to_string(),
        };
        let rest = format!(
            "http: {}, close: {close}, retry: {}, text: \"{}\" }},",
            reason.http(),
            reason.may_retry(),
            reason.text()
        );
        assert!(line.ends_with(&rest), "{line}\nshould end in\n{rest}");
    }

    #[test]
    fn the_table_is_that_of_the_other_sdk() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../typescript/src/codes.ts");
        let table = std::fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = table.lines().filter(|line| line.contains("{ numbered: ")).collect();
        assert_eq!(lines.len(), Reason::ALL.len());
        for (reason, line) in Reason::ALL.iter().zip(lines) {
            assert!(line.trim().starts_with(&format!("{}: ", reason.word())), "{line}");
            row(*reason, line);
        }
    }

    #[test]
    fn a_reason_of_a_later_server_is_no_mistake() {
        let told: Reason = serde_json::from_str("\"too_cold\"").unwrap();
        assert_eq!(told, Reason::Unknown);
        assert_eq!(Reason::of("kicked"), Some(Reason::Kicked));
    }
}
