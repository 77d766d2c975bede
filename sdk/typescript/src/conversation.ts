import { arrange, latest } from "./arrange.js";
import { GroupReads, type MessageProgress } from "./reads.js";
import { MessageWindow } from "./messageWindow.js";
import { Contiguous } from "./contiguous.js";
import { haveSameItems, sameObject } from "./snapshot.js";
import {
  addressOf,
  type Change,
  type ConversationSummary,
  type Message,
  type Receive,
} from "./types.js";

/** A head of a conversation, as HTTP returns it. */
export interface Head {
  conversation_id: string;
  min_seq: number;
  max_seq: number;
  delivered_seq: number;
  read_seq: number;
  min_change_seq: number;
  change_seq: number;
  unread_count: number;
  is_active: boolean;
  is_ended: boolean;
  is_hidden: boolean;
  is_pinned: boolean;
  recv_msg_opt: 0 | 1 | 2;
  updated_at: number;
  /** When the user joined; absent in a private conversation. */
  joined_at?: number;
}

const RECEIVE = ["normal", "silent", "blocked"] as const;

/** The state of one conversation on this device. Pure state without I/O or events. */
export class Conversation {
  readonly address: { to: string } | { groupId: string };
  messages = new MessageWindow(0);
  /** Messages that have arrived, and up to which seq they exist; the same for changes. */
  readonly arrived = new Contiguous<Message>(0);
  readonly changes = new Contiguous<Change>(0);
  /** Whether the start of the message window is set; until then a missing seq is no gap. */
  hasBegun = false;
  /** The first seq the user may see. */
  minSeq = 1;
  name = "";
  avatar = "";
  memberCount: number | undefined;
  isPinned = false;
  receive: Receive = "normal";
  isActive = true;
  /** The group was dissolved or dismissed. */
  isEnded = false;
  /** Whether the server has told its settings: a private conversation has them before its first message. */
  hasSettings = false;
  /** Hidden from the list until there is a message after this seq. */
  hiddenSeq: number | undefined;
  updatedAt = 0;
  /** Own messages in the outbox, and previews of others; neither has a seq. */
  readonly outgoing = new Map<string, Message>();
  readonly previews = new Map<string, Message>();
  /** Messages up to this seq were delivered before this device signed in: history, no events. */
  historyUpTo = 0;
  /** Whether name, avatar and member count are loaded. */
  hasInfo = false;
  /** Cursors the server has, so that each ACK is sent once. */
  ackedDelivered = 0;
  ackedRead = 0;
  /** Our read cursor, confirmed; and assumed, because another device of ours sent a message. */
  private confirmedReadSeq = 0;
  private assumedRead = 0;
  private headMax = 0;
  /** In a group: the cursors of the members. */
  readonly reads: GroupReads | undefined;
  private peerDelivered = 0;
  private peerRead = 0;
  /** Ids of messages recalled before they arrived. */
  private readonly recalled = new Set<string>();
  /** The last result of `list` and what it was made of, and the last summary: returned again while unchanged. */
  private lastList: { messages: MessageWindow; version: number; unsequenced: Message[]; all: readonly Message[] } | undefined;
  private lastSummary: ConversationSummary | undefined;

  constructor(
    readonly id: string,
    private readonly me: string,
    /** About this many messages stay in memory. */
    public keep = Number.POSITIVE_INFINITY,
  ) {
    this.address = addressOf(me, id);
    if ("groupId" in this.address) this.reads = new GroupReads(me);
  }

  /** Sets the start of the message window: after this seq. */
  begin(after: number, changeSeq: number): Message[] {
    if (this.hasBegun) return [];
    this.hasBegun = true;
    this.messages = new MessageWindow(after);
    this.messages.readTo(Math.max(this.confirmedReadSeq, this.assumedRead));
    this.changes.skipTo(changeSeq);
    // Buffered messages of others may have been recalled by a change before `changeSeq`, so they are pulled
    // again.
    if (changeSeq > 0) this.arrived.retainBuffered((message) => message.isMine);
    return this.appendAll(this.arrived.skipTo(after));
  }

  /** Adds a message and returns those that are now contiguous. */
  addMessage(given: Message): Message[] {
    let message = given;
    this.previews.delete(message.serverMsgId);
    if (message.isMine) {
      this.outgoing.delete(message.clientMsgId);
      message = { ...message, ...this.progressAt(message.seq) };
    }
    if (this.recalled.delete(message.serverMsgId)) message = { ...message, ...RECALLED_FIELDS };
    // A push says whether it is important; for a pulled reply it is derived here.
    const isAnswer = message.replyTo !== undefined && this.messages.find(message.replyTo)?.isMine;
    if (isAnswer && !message.isMine) message = { ...message, isImportant: true };
    if (!this.hasBegun && message.seq === 1) this.begin(0, 0);
    const ready = this.arrived.add(message.seq, message);
    return this.hasBegun ? this.appendAll(ready) : [];
  }

  /** Prepends older messages, which end before the oldest one here. */
  prependOlder(older: Message[]): Message[] {
    const fresh = older.map((message) => ({
      ...message,
      ...(this.recalled.has(message.serverMsgId) ? RECALLED_FIELDS : {}),
      ...(message.isMine ? this.progressAt(message.seq) : {}),
    }));
    if (fresh.length > 0) this.messages.prepend(fresh);
    this.keep += fresh.length; // the user loaded them, so they stay in memory
    return fresh;
  }

  /** Applies a head of the server; returns messages that a new visibility window made contiguous. */
  applyHead(head: Head): Message[] {
    this.setSettings(head.is_pinned, head.recv_msg_opt);
    this.isActive = head.is_active;
    this.isEnded = head.is_ended;
    this.hiddenSeq = head.is_hidden ? head.max_seq : undefined;
    this.updatedAt = Math.max(this.updatedAt, head.updated_at);
    const ready = this.reopen(head.min_seq, head.min_change_seq);
    this.arrived.expect(head.max_seq);
    this.changes.expect(head.change_seq);
    this.confirmedReadSeq = Math.max(this.confirmedReadSeq, head.read_seq);
    this.headMax = Math.max(this.headMax, head.max_seq);
    if (this.assumedRead <= head.max_seq) this.assumedRead = 0; // the server has confirmed it
    this.messages.readTo(Math.max(this.confirmedReadSeq, this.assumedRead));
    const { max_seq: upTo, read_seq: read, unread_count: count } = head;
    this.messages.setServerUnread({ upTo, read, count });
    this.ackedDelivered = head.delivered_seq;
    this.ackedRead = head.read_seq;
    return ready;
  }

  setSettings(isPinned: boolean, receive: 0 | 1 | 2): void {
    this.hasSettings = true;
    this.isPinned = isPinned;
    this.receive = RECEIVE[receive];
  }

  get confirmedRead(): number {
    return this.confirmedReadSeq;
  }

  /** Moves our read cursor, confirmed or assumed. */
  readTo(seq: number, isConfirmed = true): void {
    if (!isConfirmed && seq <= this.headMax) return; // the head has confirmed the cursor up to there
    if (isConfirmed) this.confirmedReadSeq = Math.max(this.confirmedReadSeq, seq);
    else this.assumedRead = Math.max(this.assumedRead, seq);
    this.messages.readTo(Math.max(this.confirmedReadSeq, this.assumedRead, this.messages.read));
  }

  /** Applies a receipt; returns the own messages it changes. */
  applyReceipt(kind: "delivered" | "read", seq: number, userId: string): Message[] {
    if (this.reads !== undefined) return this.recount(this.reads.applyReceipt(userId, kind, seq) + 1, seq);
    const before = kind === "read" ? this.peerRead : this.peerDelivered;
    if (kind === "read") this.peerRead = Math.max(this.peerRead, seq);
    this.peerDelivered = Math.max(this.peerDelivered, seq);
    return this.recount(before + 1, seq);
  }

  /** Recalculates state and `readBy` of our messages; returns those that changed. */
  recount(from = this.messages.first, to = this.messages.last): Message[] {
    const changed: Message[] = [];
    const last = Math.min(to, this.messages.last);
    for (let at = Math.max(from, this.messages.first); at <= last; at += 1) {
      const message = this.messages.at(at);
      if (message === undefined || !message.isMine) continue;
      const now = this.progressAt(at);
      if (message.state === now.state && message.readBy === now.readBy) continue;
      changed.push(this.messages.update(at, now) as Message);
    }
    return changed;
  }

  /** Recalls a message; returns the changed one if it is here. */
  recall(serverMsgId: string): Message | undefined {
    const message = this.messages.find(serverMsgId);
    if (message?.isRecalled) return undefined;
    if (message !== undefined) return this.messages.update(message.seq, RECALLED_FIELDS);
    this.recalled.add(serverMsgId);
    for (const early of this.arrived.buffered()) {
      if (early.serverMsgId !== serverMsgId) continue;
      this.arrived.updateBuffered(early.seq, (message) => ({ ...message, ...RECALLED_FIELDS }));
    }
    return undefined;
  }

  /** Applies a change of the group; returns messages that a new visibility window made contiguous. */
  applyChange(change: Change): Message[] {
    const isMe = change.userIds.includes(this.me);
    switch (change.kind) {
      case "joined":
        this.hasInfo = false; // reload: the member count changed
        this.reads?.join(change.userIds, change.seq ?? this.messages.last + 1);
        if (!isMe) return [];
        this.isActive = true;
        this.hiddenSeq = undefined;
        return this.reopen(Math.max(this.minSeq, change.seq ?? 1), change.changeSeq);
      case "left":
      case "kicked":
        this.hasInfo = false;
        this.reads?.leave(change.userIds);
        if (isMe) this.isActive = false;
        return [];
      case "updated":
        this.name = change.group?.name ?? this.name;
        this.avatar = change.group?.avatar ?? this.avatar;
        return [];
      case "dissolved":
      case "dismissed":
        this.isActive = false;
        this.isEnded = true;
    }
    return [];
  }

  /** All messages in display order: those with a seq, then those without. The same array until it changes. */
  list(): readonly Message[] {
    const { messages, lastList } = this;
    const mine = this.arrived.buffered().filter((message) => message.isMine);
    const unsequenced = [...mine, ...this.previews.values(), ...this.outgoing.values()];
    const isSameWindow = lastList?.messages === messages && lastList.version === messages.version;
    if (isSameWindow && haveSameItems(lastList.unsequenced, unsequenced)) return lastList.all;
    const all = Object.freeze(arrange(messages, unsequenced));
    this.lastList = { messages, version: messages.version, unsequenced, all };
    return all;
  }

  /** Whether it has any messages: looking up a mistyped user id must not create a visible conversation. */
  get hasContent(): boolean {
    return this.hasBegun || this.outgoing.size > 0 || this.previews.size > 0;
  }

  /** Whether it was hidden and has no newer message. */
  get isHidden(): boolean {
    if (this.hiddenSeq === undefined || this.arrived.last > this.hiddenSeq) return false;
    return this.outgoing.size === 0 && this.previews.size === 0;
  }

  /** Whether it is in the list. */
  get isListed(): boolean {
    return this.hasContent && !this.isEnded && !this.isHidden;
  }

  /** Whether events tell of it. One without messages is in no list, but its settings may be shown. */
  get isAnnounced(): boolean {
    return this.hasContent || this.hasSettings;
  }

  /** Its summary; the same object until it changes. */
  summary(): ConversationSummary {
    this.lastSummary = sameObject(this.lastSummary, this.describe());
    return this.lastSummary;
  }

  private describe(): ConversationSummary {
    const lastMessage = latest(this.messages, [...this.previews.values()], [...this.outgoing.values()]);
    const { address, memberCount } = this;
    return {
      id: this.id,
      ...("to" in address
        ? { kind: "single" as const, peerId: address.to }
        : { kind: "group" as const, groupId: address.groupId }),
      name: this.name || ("to" in address ? address.to : address.groupId),
      avatar: this.avatar,
      ...(memberCount !== undefined && { memberCount }),
      unread: this.messages.unread,
      mentionUnread: this.messages.mentions,
      ...(lastMessage && { lastMessage }),
      isPinned: this.isPinned,
      receive: this.receive,
      isActive: this.isActive,
      isEnded: this.isEnded,
      isHidden: this.isHidden,
      lastSeq: this.messages.last,
      readSeq: this.messages.read,
      peerDeliveredSeq: this.peerDelivered,
      peerReadSeq: this.peerRead,
      updatedAt: Math.max(this.updatedAt, lastMessage?.at ?? 0),
    };
  }

  /** The progress of our message at this seq. */
  progressAt(seq: number): MessageProgress {
    if (this.reads !== undefined) return this.reads.at(seq);
    if (seq <= this.peerRead) return { state: "read" };
    return { state: seq <= this.peerDelivered ? "delivered" : "saved" };
  }

  private appendAll(ready: Message[]): Message[] {
    for (const message of ready) this.messages.append(message);
    return ready;
  }

  /** Opens a new visibility window: the user left the group and rejoined, and sees only what came since. */
  private reopen(min: number, minChange: number): Message[] {
    this.minSeq = min;
    this.changes.skipTo(minChange - 1);
    if (!this.hasBegun || min <= this.messages.first) return [];
    const ready = this.arrived.skipTo(min - 1);
    this.messages.cutBefore(min);
    return this.appendAll(ready);
  }
}

const RECALLED_FIELDS = { isRecalled: true, body: "", extra: undefined, mentions: undefined } as const;
