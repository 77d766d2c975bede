import type { Reason } from "./codes.js";

/** The type of a message. */
export type MessageType = "TEXT" | "IMAGE" | "VIDEO" | "AUDIO" | "FILE" | "CUSTOM";

/** The limits of the server, from `AUTH_OK`; a rate of zero is no limit. */
export interface Limits {
  frameBytesMax: number;
  textCharsMax: number;
  connectionFramesPerSecond: number;
  userSendsPerSecond: number;
  userRequestsPerSecond: number;
  idleTimeoutMs: number;
  groupMembersMax: number;
  mentionsMax: number;
  /** How long a sender may recall a message. */
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

/** Frames from the client. */
export type ClientFrame =
  | { type: "AUTH" | "REAUTH"; token: string }
  | { type: "PING" | "PONG" }
  | ({ type: "SINGLE_CHAT"; to: string } & ChatFields)
  | ({ type: "GROUP_CHAT"; groupId: string } & ChatFields)
  | { type: "ACK"; ackType: "delivered" | "read"; serverMsgId: string; msgSeq: string }
  | { type: "TYPING"; to?: string; groupId?: string }
  | { type: "RESEND"; cursors?: Record<string, string> };

/** A message. A preview has no seq yet. */
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

/** The outcome of a message of ours, or a receipt. */
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

/** Frames from the server. */
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

/** Parses a frame; `undefined` if it is none. */
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
