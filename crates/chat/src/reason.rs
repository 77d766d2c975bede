//! Every reason for a refusal, and the three ways an operation can fail.

/// Declares the enum and the list of all its variants together, so that they cannot differ.
macro_rules! reasons {
    ($($(#[$meta:meta])* $name:ident,)*) => {
        /// Why a request was refused. The typed dialect sends the name in `snake_case`; the other dialects'
        /// codes are in `wire::codes`.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error, serde::Serialize, serde::Deserialize,
        )]
        pub enum Reason {
            $($(#[$meta])* $name,)*
        }

        impl Reason {
            /// Every reason there is.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

reasons! {
    // Authentication
    /// No token where one is needed.
    #[error("no token was given; over HTTP it is `Authorization: Bearer <token>`")]
    MissingToken,
    /// Not one of our access tokens.
    #[error("the token is not valid")]
    InvalidToken,
    /// The access token is past its time: refresh it.
    #[error("the token has expired, refresh it")]
    TokenExpired,
    /// The sign-in behind the token has ended.
    #[error("this sign-in has ended, sign in again")]
    SessionInvalid,
    /// Something other than AUTH before AUTH.
    #[error("authenticate first")]
    Unauthorized,
    /// No AUTH within the time for it.
    #[error("authentication timed out")]
    AuthTimeout,
    /// REAUTH with another user's token.
    #[error("the token belongs to another user")]
    ReauthUidMismatch,
    /// Another device signed in, and the session policy excludes both at once.
    #[error("signed in on another device")]
    Kicked,
    /// Unknown user or wrong password; clients cannot tell which.
    #[error("user id or password is wrong")]
    LoginFailed,
    /// The refresh token is unknown, used, or its sign-in has ended.
    #[error("the refresh token is not valid, sign in again")]
    InvalidRefreshToken,
    /// Unknown user, or a wrong, used or expired reset code; clients cannot tell which.
    #[error("user id or reset code is wrong, or the code was used or has expired")]
    ResetFailed,
    /// The operator disabled the account.
    #[error("this account is disabled, ask the operator of this server")]
    AccountDisabled,
    /// A token of the app's identity provider that is not accepted, or a sign-in through it that failed. Only the
    /// server's log says why.
    #[error("the identity provider's sign-in was not accepted")]
    TokenRefused,
    /// The password was right, and the account has a second factor.
    #[error("the code of your authenticator app is needed too")]
    TotpRequired,
    #[error("the code of your authenticator app is wrong")]
    TotpWrong,
    #[error("you are not allowed to do this")]
    Forbidden,
    /// The API key is valid, but not for this.
    #[error("this key does not have the scope for this")]
    ScopeMissing,
    /// A browser page of another site.
    #[error("this origin is not allowed")]
    OriginNotAllowed,

    // Accounts
    /// The user id is taken, or one that looks like it.
    #[error("this user id is taken, or looks like one that is")]
    UserExists,
    /// The user id is reserved for the operator, or means something else, such as `all`.
    #[error("this user id is reserved, choose another one")]
    ReservedUserId,
    /// The operator closed the registration.
    #[error("this server does not accept new accounts")]
    RegistrationClosed,
    /// The invite link is wrong, used up, expired or revoked.
    #[error("this invite link is not valid any more, ask for another one")]
    InviteInvalid,
    #[error("no such user")]
    UserNotFound,
    /// Not 1–64 of the allowed characters.
    #[error("a user id is 1 to 64 of A-Z a-z 0-9 . -")]
    BadUserId,
    /// The password is too short, too long, or one that everybody guesses first. HTTP says which.
    #[error("this password is too short, too long, or too easy to guess")]
    BadPassword,
    /// The nickname is blank, too long, or has control or direction characters.
    #[error("a nickname has 1 to 128 visible characters, no control or direction marks")]
    BadNickname,
    /// A profile field is too long.
    #[error("a profile field is too long")]
    BadProfile,

    // Limits
    #[error("too many requests, slow down")]
    TooManyRequests,
    /// The user has as many sockets as allowed.
    #[error("too many connections for this user")]
    TooManyConnections,
    /// The frame or request body is larger than allowed.
    #[error("the frame is too large")]
    FrameTooLarge,
    /// The reader did not keep up and was disconnected; it catches up after reconnecting.
    #[error("the connection reads too slowly")]
    SlowConsumer,
    /// No frame came for too long.
    #[error("the connection was idle for too long")]
    IdleTimeout,
    /// The server is going down: reconnect.
    #[error("the server is restarting, reconnect")]
    ShuttingDown,

    // The form of a request
    /// Not a JSON object of the expected form.
    #[error("not a valid JSON object of this protocol")]
    BadJson,
    /// A frame without a type.
    #[error("the frame has no type")]
    MissingType,
    /// A type this server does not know.
    #[error("this operation is not known")]
    NotImplemented,
    /// A parameter has the wrong form or range.
    #[error("a parameter has the wrong form")]
    InvalidParam,
    /// No such page.
    #[error("there is nothing at this path")]
    NotFound,
    /// The path exists, the method does not.
    #[error("this method is not allowed here")]
    MethodNotAllowed,

    // Sending
    /// No client message id.
    #[error("the client message id is missing")]
    MissingMsgId,
    /// The client message id is too long or has control characters.
    #[error("a client message id has 1 to 128 printable bytes")]
    BadMsgId,
    /// No receiver.
    #[error("the receiver is missing")]
    MissingTo,
    #[error("the message is empty")]
    MissingBody,
    /// More than the allowed length.
    #[error("the message is too long")]
    BodyTooLong,
    /// Sender and receiver are the same.
    #[error("you cannot send to yourself")]
    CannotSendToSelf,
    /// The receiver blocked the sender, and the operator lets senders know.
    #[error("this person has blocked you")]
    ReceiverBlocked,
    /// The receiver lets only some people begin a conversation.
    #[error("this person does not accept messages from you")]
    NotAccepting,
    /// The sender has begun many conversations lately.
    #[error("you have begun many conversations, try again later")]
    TooManyStrangers,
    /// Not one of the content types.
    #[error("unknown message type")]
    UnknownMsgType,
    /// The client message id was used for other content.
    #[error("you used this client message id for another message")]
    ClientMsgIdConflict,

    /// Mentions a user who is not in the conversation.
    #[error("a mentioned person is not in this conversation")]
    MentionNotMember,
    /// More mentions than allowed.
    #[error("too many people are mentioned")]
    TooManyMentions,

    // Groups
    /// A group operation without a group.
    #[error("the group is missing")]
    MissingGroupId,
    /// No such group that the caller could see.
    #[error("no such group")]
    GroupNotFound,
    /// The group has ended.
    #[error("this group has ended")]
    GroupDissolved,
    /// The caller is not in the group.
    #[error("you are not a member of this group")]
    NotGroupMember,
    /// The caller left the group or was removed.
    #[error("you are no longer a member of this group")]
    MemberNotActive,
    #[error("that person is not a member of this group")]
    TargetNotMember,
    #[error("you cannot do this to yourself")]
    TargetIsSelf,
    #[error("you are already a member of this group")]
    AlreadyMember,
    /// Only the owner may do this.
    #[error("only the owner of the group may do this")]
    NotGroupOwner,
    /// Only owner and admins may do this.
    #[error("only the owner and admins of the group may do this")]
    NotGroupAdmin,
    /// No one can remove or mute the owner or change their role.
    #[error("this cannot be done to the owner")]
    CannotTouchOwner,
    /// Only the owner can do this to an admin.
    #[error("only the owner can do this to an admin")]
    CannotTouchAdmin,
    /// The user is in as many groups as one may be.
    #[error("you are in as many groups as one can be, leave one first")]
    TooManyGroups,
    /// The owner has to transfer the ownership before leaving.
    #[error("transfer ownership before you leave, or dissolve the group")]
    OwnerMustTransfer,
    /// The group is by invitation only.
    #[error("this group can only be joined by invitation")]
    JoinNotAllowed,
    /// There is no request, or it was answered.
    #[error("no such request to join")]
    JoinRequestNotFound,
    #[error("you are muted in this group")]
    GroupSpeakMuted,
    /// Only the owner and admins may post now.
    #[error("only the owner and admins can post in this group now")]
    GroupMuted,
    /// The group has as many members as allowed.
    #[error("the group is full")]
    GroupFull,
    /// The group has as many admins as allowed.
    #[error("the group has too many admins")]
    TooManyAdmins,
    #[error("too many people are waiting to join this group")]
    TooManyJoinRequests,
    #[error("a group needs at least three people")]
    GroupTooSmall,
    /// The name is empty or too long.
    #[error("a group name has 1 to 128 characters")]
    BadGroupName,
    /// A field of the group's profile is too long.
    #[error("a field of the group is too long")]
    BadGroupProfile,
    #[error("too many people in one request")]
    TooManyUsers,
    #[error("this was done a short while ago, try again later")]
    CooldownNotReached,
    /// Only conversations of groups can be deleted.
    #[error("a private conversation cannot be deleted")]
    CannotDeletePrivate,

    // Recalling
    /// Only the sender may recall a message; in a group also members with a higher role.
    #[error("you cannot unsend this message")]
    NotMessageSender,
    #[error("it is too late to unsend this message")]
    RevokeTimeout,

    // Acknowledging and reading
    #[error("ackType is missing")]
    MissingAckType,
    #[error("ackType is not known")]
    UnknownAckType,
    #[error("the message id is missing")]
    MissingServerMsgId,
    #[error("this is not a message id")]
    BadServerMsgId,
    /// No such message that the caller could see.
    #[error("no such message")]
    MessageNotFound,
    /// The message was not for the caller, or the ACK contradicts itself.
    #[error("you cannot acknowledge this message")]
    AckNotAllowed,
    /// No such conversation that the caller could see.
    #[error("no such conversation")]
    ConversationNotFound,

    // The server
    /// The operator's disk lost a part of what was stored. Asking again does not help.
    #[error("this part of the data is damaged and cannot be read")]
    Damaged,
    /// The client should retry with the same clientMsgId.
    #[error("the server is busy, try again")]
    ServerBusy,
    #[error("internal error")]
    InternalError,
}

/// The error of a library or the operating system, for the log.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A refusal with the part of the request that is wrong: the path of a field, or an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetailedReason {
    pub reason: Reason,
    /// For people; clients decide by the reason.
    pub detail: Option<Box<str>>,
}

impl DetailedReason {
    pub fn new(reason: Reason, detail: impl Into<Box<str>>) -> Self {
        Self { reason, detail: Some(detail.into()) }
    }

    /// A field whose value has the wrong form or range.
    pub fn field(name: &str) -> Self {
        Self::new(Reason::InvalidParam, format!("`{name}`"))
    }
}

/// For dialects that send only the reason.
impl From<DetailedReason> for Reason {
    fn from(refusal: DetailedReason) -> Self {
        refusal.reason
    }
}

impl From<Reason> for DetailedReason {
    fn from(reason: Reason) -> Self {
        Self { reason, detail: None }
    }
}

/// How an operation can fail.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's fault; sent to the client as it is.
    #[error("{0}")]
    Refused(#[from] Reason),
    /// The same, with what exactly is wrong. HTTP sends the detail too.
    #[error("{reason}: {detail}")]
    RefusedWithDetail { reason: Reason, detail: Box<str> },
    /// Nothing was decided; the client may retry. Sent as `server_busy`.
    #[error("{0}")]
    Unavailable(#[source] BoxError),
    /// The server's fault; logged with context, and hidden from the client.
    #[error("internal error: {0}")]
    Internal(#[source] BoxError),
}

impl Error {
    /// The reason to send to the client.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Refused(reason) | Self::RefusedWithDetail { reason, .. } => *reason,
            Self::Unavailable(_) => Reason::ServerBusy,
            Self::Internal(_) => Reason::InternalError,
        }
    }

    /// What exactly is wrong with the request, if it is known.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::RefusedWithDetail { detail, .. } => Some(detail),
            Self::Refused(_) | Self::Unavailable(_) | Self::Internal(_) => None,
        }
    }
}

impl From<DetailedReason> for Error {
    fn from(DetailedReason { reason, detail }: DetailedReason) -> Self {
        match detail {
            Some(detail) => Self::RefusedWithDetail { reason, detail },
            None => Self::Refused(reason),
        }
    }
}
