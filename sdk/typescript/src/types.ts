import type { Reason } from "./codes.js";
import type { MessageType } from "./frames.js";
import type { GroupProfile } from "./groups.js";

/** What one says. Text is data: it is never read as markup. */
export interface Content {
  type?: MessageType;
  body: string;
  extra?: Record<string, string>;
}

/** Whom it is for: a conversation, a person, or a group. */
export type Target = string | { to: string } | { groupId: string };

export interface SendOptions {
  /** Your app's own options, carried along; the same as in `Content`. */
  extra?: Record<string, string>;
  /** User ids, or `@all` by owner and admins of a group. */
  mentions?: string[];
  /** The `serverMsgId` of what is answered. */
  replyTo?: string;
}

/**
 * How far a message is. Own ones: `sending`, `accepted` (taken, not on disk yet), `saved`, `delivered`,
 * `read`, or `refused`. Others': `received`, or `preview` while it has no place in the order.
 * In a group `delivered` means that somebody has it, `read` that everybody has read it.
 */
export type MessageState =
  | "sending"
  | "accepted"
  | "saved"
  | "delivered"
  | "read"
  | "refused"
  | "received"
  | "preview";

/** A message. Never changed in place: news about it is a new object. */
export interface Message {
  readonly conversationId: string;
  readonly clientMsgId: string;
  /** Empty until the server has named it. */
  readonly serverMsgId: string;
  /** Its place in the conversation; 0 until it is saved. */
  readonly seq: number;
  readonly from: string;
  readonly mine: boolean;
  readonly type: MessageType;
  readonly body: string;
  readonly extra?: Readonly<Record<string, string>>;
  readonly mentions?: readonly string[];
  readonly replyTo?: string;
  /** It speaks to you in particular. */
  readonly important: boolean;
  /** Taken back: there is no text any more. */
  readonly revoked: boolean;
  /** When it was saved, else when it was written; milliseconds. */
  readonly at: number;
  readonly state: MessageState;
  /** Of an own message in a group: how many others have read it, as far as is known. */
  readonly readBy?: number;
  /** Why it was refused. */
  readonly reason?: Reason;
  /** Of a refused one: the place it stays behind, the last one that was here when it was refused. */
  readonly after?: number;
}

/**
 * What you hear of a conversation. Of a `blocked` one nothing new comes to this device; it comes when that
 * ends. `unread` of its line still counts what waits.
 */
export type Receive = "normal" | "silent" | "blocked";

/** A line of the list. */
export interface ConversationLine {
  readonly id: string;
  readonly kind: "single" | "group";
  readonly peerId?: string;
  readonly groupId?: string;
  readonly name: string;
  readonly avatar: string;
  readonly memberCount?: number;
  readonly unread: number;
  readonly mentionUnread: number;
  readonly lastMessage?: Message;
  readonly pinned: boolean;
  readonly receive: Receive;
  /** Whether you are still in it. */
  readonly active: boolean;
  /** Its group was dissolved or dismissed: it is not in the list any more. */
  readonly ended: boolean;
  /** You hid it, and nothing was said since: it is not in the list. */
  readonly hidden: boolean;
  /** Everything up to here is on this device, from its oldest message on. */
  readonly lastSeq: number;
  readonly readSeq: number;
  /** How far the other person has received and read. */
  readonly peerDeliveredSeq: number;
  readonly peerReadSeq: number;
  readonly updatedAt: number;
}

/** Something that happened to what is stored: a recall, or people or the group changed. */
export interface Change {
  readonly conversationId: string;
  readonly changeSeq: number;
  readonly kind:
    | "recalled"
    | "joined"
    | "left"
    | "kicked"
    | "role"
    | "owner"
    | "updated"
    | "muted"
    | "all_muted"
    | "dissolved"
    | "dismissed"
    | "member_updated";
  readonly by: string;
  readonly at: number;
  readonly userIds: readonly string[];
  readonly role?: string;
  readonly mutedUntil?: number;
  readonly on?: boolean;
  /** What changed of the group's profile. */
  readonly group?: Readonly<GroupProfile>;
  /** Of a recall: which message. Of a join: the first one they see. */
  readonly seq?: number;
  readonly serverMsgId?: string;
}

/** How it stands with the server. */
export type State =
  | { readonly name: "connecting" }
  | { readonly name: "online" }
  /** `retryInMs` is absent if nobody is trying. */
  | { readonly name: "offline"; readonly retryInMs?: number }
  /** Somebody signed in elsewhere, and only one may be here. */
  | { readonly name: "kicked" }
  | { readonly name: "signedOut"; readonly reason: Reason | "logout" };

/** What a client tells. */
export interface Events {
  state: State;
  /**
   * There is a new message: in the order of the conversation, each once. Also own ones, when they are sent.
   * What had been delivered before this device came is history: it is in `messages`, and no event.
   */
  message: Message;
  /** A message changed: its state, its place, or it was taken back. */
  update: Message;
  /** A preview or an unsent message is gone. Previews go when the line breaks; what was saved comes as `message`. */
  removed: { conversationId: string; clientMsgId: string; serverMsgId: string };
  conversation: ConversationLine;
  change: Change;
  receipt: { conversationId: string; userId: string; kind: "delivered" | "read"; seq: number };
  typing: { conversationId: string; userId: string; on: boolean };
  /** Somebody you share a conversation with, or you on another device, has a new name or picture. */
  person: { userId: string; nickname: string; avatar: string };
  joinRequest: { groupId: string; userId: string; requestId: string; message: string };
  joinDecision: { groupId: string; by: string; requestId: string; accepted: boolean };
  /** Something was refused that nobody waits for. */
  problem: Error;
}

/**
 * The id of a conversation, which one may build. One between two others, as a link may name it, is none
 * of ours: what is said goes to one of them, so it is the conversation with that one.
 */
export function conversationOf(me: string, target: Target): string {
  if (typeof target === "string") return conversationOf(me, addressOf(me, target));
  if ("groupId" in target) return `sg_${target.groupId}`;
  return `si_${[me, target.to].sort().join("_")}`;
}

/** Whom a conversation is with. */
export function addressOf(me: string, conversationId: string): { to: string } | { groupId: string } {
  if (conversationId.startsWith("sg_")) return { groupId: conversationId.slice(3) };
  const [, a = "", b = ""] = conversationId.split("_");
  return { to: a === me ? b : a };
}
