import type { Reason } from "./codes.js";
import type { MessageType } from "./frames.js";
import type { GroupProfile, Role } from "./groups.js";

/** The content of a message to send. Text is data: it is never interpreted as markup. */
export interface Content {
  type?: MessageType;
  body: string;
  extra?: Record<string, string>;
}

/** Where a message goes: a conversation id, a user or a group. */
export type Target = string | { to: string } | { groupId: string };

export interface SendOptions {
  /** Fields of the app, passed on unchanged; overrides `extra` of `Content`. */
  extra?: Record<string, string>;
  /** User ids; in a group the owner and admins may also use `@all`. */
  mentions?: string[];
  /** The `serverMsgId` of the message this replies to. */
  replyTo?: string;
}

/**
 * The state of a message. Own messages: `sending`, `accepted` (by the server, not on disk yet), `saved`,
 * `delivered`, `read` or `refused`. Messages of others: `received`, or `preview` while it has no seq. In a
 * group `delivered` means that at least one member has it, `read` that every member who was in the group when
 * it was sent has read it.
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

/** A message. It is immutable: a change makes a new object. */
export interface Message {
  readonly conversationId: string;
  readonly clientMsgId: string;
  /** Empty until the server has assigned it. */
  readonly serverMsgId: string;
  /** The sequence number in the conversation; 0 until it is saved. */
  readonly seq: number;
  readonly from: string;
  readonly isMine: boolean;
  readonly type: MessageType;
  readonly body: string;
  readonly extra?: Readonly<Record<string, string>>;
  readonly mentions?: readonly string[];
  readonly replyTo?: string;
  /** It mentions you or replies to a message of yours. */
  readonly isImportant: boolean;
  /** Recalled: the text is gone. */
  readonly isRecalled: boolean;
  /** The server's disk lost it: only its place is known. It has no id, sender or text, and emits no `message`. */
  readonly isDamaged?: true;
  /** When it was saved, else when it was sent; milliseconds since 1970. */
  readonly at: number;
  readonly state: MessageState;
  /** For own messages in a group: how many other members are known to have read it. */
  readonly readBy?: number;
  /** Why it was refused. */
  readonly reason?: Reason;
  /** For a refused message: the last seq on this device when it was refused. It is shown after that message. */
  readonly after?: number;
}

/**
 * How you are notified of a conversation. A blocked one receives nothing on this device until it is
 * unblocked; `unread` of its summary still counts the waiting messages.
 */
export type Receive = "normal" | "silent" | "blocked";

/** A conversation as the list shows it. */
export interface ConversationSummary {
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
  readonly isPinned: boolean;
  readonly receive: Receive;
  /** Whether you are still a member. */
  readonly isActive: boolean;
  /** The group was dissolved or dismissed, so it is no longer in the list. */
  readonly isEnded: boolean;
  /** You hid it and no message came since, so it is not in the list. */
  readonly isHidden: boolean;
  /** The last message on this device; there is no gap between the oldest one and this. */
  readonly lastSeq: number;
  readonly readSeq: number;
  /** The delivered and read cursors of the peer, in a private conversation. */
  readonly peerDeliveredSeq: number;
  readonly peerReadSeq: number;
  readonly updatedAt: number;
}

/** A recall, or a change of the members or of the group. */
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
    | "allMuted"
    | "dissolved"
    | "dismissed"
    | "memberUpdated";
  readonly by: string;
  readonly at: number;
  readonly userIds: readonly string[];
  /** Their new role. */
  readonly role?: Role;
  readonly mutedUntil?: number;
  /** For `allMuted`: whether only the owner and admins may post. */
  readonly isMuted?: boolean;
  /** The fields of the group's profile that changed. */
  readonly group?: Readonly<GroupProfile>;
  /** For a recall: the message. For a join: the first message that the new members see. */
  readonly seq?: number;
  readonly serverMsgId?: string;
}

/** The state of the connection and of the sign-in. */
export type State =
  | { readonly name: "connecting" }
  | { readonly name: "online" }
  /** `retryInMs` is absent if no attempt is planned. */
  | { readonly name: "offline"; readonly retryInMs?: number }
  /** The same account signed in on another device, and the server allows only one. */
  | { readonly name: "kicked" }
  | { readonly name: "signedOut"; readonly reason: Reason | "logout" };

/** The events of a client. */
export interface Events {
  state: State;
  /**
   * A new message: once, in the order of its conversation. Own messages too, when they are sent. Messages
   * that were delivered before this device signed in are history: `messages` has them, without an event.
   */
  message: Message;
  /** A message changed: its state, its seq, or it was recalled. */
  update: Message;
  /**
   * A preview or an unsent message is gone. Previews are removed when the connection is lost; those that were
   * saved come again as `message`.
   */
  removed: { conversationId: string; clientMsgId: string; serverMsgId: string };
  conversation: ConversationSummary;
  change: Change;
  receipt: { conversationId: string; userId: string; kind: "delivered" | "read"; seq: number };
  typing: { conversationId: string; userId: string; isTyping: boolean };
  /** A user you share a conversation with (or you, on another device) changed the nickname or avatar. */
  person: { userId: string; nickname: string; avatar: string };
  joinRequest: { groupId: string; userId: string; requestId: string; message: string };
  joinDecision: { groupId: string; by: string; requestId: string; isAccepted: boolean };
  /** An error that no call returned. */
  problem: Error;
}

/**
 * The id of the conversation with `target`. A private conversation id that does not name `me` is read as the
 * private conversation with its first user: that is where a message would go.
 */
export function conversationOf(me: string, target: Target): string {
  if (typeof target === "string") return conversationOf(me, addressOf(me, target));
  if ("groupId" in target) return `sg_${target.groupId}`;
  return `si_${[me, target.to].sort().join("_")}`;
}

/** The user or group of a conversation. */
export function addressOf(me: string, conversationId: string): { to: string } | { groupId: string } {
  if (conversationId.startsWith("sg_")) return { groupId: conversationId.slice(3) };
  const [, a = "", b = ""] = conversationId.split("_");
  return { to: a === me ? b : a };
}
