export { Client } from "./client.js";
export { type Cancel, type Clock, wallClock } from "./clock.js";
export { type Code, codes, type Reason } from "./codes.js";
export type { Device, Platform } from "./devices.js";
export type { Off } from "./events.js";
export type { Limits, MessageType } from "./frames.js";
export {
  type Group,
  type GroupProfile,
  type Groups,
  type History,
  type JoinRequest,
  type Joined,
  type JoinType,
  type Member,
  type MemberReadState,
  type Page,
  type Paging,
  type Role,
} from "./groups.js";
export type { Reply, RequestBody } from "./http.js";
export type { ClientOptions } from "./options.js";
export type { NewUser, People, Presence, Profile, User } from "./people.js";
export type { Audience, Consent } from "./privacy.js";
export { Refused, Unreachable } from "./refusal.js";
export type { SocketClass, SocketLike } from "./socket.js";
export { IndexedDbStore, MemoryStore, type Store } from "./storage.js";
export { defaultTiming, type Timing } from "./timing.js";
export type { LoginTokens } from "./tokens.js";
export * from "./types.js";
