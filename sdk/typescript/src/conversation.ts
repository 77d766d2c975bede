import { arrange, latest } from "./arrange.js";
import { GroupReads, type Progress } from "./reads.js";
import { Held } from "./held.js";
import { Prefix } from "./prefix.js";
import { haveSameItems, sameObject } from "./snapshot.js";
import {
  addressOf,
  type Change,
  type ConversationLine,
  type Message,
  type Receive,
} from "./types.js";

/** A head as HTTP tells it. */
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
}

const RECEIVE = ["normal", "silent", "blocked"] as const;

/** One conversation as this device knows it. Pure state: it asks nobody and tells nobody. */
export class Conversation {
  readonly address: { to: string } | { groupId: string };
  held = new Held(0);
  /** What has arrived, and what is said to exist. */
  readonly arrived = new Prefix<Message>(0);
  readonly changes = new Prefix<Change>(0);
  /** Whether it is known where the run of messages starts; until then nothing is a hole. */
  hasBegun = false;
  /** The first place we may see. */
  min = 1;
  name = "";
  avatar = "";
  memberCount: number | undefined;
  pinned = false;
  receive: Receive = "normal";
  active = true;
  /** Its group was dissolved or dismissed. */
  ended = false;
  /** Out of the list until there is a message after this one. */
  hiddenSeq: number | undefined;
  updatedAt = 0;
  /** Ours on their way, and others' without a place. */
  readonly outgoing = new Map<string, Message>();
  readonly previews = new Map<string, Message>();
  /** What had been delivered when this device came: history, no news. */
  oldUpTo = 0;
  /** Whether its name is known. */
  hasInfo = false;
  /** What was told the server, so that it is told once. */
  ackedDelivered = 0;
  ackedRead = 0;
  /** We have read this far for certain, or probably: by an answer from another device of ours. */
  private sureRead = 0;
  private assumedRead = 0;
  private headMax = 0;
  /** Of a group: how far each member has come. */
  readonly reads: GroupReads | undefined;
  private peerDelivered = 0;
  private peerRead = 0;
  /** Taken back before they arrived here. */
  private readonly recalled = new Set<string>();
  /** What was read last, and what it was made of. */
  private listed: { held: Held; version: number; unplaced: Message[]; all: readonly Message[] } | undefined;
  private lined: ConversationLine | undefined;

  constructor(
    readonly id: string,
    private readonly me: string,
    /** About so many messages stay on this device. */
    public keep = Number.POSITIVE_INFINITY,
  ) {
    this.address = addressOf(me, id);
    if ("groupId" in this.address) this.reads = new GroupReads(me);
  }

  /** The run of messages starts after this place. */
  begin(after: number, changeSeq: number): Message[] {
    if (this.hasBegun) return [];
    this.hasBegun = true;
    this.held = new Held(after);
    this.held.readTo(Math.max(this.sureRead, this.assumedRead));
    this.changes.skipTo(changeSeq);
    // What others said may have been taken back before the changes we shall hear of: pulled anew.
    if (changeSeq > 0) this.arrived.forgetEarly((message) => message.mine);
    return this.hold(this.arrived.skipTo(after));
  }

  /** Takes a message and returns those that are now in order, itself or more. */
  take(given: Message): Message[] {
    let message = given;
    this.previews.delete(message.serverMsgId);
    if (message.mine) {
      this.outgoing.delete(message.clientMsgId);
      message = { ...message, ...this.progressAt(message.seq) };
    }
    if (this.recalled.delete(message.serverMsgId)) message = { ...message, ...TAKEN_BACK };
    // A push says whether it speaks to us; of a pulled answer we find out.
    const isAnswer = message.replyTo !== undefined && this.held.find(message.replyTo)?.mine;
    if (isAnswer && !message.mine) message = { ...message, important: true };
    if (!this.hasBegun && message.seq === 1) this.begin(0, 0);
    const ready = this.arrived.add(message.seq, message);
    return this.hasBegun ? this.hold(ready) : [];
  }

  /** Older ones, in order, up to the oldest that is held. */
  takeOlder(older: Message[]): Message[] {
    const fresh = older.map((message) => ({
      ...message,
      ...(this.recalled.has(message.serverMsgId) ? TAKEN_BACK : {}),
      ...(message.mine ? this.progressAt(message.seq) : {}),
    }));
    if (fresh.length > 0) this.held.prepend(fresh);
    this.keep += fresh.length; // somebody wants to see them
    return fresh;
  }

  /** Compares with what the server has; what is now in order, if a new window let it be. */
  hearHead(head: Head): Message[] {
    this.choose(head.is_pinned, head.recv_msg_opt);
    this.active = head.is_active;
    this.ended = head.is_ended;
    this.hiddenSeq = head.is_hidden ? head.max_seq : undefined;
    this.updatedAt = Math.max(this.updatedAt, head.updated_at);
    const ready = this.reopen(head.min_seq, head.min_change_seq);
    this.arrived.expect(head.max_seq);
    this.changes.expect(head.change_seq);
    this.sureRead = Math.max(this.sureRead, head.read_seq);
    this.headMax = Math.max(this.headMax, head.max_seq);
    if (this.assumedRead <= head.max_seq) this.assumedRead = 0; // now we know
    this.held.readTo(Math.max(this.sureRead, this.assumedRead));
    const { max_seq: upTo, read_seq: read, unread_count: unread } = head;
    this.held.hear({ upTo, read, unread });
    this.ackedDelivered = head.delivered_seq;
    this.ackedRead = head.read_seq;
    return ready;
  }

  choose(pinned: boolean, receive: 0 | 1 | 2): void {
    this.pinned = pinned;
    this.receive = RECEIVE[receive];
  }

  get readForSure(): number {
    return this.sureRead;
  }

  /** We have read up to here. */
  readTo(seq: number, isSure = true): void {
    if (!isSure && seq <= this.headMax) return; // there the server has told us
    if (isSure) this.sureRead = Math.max(this.sureRead, seq);
    else this.assumedRead = Math.max(this.assumedRead, seq);
    this.held.readTo(Math.max(this.sureRead, this.assumedRead, this.held.read));
  }

  /** Somebody has received or read up to here; ours that this changes. */
  hearReceipt(kind: "delivered" | "read", seq: number, userId: string): Message[] {
    if (this.reads !== undefined) return this.recount(this.reads.hear(userId, kind, seq) + 1, seq);
    const before = kind === "read" ? this.peerRead : this.peerDelivered;
    if (kind === "read") this.peerRead = Math.max(this.peerRead, seq);
    this.peerDelivered = Math.max(this.peerDelivered, seq);
    return this.recount(before + 1, seq);
  }

  /** Compares our own messages with what receipts say of them; those that change. */
  recount(from = this.held.first, to = this.held.last): Message[] {
    const changed: Message[] = [];
    const last = Math.min(to, this.held.last);
    for (let at = Math.max(from, this.held.first); at <= last; at += 1) {
      const message = this.held.at(at);
      if (message === undefined || !message.mine) continue;
      const now = this.progressAt(at);
      if (message.state === now.state && message.readBy === now.readBy) continue;
      changed.push(this.held.change(at, now) as Message);
    }
    return changed;
  }

  /** It was taken back: the message as it is now, if it is here. */
  recall(serverMsgId: string): Message | undefined {
    const held = this.held.find(serverMsgId);
    if (held?.revoked) return undefined;
    if (held !== undefined) return this.held.change(held.seq, TAKEN_BACK);
    this.recalled.add(serverMsgId);
    for (const early of this.arrived.early()) {
      if (early.serverMsgId !== serverMsgId) continue;
      this.arrived.change(early.seq, (message) => ({ ...message, ...TAKEN_BACK }));
    }
    return undefined;
  }

  /** Applies what happened to the group; what is now in order, if a new window let it be. */
  hearChange(change: Change): Message[] {
    const isMe = change.userIds.includes(this.me);
    switch (change.kind) {
      case "joined":
        this.hasInfo = false; // how many there are now, the server says
        this.reads?.join(change.userIds, change.seq ?? this.held.last + 1);
        if (!isMe) return [];
        this.active = true;
        this.hiddenSeq = undefined;
        return this.reopen(Math.max(this.min, change.seq ?? 1), change.changeSeq);
      case "left":
      case "kicked":
        this.hasInfo = false;
        this.reads?.leave(change.userIds);
        if (isMe) this.active = false;
        return [];
      case "updated":
        this.name = change.group?.name ?? this.name;
        this.avatar = change.group?.avatar ?? this.avatar;
        return [];
      case "dissolved":
      case "dismissed":
        this.active = false;
        this.ended = true;
    }
    return [];
  }

  /** Everything to show, in order: what has a place, then what has none yet. The same until it changes. */
  list(): readonly Message[] {
    const { held, listed } = this;
    const mine = this.arrived.early().filter((message) => message.mine);
    const unplaced = [...mine, ...this.previews.values(), ...this.outgoing.values()];
    const isHeldSame = listed?.held === held && listed.version === held.version;
    if (isHeldSame && haveSameItems(listed.unplaced, unplaced)) return listed.all;
    const all = Object.freeze(arrange(held, unplaced));
    this.listed = { held, version: held.version, unplaced, all };
    return all;
  }

  /** Whether there is anything to it: a name somebody mistyped once is no conversation. */
  get isThere(): boolean {
    return this.hasBegun || this.outgoing.size > 0 || this.previews.size > 0;
  }

  /** Whether it was hidden, and nothing was said since. */
  get isHidden(): boolean {
    if (this.hiddenSeq === undefined || this.arrived.last > this.hiddenSeq) return false;
    return this.outgoing.size === 0 && this.previews.size === 0;
  }

  /** Whether it is in the list. */
  get isListed(): boolean {
    return this.isThere && !this.ended && !this.isHidden;
  }

  /** Its line in the list; the same until it changes. */
  line(): ConversationLine {
    this.lined = sameObject(this.lined, this.describe());
    return this.lined;
  }

  private describe(): ConversationLine {
    const lastMessage = latest(this.held, [...this.previews.values()], [...this.outgoing.values()]);
    const { address, memberCount } = this;
    return {
      id: this.id,
      ...("to" in address
        ? { kind: "single" as const, peerId: address.to }
        : { kind: "group" as const, groupId: address.groupId }),
      name: this.name || ("to" in address ? address.to : address.groupId),
      avatar: this.avatar,
      ...(memberCount !== undefined && { memberCount }),
      unread: this.held.unread,
      mentionUnread: this.held.mentions,
      ...(lastMessage && { lastMessage }),
      pinned: this.pinned,
      receive: this.receive,
      active: this.active,
      ended: this.ended,
      hidden: this.isHidden,
      lastSeq: this.held.last,
      readSeq: this.held.read,
      peerDeliveredSeq: this.peerDelivered,
      peerReadSeq: this.peerRead,
      updatedAt: Math.max(this.updatedAt, lastMessage?.at ?? 0),
    };
  }

  /** How far one of ours at this place has come. */
  progressAt(seq: number): Progress {
    if (this.reads !== undefined) return this.reads.at(seq);
    if (seq <= this.peerRead) return { state: "read" };
    return { state: seq <= this.peerDelivered ? "delivered" : "saved" };
  }

  private hold(ready: Message[]): Message[] {
    for (const message of ready) this.held.append(message);
    return ready;
  }

  /** A new window: we left and came back, and see only what came since. */
  private reopen(min: number, minChange: number): Message[] {
    this.min = min;
    this.changes.skipTo(minChange - 1);
    if (!this.hasBegun || min <= this.held.first) return [];
    const ready = this.arrived.skipTo(min - 1);
    this.held.cutBefore(min);
    return this.hold(ready);
  }
}

const TAKEN_BACK = { revoked: true, body: "", extra: undefined, mentions: undefined } as const;
