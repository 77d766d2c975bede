import type { Acks } from "./acks.js";
import { Conversation, type Head } from "./conversation.js";
import type { Emitter } from "./events.js";
import type { Entry } from "./lane.js";
import { fromEntry, fromInfo, type MessageInfo } from "./messages.js";
import type { Outbox } from "./outbox.js";
import type { Change, Events, Message } from "./types.js";

/** A line of the server's list. */
export interface ConversationInfo {
  conversation_id: string;
  peer_nickname?: string;
  peer_avatar?: string;
  peer_delivered_seq?: number;
  peer_read_seq?: number;
  group_name?: string;
  group_avatar?: string;
  member_count?: number;
  mention_unread_count: number;
  max_seq: number;
  read_seq: number;
  last_message?: MessageInfo;
}

/** Who mends what the inbox finds missing. */
export interface Mender {
  /** There is a hole among the messages or the changes. */
  hole(conversation: Conversation): void;
  /** Something is known too little about. */
  askHeads(): void;
  /** Something happened. */
  active(): void;
}

/** Puts everything that arrives, pushed or pulled, into its conversation, and tells the app once. */
export class Inbox {
  readonly conversations = new Map<string, Conversation>();
  mender: Mender = { hole() {}, askHeads() {}, active() {} };
  /** Told as sending or as a preview: when they get their place that is no new message. */
  private readonly shown = new Set<string>();
  private readonly touched = new Set<Conversation>();

  constructor(
    private readonly me: string,
    private readonly events: Emitter<Events>,
    private readonly outbox: Outbox,
    private readonly acks: Acks,
    private readonly keep: number,
  ) {}

  open(id: string): Conversation {
    let conversation = this.conversations.get(id);
    if (conversation === undefined) {
      conversation = new Conversation(id, this.me, this.keep);
      this.conversations.set(id, conversation);
    }
    return conversation;
  }

  /** Something of ours is on its way. */
  sending(entry: Entry): Message {
    const message = fromEntry(entry, this.me);
    const conversation = this.open(entry.conversationId);
    conversation.outgoing.set(entry.clientMsgId, message);
    this.touch(conversation);
    return message;
  }

  /** Takes a message that has its place, wherever it comes from. */
  take(message: Message): void {
    const conversation = this.open(message.conversationId);
    const isShown =
      (message.mine && conversation.outgoing.has(message.clientMsgId)) ||
      conversation.previews.has(message.serverMsgId);
    if (message.mine) this.settle(conversation, message);
    const isNew = !conversation.hasBegun || message.seq > conversation.arrived.last;
    if (!isNew && !isShown) return;
    const wasListed = conversation.isListed;
    const ready = conversation.take(message);
    if (isShown && isNew) this.shown.add(message.serverMsgId);
    if (isShown && !ready.some((one) => one.serverMsgId === message.serverMsgId)) {
      // It waits for others before it, or is older than all here.
      const progress = message.mine ? conversation.progressAt(message.seq) : {};
      this.events.emit("update", { ...message, ...progress });
    }
    for (const one of ready) this.tell(conversation, one);
    this.makeRoom(conversation);
    this.mender.active();
    // With its first message a conversation has somebody's name, too; and so has one that was hidden.
    const isFirst = (message.seq === 1 || !wasListed) && !conversation.hasInfo;
    if (!conversation.hasBegun || isFirst) this.mender.askHeads();
    else if (conversation.arrived.hole() !== undefined) this.mender.hole(conversation);
    this.touch(conversation);
  }

  takeChange(change: Change): void {
    const conversation = this.open(change.conversationId);
    // A recall does not wait for its turn: the text has to go.
    if (change.kind === "recalled") this.recall(conversation, change.serverMsgId ?? "");
    for (const one of conversation.changes.add(change.changeSeq, change)) {
      const ready = conversation.hearChange(one);
      this.events.emit("change", one);
      for (const message of ready) this.tell(conversation, message);
      if (PEOPLE.has(one.kind)) this.recount(conversation);
    }
    this.mender.active();
    if (!conversation.hasBegun) this.mender.askHeads();
    else if (conversation.changes.hole() !== undefined) this.mender.hole(conversation);
    this.touch(conversation);
  }

  recall(conversation: Conversation, serverMsgId: string): void {
    const recalled = conversation.recall(serverMsgId);
    if (recalled !== undefined) this.events.emit("update", recalled);
    this.touch(conversation);
  }

  /** A preview that is not saved. */
  drop(conversation: Conversation, preview: Message): void {
    const { conversationId, clientMsgId, serverMsgId } = preview;
    conversation.previews.delete(serverMsgId);
    this.events.emit("removed", { conversationId, clientMsgId, serverMsgId });
    this.touch(conversation);
  }

  /** What becomes of previews nobody tells us now; those that are saved come as messages. */
  offline(): void {
    for (const conversation of this.conversations.values()) {
      for (const preview of [...conversation.previews.values()]) this.drop(conversation, preview);
    }
  }

  /** Compares with what the server has; for the first time when the device has just come. */
  hearHeads(heads: Head[], isFirst: boolean): void {
    for (const head of heads) {
      const conversation = this.open(head.conversation_id);
      const begun = conversation.hasBegun ? [] : begin(conversation, head, isFirst);
      for (const one of [...begun, ...conversation.hearHead(head)]) this.tell(conversation, one);
      this.acks.soon(conversation);
      this.mender.hole(conversation);
      this.touch(conversation);
    }
  }

  hearInfos(infos: ConversationInfo[]): void {
    for (const info of infos) {
      const conversation = this.open(info.conversation_id);
      conversation.hasInfo = true;
      conversation.name = info.peer_nickname ?? info.group_name ?? conversation.name;
      conversation.avatar = info.peer_avatar ?? info.group_avatar ?? conversation.avatar;
      conversation.memberCount = info.member_count ?? conversation.memberCount;
      if (info.peer_delivered_seq !== undefined) {
        this.receipt(conversation, "delivered", info.peer_delivered_seq);
      }
      if (info.peer_read_seq !== undefined) this.receipt(conversation, "read", info.peer_read_seq);
      const last = info.last_message;
      if (conversation.hasBegun && last !== undefined && conversation.receive !== "blocked") {
        if (last.seq === conversation.arrived.last + 1) this.take(fromInfo(last, this.me));
        else this.expect(conversation, last.seq);
      }
      const { max_seq: upTo, read_seq: read, mention_unread_count: unread } = info;
      conversation.held.hearMentions({ upTo, read, unread });
      this.touch(conversation);
    }
  }

  /** The line of a conversation changed; told once for many changes. */
  touch(conversation: Conversation): void {
    this.touched.add(conversation);
    if (this.touched.size > 1) return;
    queueMicrotask(() => {
      const touched = [...this.touched];
      this.touched.clear();
      for (const one of touched) if (one.isThere) this.events.emit("conversation", one.line());
    });
  }

  /** There is something up to this place. */
  expect(conversation: Conversation, seq: number): void {
    conversation.arrived.expect(seq);
    if (!conversation.hasBegun) this.mender.askHeads();
    else this.mender.hole(conversation);
  }

  /** One of ours has its place: it leaves the outbox, and what came before it is read. */
  private settle(conversation: Conversation, message: Message): void {
    const isFromHere = this.outbox.saved(conversation.id, message.clientMsgId) !== undefined;
    conversation.readTo(message.seq, isFromHere);
    if (isFromHere) conversation.ackedRead = Math.max(conversation.ackedRead, message.seq);
  }

  private tell(conversation: Conversation, message: Message): void {
    const isShown = this.shown.delete(message.serverMsgId);
    if (isShown) this.events.emit("update", message);
    else if (message.seq > conversation.oldUpTo) this.events.emit("message", message);
    if (message.mine) return;
    this.acks.soon(conversation);
    // Whoever answers has read what came before.
    this.receipt(conversation, "read", message.seq, message.from);
  }

  /** Lets go of the oldest now and then. */
  private makeRoom({ held, keep }: Conversation): void {
    if (held.all.length > keep * 1.2) held.trim(keep);
  }

  /** The others have received or read up to here. */
  receipt(conversation: Conversation, kind: "delivered" | "read", seq: number, userId = ""): void {
    for (const message of conversation.hearReceipt(kind, seq, userId)) this.events.emit("update", message);
  }

  /** Who has to have read our messages is others now, or how far they are is known anew. */
  recount(conversation: Conversation): void {
    for (const message of conversation.recount()) this.events.emit("update", message);
    this.touch(conversation);
  }
}

/** Changes of who is in a group. */
const PEOPLE: ReadonlySet<Change["kind"]> = new Set(["joined", "left", "kicked"]);

/** A conversation that began while we were here is taken from its beginning, up to this length. */
const SHORT = 200;

/**
 * Where a conversation starts on a device that has just come: with what nobody has received yet, and
 * at least with its last message. What is older is history, loaded when somebody looks.
 */
function begin(conversation: Conversation, head: Head, isFirst: boolean): Message[] {
  const start = head.min_seq - 1;
  const isAllNews = !isFirst && head.max_seq - start <= SHORT;
  conversation.oldUpTo = isAllNews ? start : head.delivered_seq;
  const known = isAllNews ? start : Math.min(head.delivered_seq, head.max_seq - 1);
  const hasNoChanges = head.delivered_seq <= start && head.change_seq - head.min_change_seq < SHORT;
  const changeSeq = isAllNews || hasNoChanges ? head.min_change_seq - 1 : head.change_seq;
  return conversation.begin(Math.max(start, known), changeSeq);
}
