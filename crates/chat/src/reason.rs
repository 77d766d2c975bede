//! Everything a person can be refused for, and the three ways an operation can fail.

/// Declares the enum and the list of all its members together, so that neither forgets one.
macro_rules! reasons {
    ($($(#[$meta:meta])* $name:ident,)*) => {
        /// Why something was refused. The name in `snake_case` is what the typed dialect says on the wire;
        /// the other dialects' codes are in `wire::codes`.
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
    // Who are you?
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
    #[error("no authentication in time")]
    AuthTimeout,
    /// REAUTH with somebody else's token.
    #[error("the token belongs to another user")]
    ReauthUidMismatch,
    /// Another device took over.
    #[error("signed in on another device")]
    Kicked,
    /// Unknown user or wrong password: the answer does not tell which.
    #[error("user id or password is wrong")]
    LoginFailed,
    /// The refresh token is unknown, used, or its sign-in has ended.
    #[error("the refresh token is not valid, sign in again")]
    InvalidRefreshToken,
    /// Unknown user, or a wrong, used or expired reset code: the answer does not tell which.
    #[error("user id or reset code is wrong, or the code was used or has expired")]
    ResetFailed,
    /// The operation is not for this caller.
    #[error("you may not do this")]
    Forbidden,
    /// A browser page of another site.
    #[error("this origin is not allowed")]
    OriginNotAllowed,

    // Accounts
    /// The wanted user id is taken, or one that people would take for it.
    #[error("this user id is taken, or looks like one that is")]
    UserExists,
    /// The wanted user id is kept for the operator, or stands for something else.
    #[error("this user id is reserved, choose another one")]
    ReservedUserId,
    /// Nobody makes an account here by themselves.
    #[error("this server takes no new accounts")]
    RegistrationClosed,
    /// No such user.
    #[error("no such user")]
    UserNotFound,
    /// Not 1–64 of the allowed characters.
    #[error("a user id is 1 to 64 of A-Z a-z 0-9 . -")]
    BadUserId,
    /// The password is too short or too long.
    #[error("a password has 8 to 128 characters")]
    BadPassword,
    /// The nickname shows nothing, is too long, or has characters that mislead.
    #[error("a nickname has 1 to 128 visible characters, no control or direction marks")]
    BadNickname,
    /// A profile field is too long.
    #[error("a profile field is too long")]
    BadProfile,

    // Limits
    /// Too fast.
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
    /// Nothing was heard for too long.
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
    #[error("no such thing")]
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
    /// Nothing to say.
    #[error("the message is empty")]
    MissingBody,
    /// More than the allowed length.
    #[error("the message is too long")]
    BodyTooLong,
    /// Sender and receiver are the same.
    #[error("you cannot send to yourself")]
    CannotSendToSelf,
    /// Not one of the content types.
    #[error("unknown message type")]
    UnknownMsgType,
    /// The client message id was used for other content.
    #[error("you used this client message id for another message")]
    ClientMsgIdConflict,

    /// Mentions somebody who is not there.
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
    /// The caller left the group or was put out.
    #[error("you are no longer a member of this group")]
    MemberNotActive,
    /// The person it is about is not in the group.
    #[error("that person is not a member of this group")]
    TargetNotMember,
    /// The person it is about is the caller.
    #[error("you cannot do this to yourself")]
    TargetIsSelf,
    /// They are in already.
    #[error("you are already a member of this group")]
    AlreadyMember,
    /// Only the owner may do this.
    #[error("only the owner of the group may do this")]
    NotGroupOwner,
    /// Only owner and admins may do this.
    #[error("only the owner and admins of the group may do this")]
    NotGroupAdmin,
    /// Nobody puts the owner out, mutes them or changes their role.
    #[error("nobody can do this to the owner")]
    CannotTouchOwner,
    /// Only the owner deals with admins.
    #[error("only the owner can do this to an admin")]
    CannotTouchAdmin,
    /// The owner gives the group to somebody before they leave.
    #[error("give the group to somebody else before you leave, or dissolve it")]
    OwnerMustTransfer,
    /// One comes in by invitation only.
    #[error("one joins this group by invitation only")]
    JoinNotAllowed,
    /// Nobody asked to come in, or it is settled.
    #[error("no such request to join")]
    JoinRequestNotFound,
    /// The caller may not speak for now.
    #[error("you are muted in this group")]
    GroupSpeakMuted,
    /// Only owner and admins may speak for now.
    #[error("only the owner and admins may speak in this group now")]
    GroupMuted,
    /// The group has as many members as allowed.
    #[error("the group is full")]
    GroupFull,
    /// The group has as many admins as allowed.
    #[error("the group has too many admins")]
    TooManyAdmins,
    /// Too many people wait to be let in.
    #[error("too many people are waiting to join this group")]
    TooManyJoinRequests,
    /// A group of this kind needs more people.
    #[error("a group needs at least three people")]
    GroupTooSmall,
    /// The name is empty or too long.
    #[error("a group name has 1 to 128 characters")]
    BadGroupName,
    /// A field of the group's profile is too long.
    #[error("a field of the group is too long")]
    BadGroupProfile,
    /// More people than one request may speak of.
    #[error("too many people in one request")]
    TooManyUsers,
    /// It was done a short while ago.
    #[error("this was done a short while ago, try again later")]
    CooldownNotReached,
    /// Only conversations of groups can be deleted.
    #[error("a private conversation cannot be deleted")]
    CannotDeletePrivate,

    // Recalling
    /// Only the sender takes a message back; in a group also those who keep order.
    #[error("you cannot take this message back")]
    NotMessageSender,
    /// The time for taking it back is over.
    #[error("it is too late to take this message back")]
    RevokeTimeout,

    // Acknowledging and reading
    /// An ACK that does not say of what kind.
    #[error("ackType is missing")]
    MissingAckType,
    /// An ACK of an unknown kind.
    #[error("ackType is not known")]
    UnknownAckType,
    /// An ACK that does not say for which message.
    #[error("the message id is missing")]
    MissingServerMsgId,
    /// Not the form of a message id.
    #[error("this is not a message id")]
    BadServerMsgId,
    /// No such message that the caller could see.
    #[error("no such message")]
    MessageNotFound,
    /// The message was not for the caller, or the ACK contradicts itself.
    #[error("this acknowledgement is not yours to give")]
    AckNotAllowed,
    /// No such conversation that the caller could see.
    #[error("no such conversation")]
    ConversationNotFound,

    // Our side
    /// Try again with the same clientMsgId.
    #[error("the server is busy, try again")]
    ServerBusy,
    /// A defect of ours.
    #[error("internal error")]
    InternalError,
}

/// What a library or a disk said, kept for the log.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How an operation can fail.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's doing; goes on the wire as it is.
    #[error("{0}")]
    Refused(#[from] Reason),
    /// Nothing was decided: try again later. On the wire `server_busy`.
    #[error("{0}")]
    Unavailable(#[source] BoxError),
    /// Ours; logged with context, hidden on the wire.
    #[error("internal error: {0}")]
    Internal(#[source] BoxError),
}

impl Error {
    /// What the caller is told.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Refused(reason) => *reason,
            Self::Unavailable(_) => Reason::ServerBusy,
            Self::Internal(_) => Reason::InternalError,
        }
    }
}
