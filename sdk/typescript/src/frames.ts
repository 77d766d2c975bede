import type { Reason } from "./codes.js";

/** What a message is. */
export type MessageType = "TEXT" | "IMAGE" | "VIDEO" | "AUDIO" | "FILE" | "CUSTOM";

/** What one must keep to, as `AUTH_OK` tells it; a rate of zero is no limit. */
export interface Limits {
  frameBytesMax: number;
  textCharsMax: number;
  connectionFramesPerSecond: number;
  userSendsPerSecond: number;
  userRequestsPerSecond: number;
  idleTimeoutMs: number;
  groupMembersMax: number;
  mentionsMax: number;
  /** A sender may take a message back for this long. */
  recallWindowMs?: number;
}

interface ChatFields {
  clientMsgId: string;
  body: string;
  msgType?: MessageType;
  extra?: Record<string, string>;
  mentions?: string[];
  replyToServerMsgId?: string;
}

/** What we say. */
export type ClientFrame =
  | { type: "AUTH" | "REAUTH"; token: string }
  | { type: "PING" | "PONG" }
  | ({ type: "SINGLE_CHAT"; to: string } & ChatFields)
  | ({ type: "GROUP_CHAT"; groupId: string } & ChatFields)
  | { type: "ACK"; ackType: "delivered" | "read"; serverMsgId: string; msgSeq: string }
  | { type: "TYPING"; to?: string; groupId?: string }
  | { type: "RESEND"; cursors?: Record<string, string> };

/** Somebody said something. A preview has no place in the order yet. */
export interface ChatFrame extends ChatFields {
  type: "SINGLE_CHAT" | "GROUP_CHAT";
  from: string;
  to?: string;
  groupId?: string;
  conversationId: string;
  serverMsgId: string;
  msgSeq?: string;
  preview?: boolean;
  important?: boolean;
  revoked?: boolean;
  ts: number;
}

/** What became of a message of ours, or how far somebody is. */
export interface AckFrame {
  type: "ACK";
  ackType: "accepted" | "saved" | "dropped" | "delivered" | "read" | "revoked";
  conversationId: string;
  serverMsgId: string;
  clientMsgId?: string;
  msgSeq?: string;
  from?: string;
  to?: string;
  groupId?: string;
  body?: string;
  reason?: Reason;
  ts?: number;
}

export interface RevokedFrame {
  type: "MESSAGE_REVOKED";
  from: string;
  conversationId: string;
  serverMsgId: string;
  msgSeq: string;
  changeSeq: string;
  ts: number;
}

export interface GroupChangedFrame {
  type: "GROUP_CHANGED";
  event: string;
  from: string;
  groupId: string;
  conversationId: string;
  changeSeq: string;
  userId?: string;
  userIds?: string[];
  msgSeq?: string;
  role?: "member" | "admin" | "owner";
  mutedUntil?: number;
  on?: boolean;
  group?: Record<string, string>;
  ts: number;
}

/** What the server says. */
export type ServerFrame =
  | { type: "AUTH_OK"; from: string; tokenExpiresAt: number; limits: Limits; ts: number }
  | { type: "AUTH_FAIL"; reason: Reason; message: string }
  | { type: "ERROR"; reason: Reason; message: string; clientMsgId?: string; serverMsgId?: string }
  | { type: "PING" | "PONG" }
  | ChatFrame
  | AckFrame
  | RevokedFrame
  | GroupChangedFrame
  | { type: "GROUP_NOTIFY"; groupId: string; conversationId: string; msgSeq: string }
  | { type: "GROUP_JOIN_REQUEST"; groupId: string; from: string; serverMsgId: string; body: string }
  | {
      type: "GROUP_JOIN_DECISION";
      groupId: string;
      from: string;
      serverMsgId: string;
      body: "ACCEPTED" | "REJECTED";
    }
  | {
      type: "CONVERSATION_SETTINGS";
      conversationId: string;
      receive: "normal" | "silent" | "blocked";
      pinned: boolean;
      hiddenSeq?: string;
    }
  | { type: "USER_UPDATED"; userId: string; nickname: string; avatar: string; ts: number }
  | { type: "TYPING"; from: string; to?: string; groupId?: string }
  | { type: "RESEND_DONE"; hasMore: boolean };

/** Reads a frame. What is none, or of a kind that a later server made up, is `undefined`. */
export function readFrame(text: unknown): ServerFrame | undefined {
  if (typeof text !== "string") return undefined;
  try {
    const frame: unknown = JSON.parse(text);
    const isFrame = typeof frame === "object" && frame !== null && "type" in frame;
    return isFrame ? (frame as ServerFrame) : undefined;
  } catch {
    return undefined;
  }
}
