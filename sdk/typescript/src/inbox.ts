import type { Acks } from "./acks.js";
import { Conversation, type Head } from "./conversation.js";
import type { Emitter } from "./events.js";
import type { OutboxEntry } from "./lane.js";
import { fromEntry, fromInfo, type MessageInfo } from "./messages.js";
import type { Outbox } from "./outbox.js";
import type { OwnJoins } from "./ownJoins.js";
import type { Change, Events, Message } from "./types.js";

/** An item of `/conversation/all`, as HTTP returns it. */
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

/** Fetches what the inbox finds missing. */
export interface GapFiller {
  /** Schedules a pull if messages or changes are missing. */
  scheduleFill(conversation: Conversation): void;
  /** Schedules a comparison of heads. */
  scheduleHeads(): void;
  /** Records activity: heads are compared once it has become quiet. */
  noteActivity(): void;
}

/** Puts pushed and pulled messages into their conversations and emits each once. */
export class Inbox {
  readonly conversations = new Map<string, Conversation>();
  gapFiller: GapFiller = { scheduleFill() {}, scheduleHeads() {}, noteActivity() {} };
  /** Ids of messages emitted as outgoing or as previews: getting a seq is an update, not a new message. */
  private readonly alreadyShown = new Set<string>();
  private readonly touched = new Set<Conversation>();

  constructor(
    private readonly me: string,
    private readonly events: Emitter<Events>,
    private readonly outbox: Outbox,
    private readonly acks: Acks,
    private readonly joins: OwnJoins,
    private readonly keep: number,
  ) {}

  getOrCreate(id: string): Conversation {
    let conversation = this.conversations.get(id);
    if (conversation === undefined) {
      conversation = new Conversation(id, this.me, this.keep);
      this.conversations.set(id, conversation);
    }
    return conversation;
  }

  /** Shows an outbox entry as an outgoing or refused message. */
  showOutgoing(entry: OutboxEntry): Message {
    const message = fromEntry(entry, this.me);
    const conversation = this.getOrCreate(entry.conversationId);
    conversation.outgoing.set(entry.clientMsgId, message);
    this.touch(conversation);
    return message;
  }

  /** Receives a message with a seq, pushed or pulled. */
  receive(message: Message): void {
    const conversation = this.getOrCreate(message.conversationId);
    const isShown =
      (message.isMine && conversation.outgoing.has(message.clientMsgId)) ||
      conversation.previews.has(message.serverMsgId);
    if (message.isMine) this.completeOutgoing(conversation, message);
    const isNew = !conversation.hasBegun || message.seq > conversation.arrived.last;
    if (!isNew && !isShown) return;
    const wasListed = conversation.isListed;
    const ready = conversation.addMessage(message);
    if (isShown && isNew) this.alreadyShown.add(message.serverMsgId);
    if (isShown && !ready.some((one) => one.serverMsgId === message.serverMsgId)) {
      // It waits behind a gap, or is older than the messages on this device.
      const progress = message.isMine ? conversation.progressAt(message.seq) : {};
      this.events.emit("update", { ...message, ...progress });
    }
    for (const one of ready) this.emitMessage(conversation, one);
    this.trimMessages(conversation);
    this.gapFiller.noteActivity();
    // A conversation that is new or was hidden needs its name, too.
    const isFirst = (message.seq === 1 || !wasListed) && !conversation.hasInfo;
    if (!conversation.hasBegun || isFirst) this.gapFiller.scheduleHeads();
    else if (conversation.arrived.gap() !== undefined) this.gapFiller.scheduleFill(conversation);
    this.touch(conversation);
  }

  receiveChange(change: Change): void {
    const conversation = this.getOrCreate(change.conversationId);
    // A recall is applied at once, also beyond a gap: the text must go.
    if (change.kind === "recalled") this.recall(conversation, change.serverMsgId ?? "");
    for (const one of conversation.changes.add(change.changeSeq, change)) {
      const ready = conversation.applyChange(one);
      this.joins.note(one);
      this.events.emit("change", one);
      for (const message of ready) this.emitMessage(conversation, message);
      if (MEMBERSHIP_CHANGES.has(one.kind)) this.recount(conversation);
    }
    this.gapFiller.noteActivity();
    if (!conversation.hasBegun) this.gapFiller.scheduleHeads();
    else if (conversation.changes.gap() !== undefined) this.gapFiller.scheduleFill(conversation);
    this.touch(conversation);
  }

  recall(conversation: Conversation, serverMsgId: string): void {
    const recalled = conversation.recall(serverMsgId);
    if (recalled !== undefined) this.events.emit("update", recalled);
    this.touch(conversation);
  }

  /** Removes a preview that was not saved. */
  dropPreview(conversation: Conversation, preview: Message): void {
    const { conversationId, clientMsgId, serverMsgId } = preview;
    conversation.previews.delete(serverMsgId);
    this.events.emit("removed", { conversationId, clientMsgId, serverMsgId });
    this.touch(conversation);
  }

  /** Drops all previews: after a lost connection no ACK resolves them. Saved ones come as messages. */
  dropPreviews(): void {
    for (const conversation of this.conversations.values()) {
      for (const preview of [...conversation.previews.values()]) this.dropPreview(conversation, preview);
    }
  }

  /**
   * Applies the heads of the server; `isFirst` right after sign-in, before the first connection. Returns the
   * heads of conversations that are new on this device and whose earlier changes it skipped.
   */
  applyHeads(heads: Head[], isFirst: boolean): Head[] {
    const skipped: Head[] = [];
    for (const head of heads) {
      const conversation = this.getOrCreate(head.conversation_id);
      if (head.max_seq === 0 && "to" in conversation.address) {
        conversation.setSettings(head.is_pinned, head.recv_msg_opt); // there is no message to begin with
        this.touch(conversation);
        continue;
      }
      const isNew = !conversation.hasBegun;
      const begun = isNew ? beginFromHead(conversation, head, isFirst) : [];
      if (isNew && conversation.changes.last >= head.change_seq) skipped.push(head);
      for (const one of [...begun, ...conversation.applyHead(head)]) this.emitMessage(conversation, one);
      this.acks.schedule(conversation);
      this.gapFiller.scheduleFill(conversation);
      this.touch(conversation);
    }
    return skipped;
  }

  applyInfos(infos: ConversationInfo[]): void {
    for (const info of infos) {
      const conversation = this.getOrCreate(info.conversation_id);
      conversation.hasInfo = true;
      conversation.name = info.peer_nickname ?? info.group_name ?? conversation.name;
      conversation.avatar = info.peer_avatar ?? info.group_avatar ?? conversation.avatar;
      conversation.memberCount = info.member_count ?? conversation.memberCount;
      if (info.peer_delivered_seq !== undefined) {
        this.applyReceipt(conversation, "delivered", info.peer_delivered_seq);
      }
      if (info.peer_read_seq !== undefined) this.applyReceipt(conversation, "read", info.peer_read_seq);
      const last = info.last_message;
      if (conversation.hasBegun && last !== undefined && conversation.receive !== "blocked") {
        if (last.seq === conversation.arrived.last + 1) this.receive(fromInfo(last, this.me));
        else this.expect(conversation, last.seq);
      }
      const { max_seq: upTo, read_seq: read, mention_unread_count: count } = info;
      conversation.messages.setServerMentions({ upTo, read, count });
      this.touch(conversation);
    }
  }

  /** Emits the summary of a conversation soon, once for all changes of a moment. */
  touch(conversation: Conversation): void {
    this.touched.add(conversation);
    if (this.touched.size > 1) return;
    queueMicrotask(() => {
      const touched = [...this.touched];
      this.touched.clear();
      for (const one of touched) if (one.isAnnounced) this.events.emit("conversation", one.summary());
    });
  }

  /** Records that messages up to this seq exist, and fetches them if they are missing. */
  expect(conversation: Conversation, seq: number): void {
    conversation.arrived.expect(seq);
    if (!conversation.hasBegun) this.gapFiller.scheduleHeads();
    else this.gapFiller.scheduleFill(conversation);
  }

  /** Removes a saved message of ours from the outbox and marks everything before it as read. */
  private completeOutgoing(conversation: Conversation, message: Message): void {
    const isFromHere = this.outbox.saved(conversation.id, message.clientMsgId) !== undefined;
    conversation.readTo(message.seq, isFromHere);
    if (isFromHere) conversation.ackedRead = Math.max(conversation.ackedRead, message.seq);
  }

  private emitMessage(conversation: Conversation, message: Message): void {
    if (message.isDamaged) {
      this.events.emit("update", message); // nobody said it just now
      return;
    }
    const isShown = this.alreadyShown.delete(message.serverMsgId);
    if (isShown) this.events.emit("update", message);
    else if (message.seq > conversation.historyUpTo) this.events.emit("message", message);
    if (message.isMine) return;
    this.acks.schedule(conversation);
    // A sender has read everything before the message.
    this.applyReceipt(conversation, "read", message.seq, message.from);
  }

  /** Drops the oldest messages, a fifth of the limit at a time. */
  private trimMessages({ messages, keep }: Conversation): void {
    if (messages.all.length > keep * 1.2) messages.trim(keep);
  }

  /** Applies a receipt and emits the messages it changes. */
  applyReceipt(conversation: Conversation, kind: "delivered" | "read", seq: number, userId = ""): void {
    for (const message of conversation.applyReceipt(kind, seq, userId)) this.events.emit("update", message);
  }

  /** Recalculates the state of our messages after the members or their cursors changed. */
  recount(conversation: Conversation): void {
    for (const message of conversation.recount()) this.events.emit("update", message);
    this.touch(conversation);
  }
}

/** Changes of the members of a group. */
const MEMBERSHIP_CHANGES: ReadonlySet<Change["kind"]> = new Set(["joined", "left", "kicked"]);

/** A conversation that is created while signed in is loaded from its beginning, up to this many messages. */
const SHORT = 200;

/**
 * Chooses where a new conversation starts on this device. Right after sign-in: with the messages that no
 * device of the user has received yet, and at least with the last one; older ones are history, loaded on
 * demand. Later: with its first message.
 */
function beginFromHead(conversation: Conversation, head: Head, isFirst: boolean): Message[] {
  const start = head.min_seq - 1;
  const isAllNews = !isFirst && head.max_seq - start <= SHORT;
  conversation.historyUpTo = isAllNews ? start : head.delivered_seq;
  const known = isAllNews ? start : Math.min(head.delivered_seq, head.max_seq - 1);
  const changeSeq = isAllNews ? head.min_change_seq - 1 : head.change_seq;
  return conversation.begin(Math.max(start, known), changeSeq);
}
