// Made from crates/wire/src/codes.rs by `make gen`.

/** One reason for a refusal, as the dialects and HTTP tell it. */
export interface Code {
  readonly numbered: number;
  readonly dotted: number;
  readonly http: number;
  /** The connection stays, stays unless it happens often, or ends with this close code. */
  readonly close: "stays" | "strike" | number;
  /** It passes by itself: the same request may succeed a little later. */
  readonly retry: boolean;
  readonly text: string;
}

/** Every reason by its word. */
export const codes = {
  missing_token: { numbered: 2003, dotted: 102, http: 401, close: 4401, retry: false, text: "no token was given; over HTTP it is `Authorization: Bearer <token>`" },
  invalid_token: { numbered: 2001, dotted: 102, http: 401, close: 4401, retry: false, text: "the token is not valid" },
  token_expired: { numbered: 2002, dotted: 101, http: 401, close: 4100, retry: false, text: "the token has expired, refresh it" },
  session_invalid: { numbered: 2001, dotted: 117, http: 401, close: 4401, retry: false, text: "this sign-in has ended, sign in again" },
  unauthorized: { numbered: 1003, dotted: 100, http: 401, close: 4401, retry: false, text: "authenticate first" },
  auth_timeout: { numbered: 1003, dotted: 100, http: 401, close: 4001, retry: true, text: "authentication timed out" },
  reauth_uid_mismatch: { numbered: 2004, dotted: 102, http: 401, close: 4402, retry: false, text: "the token belongs to another user" },
  kicked: { numbered: 2001, dotted: 608, http: 401, close: 4403, retry: false, text: "signed in on another device" },
  login_failed: { numbered: 2005, dotted: 100, http: 401, close: "stays", retry: false, text: "user id or password is wrong" },
  invalid_refresh_token: { numbered: 2001, dotted: 102, http: 401, close: "stays", retry: false, text: "the refresh token is not valid, sign in again" },
  reset_failed: { numbered: 2005, dotted: 100, http: 401, close: "stays", retry: false, text: "user id or reset code is wrong, or the code was used or has expired" },
  token_refused: { numbered: 2001, dotted: 102, http: 401, close: "stays", retry: false, text: "the identity provider's sign-in was not accepted" },
  forbidden: { numbered: 1004, dotted: 6, http: 403, close: "stays", retry: false, text: "you are not allowed to do this" },
  origin_not_allowed: { numbered: 1004, dotted: 6, http: 403, close: 4404, retry: false, text: "this origin is not allowed" },
  user_exists: { numbered: 2007, dotted: 105, http: 409, close: "stays", retry: false, text: "this user id is taken, or looks like one that is" },
  reserved_user_id: { numbered: 2007, dotted: 106, http: 409, close: "stays", retry: false, text: "this user id is reserved, choose another one" },
  registration_closed: { numbered: 1004, dotted: 6, http: 403, close: "stays", retry: false, text: "this server does not accept new accounts" },
  user_not_found: { numbered: 2006, dotted: 103, http: 404, close: "stays", retry: false, text: "no such user" },
  bad_user_id: { numbered: 1001, dotted: 106, http: 400, close: "stays", retry: false, text: "a user id is 1 to 64 of A-Z a-z 0-9 . -" },
  bad_password: { numbered: 1001, dotted: 107, http: 400, close: "stays", retry: false, text: "this password is too short, too long, or too easy to guess" },
  bad_nickname: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "a nickname has 1 to 128 visible characters, no control or direction marks" },
  bad_profile: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "a profile field is too long" },
  too_many_requests: { numbered: 1006, dotted: 7, http: 429, close: 4029, retry: true, text: "too many requests, slow down" },
  too_many_connections: { numbered: 5001, dotted: 607, http: 429, close: 4030, retry: true, text: "too many connections for this user" },
  frame_too_large: { numbered: 5003, dotted: 604, http: 413, close: 1009, retry: false, text: "the frame is too large" },
  slow_consumer: { numbered: 5002, dotted: 600, http: 408, close: 4002, retry: true, text: "the connection reads too slowly" },
  idle_timeout: { numbered: 5002, dotted: 606, http: 408, close: 4003, retry: true, text: "the connection was idle for too long" },
  shutting_down: { numbered: 5002, dotted: 8, http: 503, close: 4004, retry: true, text: "the server is restarting, reconnect" },
  bad_json: { numbered: 1001, dotted: 605, http: 400, close: "strike", retry: false, text: "not a valid JSON object of this protocol" },
  missing_type: { numbered: 1001, dotted: 605, http: 400, close: "strike", retry: false, text: "the frame has no type" },
  not_implemented: { numbered: 5003, dotted: 12, http: 501, close: "strike", retry: false, text: "this operation is not known" },
  invalid_param: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "a parameter has the wrong form" },
  not_found: { numbered: 1005, dotted: 4, http: 404, close: "stays", retry: false, text: "there is nothing at this path" },
  method_not_allowed: { numbered: 1005, dotted: 12, http: 405, close: "stays", retry: false, text: "this method is not allowed here" },
  missing_msg_id: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "the client message id is missing" },
  bad_msg_id: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "a client message id has 1 to 128 printable bytes" },
  missing_to: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "the receiver is missing" },
  missing_body: { numbered: 1001, dotted: 304, http: 400, close: "stays", retry: false, text: "the message is empty" },
  body_too_long: { numbered: 1001, dotted: 303, http: 400, close: "stays", retry: false, text: "the message is too long" },
  cannot_send_to_self: { numbered: 1001, dotted: 206, http: 400, close: "stays", retry: false, text: "you cannot send to yourself" },
  unknown_msg_type: { numbered: 1001, dotted: 305, http: 400, close: "stays", retry: false, text: "unknown message type" },
  client_msg_id_conflict: { numbered: 4002, dotted: 5, http: 409, close: "stays", retry: false, text: "you used this client message id for another message" },
  mention_not_member: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "a mentioned person is not in this conversation" },
  too_many_mentions: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "too many people are mentioned" },
  missing_group_id: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "the group is missing" },
  group_not_found: { numbered: 3001, dotted: 500, http: 404, close: "stays", retry: false, text: "no such group" },
  group_dissolved: { numbered: 3002, dotted: 507, http: 410, close: "stays", retry: false, text: "this group has ended" },
  not_group_member: { numbered: 3003, dotted: 503, http: 403, close: "stays", retry: false, text: "you are not a member of this group" },
  member_not_active: { numbered: 3004, dotted: 503, http: 403, close: "stays", retry: false, text: "you are no longer a member of this group" },
  target_not_member: { numbered: 3003, dotted: 503, http: 404, close: "stays", retry: false, text: "that person is not a member of this group" },
  target_is_self: { numbered: 1001, dotted: 206, http: 400, close: "stays", retry: false, text: "you cannot do this to yourself" },
  already_member: { numbered: 3005, dotted: 504, http: 409, close: "stays", retry: false, text: "you are already a member of this group" },
  not_group_owner: { numbered: 3006, dotted: 506, http: 403, close: "stays", retry: false, text: "only the owner of the group may do this" },
  not_group_admin: { numbered: 3007, dotted: 505, http: 403, close: "stays", retry: false, text: "only the owner and admins of the group may do this" },
  cannot_touch_owner: { numbered: 3008, dotted: 510, http: 403, close: "stays", retry: false, text: "this cannot be done to the owner" },
  cannot_touch_admin: { numbered: 3006, dotted: 516, http: 403, close: "stays", retry: false, text: "only the owner can do this to an admin" },
  owner_must_transfer: { numbered: 3008, dotted: 515, http: 409, close: "stays", retry: false, text: "transfer ownership before you leave, or dissolve the group" },
  join_not_allowed: { numbered: 1007, dotted: 509, http: 403, close: "stays", retry: false, text: "this group can only be joined by invitation" },
  join_request_not_found: { numbered: 1005, dotted: 4, http: 404, close: "stays", retry: false, text: "no such request to join" },
  group_speak_muted: { numbered: 1007, dotted: 512, http: 403, close: "stays", retry: false, text: "you are muted in this group" },
  group_muted: { numbered: 1007, dotted: 511, http: 403, close: "stays", retry: false, text: "only the owner and admins can post in this group now" },
  group_full: { numbered: 1007, dotted: 502, http: 409, close: "stays", retry: false, text: "the group is full" },
  too_many_admins: { numbered: 1007, dotted: 514, http: 409, close: "stays", retry: false, text: "the group has too many admins" },
  too_many_join_requests: { numbered: 1007, dotted: 509, http: 409, close: "stays", retry: false, text: "too many people are waiting to join this group" },
  group_too_small: { numbered: 1001, dotted: 517, http: 400, close: "stays", retry: false, text: "a group needs at least three people" },
  bad_group_name: { numbered: 1001, dotted: 513, http: 400, close: "stays", retry: false, text: "a group name has 1 to 128 characters" },
  bad_group_profile: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "a field of the group is too long" },
  too_many_users: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "too many people in one request" },
  cooldown_not_reached: { numbered: 1006, dotted: 7, http: 429, close: "stays", retry: false, text: "this was done a short while ago, try again later" },
  cannot_delete_private: { numbered: 1007, dotted: 313, http: 403, close: "stays", retry: false, text: "a private conversation cannot be deleted" },
  not_message_sender: { numbered: 1004, dotted: 302, http: 403, close: "stays", retry: false, text: "you cannot unsend this message" },
  revoke_timeout: { numbered: 1004, dotted: 301, http: 403, close: "stays", retry: false, text: "it is too late to unsend this message" },
  missing_ack_type: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "ackType is missing" },
  unknown_ack_type: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "ackType is not known" },
  missing_server_msg_id: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "the message id is missing" },
  bad_server_msg_id: { numbered: 1001, dotted: 2, http: 400, close: "stays", retry: false, text: "this is not a message id" },
  message_not_found: { numbered: 4001, dotted: 300, http: 404, close: "stays", retry: false, text: "no such message" },
  ack_not_allowed: { numbered: 1004, dotted: 6, http: 403, close: "stays", retry: false, text: "you cannot acknowledge this message" },
  conversation_not_found: { numbered: 4003, dotted: 306, http: 404, close: "stays", retry: false, text: "no such conversation" },
  damaged: { numbered: 4006, dotted: 11, http: 500, close: "stays", retry: false, text: "this part of the data is damaged and cannot be read" },
  server_busy: { numbered: 1002, dotted: 8, http: 503, close: "stays", retry: true, text: "the server is busy, try again" },
  internal_error: { numbered: 1002, dotted: 3, http: 500, close: "stays", retry: false, text: "internal error" },
} as const satisfies Record<string, Code>;

/** The word of a reason. */
export type Reason = keyof typeof codes;
