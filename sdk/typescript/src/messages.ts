import { camelName, toCamel } from "./casing.js";
import type { Range } from "./contiguous.js";
import type { ChatFrame, GroupChangedFrame, MessageType, RevokedFrame } from "./frames.js";
import type { GroupProfile, Role } from "./groups.js";
import type { OutboxEntry } from "./lane.js";
import type { Change, Message } from "./types.js";

/** A message, as HTTP returns it. */
export interface MessageInfo {
  server_msg_id: string;
  client_msg_id: string;
  conversation_id: string;
  seq: number;
  sender_id: string;
  msg_type: number;
  content: Record<string, string>;
  extra?: Record<string, string>;
  mentions?: string[];
  reply_to_server_msg_id?: string;
  send_at: number;
  recall_at?: number;
}

/** A page of messages, as HTTP returns it. */
export interface MessagesPage {
  messages: MessageInfo[];
  max_seq: number;
  has_more: boolean;
  /** Seqs of the page whose messages cannot be read any more. */
  damaged?: Range[];
}

/** A change, as HTTP returns it. */
export interface ChangeInfo {
  conversation_id: string;
  change_seq: number;
  kind: string;
  operator_id: string;
  at: number;
  server_msg_id?: string;
  seq?: number;
  from_seq?: number;
  user_id?: string;
  user_ids?: string[];
  role?: Role;
  muted_until?: number;
  on?: boolean;
  group?: Record<string, string>;
}

const TYPES: Record<number, MessageType> = {
  1: "TEXT",
  2: "IMAGE",
  3: "VIDEO",
  4: "AUDIO",
  5: "FILE",
  100: "CUSTOM",
};

/** A message from a pushed frame. */
export function fromFrame(frame: ChatFrame, me: string): Message {
  const isMine = frame.from === me;
  const isPreview = frame.msgSeq === undefined;
  return {
    conversationId: frame.conversationId,
    clientMsgId: frame.clientMsgId,
    serverMsgId: frame.serverMsgId,
    seq: Number(frame.msgSeq ?? 0),
    from: frame.from,
    isMine,
    type: frame.msgType ?? "TEXT",
    body: frame.body,
    ...(frame.extra && { extra: frame.extra }),
    ...(frame.mentions && { mentions: frame.mentions }),
    ...(frame.replyToServerMsgId && { replyTo: frame.replyToServerMsgId }),
    isImportant: frame.important === true,
    isRecalled: frame.revoked === true,
    at: frame.ts,
    state: isPreview ? "preview" : isMine ? "saved" : "received",
  };
}

/** A message from a pull. */
export function fromInfo(info: MessageInfo, me: string): Message {
  const isMine = info.sender_id === me;
  const speaksToMe = info.mentions?.some((who) => who === me || who === "@all") ?? false;
  return {
    conversationId: info.conversation_id,
    clientMsgId: info.client_msg_id,
    serverMsgId: info.server_msg_id,
    seq: info.seq,
    from: info.sender_id,
    isMine,
    type: TYPES[info.msg_type] ?? "CUSTOM",
    body: Object.values(info.content)[0] ?? "",
    ...(info.extra && { extra: info.extra }),
    ...(info.mentions && { mentions: info.mentions }),
    ...(info.reply_to_server_msg_id && { replyTo: info.reply_to_server_msg_id }),
    isImportant: !isMine && speaksToMe,
    isRecalled: info.recall_at !== undefined,
    at: info.send_at,
    state: isMine ? "saved" : "received",
  };
}

/** The messages of a page in seq order, with a placeholder for each that the server cannot read any more. */
export function fromPage(page: MessagesPage, conversationId: string, me: string): Message[] {
  const messages = page.messages.map((info) => fromInfo(info, me));
  for (const { from, to } of page.damaged ?? []) {
    const before = messages.filter(({ seq }) => seq < from).at(-1) ?? messages[0];
    for (let seq = from; seq <= to; seq += 1) messages.push(damagedMessage(conversationId, seq, before?.at ?? 0));
  }
  return messages.sort((a, b) => a.seq - b.seq);
}

function damagedMessage(conversationId: string, seq: number, at: number): Message {
  return {
    conversationId,
    clientMsgId: "",
    serverMsgId: "",
    seq,
    from: "",
    isMine: false,
    type: "CUSTOM",
    body: "",
    isImportant: false,
    isRecalled: false,
    isDamaged: true,
    at,
    state: "received",
  };
}

/** A message from an outbox entry. */
export function fromEntry(entry: OutboxEntry, me: string): Message {
  return {
    conversationId: entry.conversationId,
    clientMsgId: entry.clientMsgId,
    serverMsgId: "",
    seq: 0,
    from: me,
    isMine: true,
    type: entry.type,
    body: entry.body,
    ...(entry.extra && { extra: entry.extra }),
    ...(entry.mentions && { mentions: entry.mentions }),
    ...(entry.replyTo !== undefined && { replyTo: entry.replyTo }),
    isImportant: false,
    isRecalled: false,
    at: entry.at,
    state: entry.reason === undefined ? "sending" : "refused",
    ...(entry.reason && { reason: entry.reason }),
    ...(entry.after !== undefined && { after: entry.after }),
  };
}

function kindOf(wire: string): Change["kind"] {
  return camelName(wire) as Change["kind"];
}

/** A change from a pushed frame. */
export function changeFromFrame(frame: RevokedFrame | GroupChangedFrame): Change {
  const base = {
    conversationId: frame.conversationId,
    changeSeq: Number(frame.changeSeq),
    by: frame.from,
    at: frame.ts,
  };
  if (frame.type === "MESSAGE_REVOKED") {
    const { serverMsgId, msgSeq } = frame;
    return { ...base, kind: "recalled", userIds: [], serverMsgId, seq: Number(msgSeq) };
  }
  return {
    ...base,
    kind: kindOf(frame.event),
    userIds: frame.userIds ?? (frame.userId === undefined ? [] : [frame.userId]),
    ...(frame.msgSeq !== undefined && { seq: Number(frame.msgSeq) }),
    ...(frame.role && { role: frame.role }),
    ...(frame.mutedUntil !== undefined && { mutedUntil: frame.mutedUntil }),
    ...(frame.on !== undefined && { isMuted: frame.on }),
    ...(frame.group && { group: toCamel<GroupProfile>(frame.group) }),
  };
}

/** A change from a pull. */
export function changeFromInfo(info: ChangeInfo): Change {
  const seq = info.seq ?? info.from_seq;
  return {
    conversationId: info.conversation_id,
    changeSeq: info.change_seq,
    kind: kindOf(info.kind),
    by: info.operator_id,
    at: info.at,
    userIds: info.user_ids ?? (info.user_id === undefined ? [] : [info.user_id]),
    ...(seq !== undefined && { seq }),
    ...(info.server_msg_id !== undefined && { serverMsgId: info.server_msg_id }),
    ...(info.role && { role: info.role }),
    ...(info.muted_until !== undefined && { mutedUntil: info.muted_until }),
    ...(info.on !== undefined && { isMuted: info.on }),
    ...(info.group && { group: toCamel<GroupProfile>(info.group) }),
  };
}
