import { Acks } from "./acks.js";
import type { Clock } from "./clock.js";
import type { Conversation } from "./conversation.js";
import { Dispatcher } from "./dispatcher.js";
import type { Emitter } from "./events.js";
import type { Limits, ServerFrame } from "./frames.js";
import type { Group } from "./groups.js";
import type { Http } from "./http.js";
import { Inbox } from "./inbox.js";
import type { Link } from "./link.js";
import { Outbox } from "./outbox.js";
import { OwnJoins } from "./ownJoins.js";
import { RateLimiter } from "./rateLimiter.js";
import type { Store } from "./storage.js";
import { Sync } from "./sync.js";
import type { Timing } from "./timing.js";
import {
  addressOf,
  type Content,
  conversationOf,
  type Events,
  type Message,
  type SendOptions,
  type Target,
} from "./types.js";
import { Typing } from "./typing.js";

/** The state of one signed-in user, from sign-in to sign-out. */
export class AccountState {
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly acks: Acks;
  readonly sync: Sync;
  readonly typing: Typing;
  private readonly dispatcher: Dispatcher;
  private readonly frameRate: RateLimiter;
  private ready: Promise<void> | undefined;

  constructor(
    readonly me: string,
    readonly events: Emitter<Events>,
    private readonly clock: Clock,
    timing: Timing,
    store: Store,
    private readonly http: Http,
    link: Link,
    keep: number,
  ) {
    const onTyping = (conversationId: string, userId: string, isTyping: boolean) =>
      events.emit("typing", { conversationId, userId, isTyping });
    this.frameRate = new RateLimiter(clock);
    this.typing = new Typing(clock, timing.typingEveryMs, onTyping);
    this.acks = new Acks(clock, timing.ackWindowMs, this.frameRate, (frame) => link.send(frame));
    const write = (text: string) => link.write(text);
    this.outbox = new Outbox(me, clock, timing, store, this.frameRate, write);
    const joins = new OwnJoins(me, events, store, http);
    this.inbox = new Inbox(me, events, this.outbox, this.acks, joins, keep);
    const send = (frame: Parameters<Link["send"]>[0]) => link.send(frame);
    const problem = (error: Error) => events.emit("problem", error);
    this.sync = new Sync(me, http, this.inbox, joins, clock, timing, send, problem);
    this.inbox.gapFiller = this.sync;
    this.dispatcher = new Dispatcher(me, events, this.inbox, this.outbox, this.sync, this.typing);
    this.outbox.onRefused = (entry) => events.emit("update", this.inbox.showOutgoing(entry));
    this.outbox.lastSeqOf = (id) => this.inbox.conversations.get(id)?.messages.last ?? 0;
    this.loaded = this.load();
  }

  /** Shows again what an earlier run left unsent. */
  readonly loaded: Promise<void>;

  /** Loads the outbox and the conversations before the first socket is opened. It runs once. */
  prepare(): Promise<void> {
    this.ready ??= this.loaded.then(() => this.sync.loadConversations());
    return this.ready.catch((error) => {
      this.ready = undefined;
      throw error;
    });
  }

  online(limits: Limits): void {
    this.frameRate.setRate(limits.connectionFramesPerSecond);
    this.outbox.online(limits);
    this.sync.online();
  }

  offline(): void {
    this.outbox.offline();
    this.acks.offline();
    this.inbox.dropPreviews();
    this.sync.offline();
  }

  dispatch(frame: ServerFrame): void {
    this.dispatcher.dispatch(frame);
  }

  find(target: Target): Conversation | undefined {
    return this.inbox.conversations.get(conversationOf(this.me, target));
  }

  send(target: Target, content: Content, options: SendOptions): Message {
    const conversationId = conversationOf(this.me, target);
    const { body, type = "TEXT" } = content;
    const { mentions, replyTo, extra = content.extra } = options;
    this.typing.reset(conversationId);
    const draft = {
      clientMsgId: newClientMsgId(),
      conversationId,
      address: addressOf(this.me, conversationId),
      type,
      body,
      ...(extra && { extra }),
      ...(mentions && { mentions }),
      ...(replyTo !== undefined && { replyTo }),
      at: this.clock.now(),
    };
    const message = this.inbox.showOutgoing({ ...draft, order: 0 });
    this.events.emit("message", message);
    this.outbox.add(draft);
    return message;
  }

  retry(clientMsgId: string): void {
    const entry = this.outbox.retry(clientMsgId);
    if (entry !== undefined) this.events.emit("update", this.inbox.showOutgoing(entry));
  }

  discard(clientMsgId: string): void {
    const entry = this.outbox.discard(clientMsgId);
    if (entry === undefined) return;
    const { conversationId } = entry;
    const conversation = this.inbox.getOrCreate(conversationId);
    conversation.outgoing.delete(clientMsgId);
    this.inbox.touch(conversation);
    this.events.emit("removed", { conversationId, clientMsgId, serverMsgId: "" });
  }

  markRead(target: Target, seq?: number): void {
    const conversation = this.find(target);
    if (conversation === undefined) return;
    const upTo = Math.min(seq ?? conversation.messages.last, conversation.messages.last);
    conversation.readTo(upTo);
    this.inbox.touch(conversation);
    if (upTo >= conversation.messages.first) return this.acks.schedule(conversation);
    // An ACK needs the id of a message on this device; over HTTP the seq is enough.
    const body = { conversation_id: conversation.id, read_seq: upTo };
    this.http.post("/conversation/mark_read", body).then(
      () => this.sync.scheduleHeads(),
      (error: Error) => this.events.emit("problem", error),
    );
  }

  async loadOlder(target: Target, limit: number): Promise<Message[]> {
    const conversation = this.find(target);
    if (conversation === undefined) return [];
    const found = await this.sync.older(conversation, limit);
    this.inbox.touch(conversation);
    return found;
  }

  /** Applies a recall of our own; other devices learn of it from the server. */
  recallAnywhere(serverMsgId: string): void {
    for (const conversation of this.inbox.conversations.values()) {
      if (conversation.messages.find(serverMsgId)) this.inbox.recall(conversation, serverMsgId);
    }
  }

  /** Takes over name, avatar and member count of a group we are in, before the list is loaded again. */
  applyGroup({ conversationId, name, avatar, memberCount, myRole }: Group): void {
    if (myRole === undefined) return;
    const conversation = this.inbox.getOrCreate(conversationId);
    Object.assign(conversation, { name, avatar, memberCount });
    this.inbox.touch(conversation);
  }

  async updateSettings(target: Target, choice: object): Promise<void> {
    const conversation = this.inbox.getOrCreate(conversationOf(this.me, target));
    const body = { conversation_id: conversation.id, ...choice };
    const path = "/conversation/update";
    const now = await this.http.put<{ is_pinned: boolean; recv_msg_opt: 0 | 1 | 2 }>(path, body);
    this.applySettings(conversation, now.is_pinned, now.recv_msg_opt);
  }

  /** Blocks or unblocks a user: the setting of the private conversation with them changes. */
  async setBlocked(userId: string, isBlocked: boolean): Promise<void> {
    await this.http.post(isBlocked ? "/user/block" : "/user/unblock", { user_id: userId });
    if (!isBlocked && this.find({ to: userId })?.receive !== "blocked") return; // a silent one stays silent
    const conversation = this.inbox.getOrCreate(conversationOf(this.me, { to: userId }));
    this.applySettings(conversation, conversation.isPinned, isBlocked ? 2 : 0);
  }

  private applySettings(conversation: Conversation, isPinned: boolean, receive: 0 | 1 | 2): void {
    conversation.setSettings(isPinned, receive);
    this.inbox.touch(conversation);
    this.sync.scheduleHeads(); // fetches what came while it was blocked
  }

  async hide(target: Target, isHidden: boolean): Promise<void> {
    const conversation = this.inbox.getOrCreate(conversationOf(this.me, target));
    // A message that arrives during the request was not seen, so the seq from before is what is hidden.
    const seq = conversation.hasBegun ? conversation.arrived.last : undefined;
    const body = { conversation_id: conversation.id, hidden: isHidden, ...(seq !== undefined && { seq }) };
    await this.http.post("/conversation/hide", body);
    conversation.hiddenSeq = isHidden ? (seq ?? 0) : undefined;
    this.inbox.touch(conversation);
  }

  private async load(): Promise<void> {
    for (const entry of await this.outbox.load()) {
      // A message sent while the store was read has been emitted already.
      const isShown = this.find(entry.conversationId)?.outgoing.has(entry.clientMsgId);
      if (!isShown) this.events.emit("message", this.inbox.showOutgoing(entry));
    }
  }
}

/** 128 random bits. `crypto.randomUUID` does not exist on pages without TLS. */
function newClientMsgId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
