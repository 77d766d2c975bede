import { Acks } from "./acks.js";
import type { Clock } from "./clock.js";
import type { Conversation } from "./conversation.js";
import { Ear } from "./ear.js";
import type { Emitter } from "./events.js";
import type { Limits, ServerFrame } from "./frames.js";
import type { Group } from "./groups.js";
import type { Http } from "./http.js";
import { Inbox } from "./inbox.js";
import type { Link } from "./link.js";
import { Outbox } from "./outbox.js";
import { Pace } from "./pace.js";
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

/** Everything that belongs to one person on this device, from signing in to signing out. */
export class Desk {
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly acks: Acks;
  readonly sync: Sync;
  readonly typing: Typing;
  private readonly ear: Ear;
  private readonly frames: Pace;
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
    const tell = (conversationId: string, userId: string, on: boolean) =>
      events.emit("typing", { conversationId, userId, on });
    this.frames = new Pace(clock);
    this.typing = new Typing(clock, timing.typingEveryMs, tell);
    this.acks = new Acks(clock, timing.ackWindowMs, this.frames, (frame) => link.send(frame));
    const write = (text: string) => link.write(text);
    this.outbox = new Outbox(me, clock, timing, store, this.frames, write);
    this.inbox = new Inbox(me, events, this.outbox, this.acks, keep);
    const send = (frame: Parameters<Link["send"]>[0]) => link.send(frame);
    const problem = (error: Error) => events.emit("problem", error);
    this.sync = new Sync(me, http, this.inbox, clock, timing, send, problem);
    this.inbox.mender = this.sync;
    this.ear = new Ear(me, events, this.inbox, this.outbox, this.sync, this.typing);
    this.outbox.onRefused = (entry) => events.emit("update", this.inbox.sending(entry));
    this.outbox.lastOf = (id) => this.inbox.conversations.get(id)?.held.last ?? 0;
    this.loaded = this.load();
  }

  /** What an earlier run left unsent is shown again. */
  readonly loaded: Promise<void>;

  /** Before a socket is opened; once is enough. */
  prepare(): Promise<void> {
    this.ready ??= this.loaded.then(() => this.sync.first());
    return this.ready.catch((error) => {
      this.ready = undefined;
      throw error;
    });
  }

  online(limits: Limits): void {
    this.frames.limit(limits.connectionFramesPerSecond);
    this.outbox.online(limits);
    this.sync.online();
  }

  offline(): void {
    this.outbox.offline();
    this.acks.offline();
    this.inbox.offline();
    this.sync.offline();
  }

  hear(frame: ServerFrame): void {
    this.ear.hear(frame);
  }

  find(target: Target): Conversation | undefined {
    return this.inbox.conversations.get(conversationOf(this.me, target));
  }

  send(target: Target, content: Content, options: SendOptions): Message {
    const conversationId = conversationOf(this.me, target);
    const { body, type = "TEXT" } = content;
    const { mentions, replyTo, extra = content.extra } = options;
    this.typing.said(conversationId);
    const draft = {
      clientMsgId: newName(),
      conversationId,
      address: addressOf(this.me, conversationId),
      type,
      body,
      ...(extra && { extra }),
      ...(mentions && { mentions }),
      ...(replyTo !== undefined && { replyTo }),
      at: this.clock.now(),
    };
    const message = this.inbox.sending({ ...draft, order: 0 });
    this.events.emit("message", message);
    this.outbox.add(draft);
    return message;
  }

  retry(clientMsgId: string): void {
    const entry = this.outbox.retry(clientMsgId);
    if (entry !== undefined) this.events.emit("update", this.inbox.sending(entry));
  }

  discard(clientMsgId: string): void {
    const entry = this.outbox.discard(clientMsgId);
    if (entry === undefined) return;
    const { conversationId } = entry;
    const conversation = this.inbox.open(conversationId);
    conversation.outgoing.delete(clientMsgId);
    this.inbox.touch(conversation);
    this.events.emit("removed", { conversationId, clientMsgId, serverMsgId: "" });
  }

  markRead(target: Target, seq?: number): void {
    const conversation = this.find(target);
    if (conversation === undefined) return;
    const upTo = Math.min(seq ?? conversation.held.last, conversation.held.last);
    conversation.readTo(upTo);
    this.inbox.touch(conversation);
    if (upTo >= conversation.held.first) return this.acks.soon(conversation);
    // It is not here, so nobody can name it: the place itself will do.
    const body = { conversation_id: conversation.id, read_seq: upTo };
    this.http.post("/conversation/mark_read", body).then(
      () => this.sync.askHeads(),
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

  /** It is taken back; the others hear of it from the server. */
  recalled(serverMsgId: string): void {
    for (const conversation of this.inbox.conversations.values()) {
      if (conversation.held.find(serverMsgId)) this.inbox.recall(conversation, serverMsgId);
    }
  }

  /** The server told about a group we are in: its name is known before the list is asked for again. */
  learnGroup({ conversationId, name, avatar, memberCount, myRole }: Group): void {
    if (myRole === undefined) return;
    const conversation = this.inbox.open(conversationId);
    Object.assign(conversation, { name, avatar, memberCount });
    this.inbox.touch(conversation);
  }

  async choose(target: Target, choice: object): Promise<void> {
    const conversation = this.inbox.open(conversationOf(this.me, target));
    const body = { conversation_id: conversation.id, ...choice };
    const path = "/conversation/update";
    const now = await this.http.put<{ is_pinned: boolean; recv_msg_opt: 0 | 1 | 2 }>(path, body);
    conversation.choose(now.is_pinned, now.recv_msg_opt);
    this.inbox.touch(conversation);
    this.sync.askHeads(); // what was said while it was blocked
  }

  async hide(target: Target, hidden: boolean): Promise<void> {
    const conversation = this.inbox.open(conversationOf(this.me, target));
    // What comes while we ask was not seen, and is not hidden.
    const seq = conversation.hasBegun ? conversation.arrived.last : undefined;
    const body = { conversation_id: conversation.id, hidden, ...(seq !== undefined && { seq }) };
    await this.http.post("/conversation/hide", body);
    conversation.hiddenSeq = hidden ? (seq ?? 0) : undefined;
    this.inbox.touch(conversation);
  }

  private async load(): Promise<void> {
    for (const entry of await this.outbox.load()) {
      // What was said while we looked has been told.
      const isTold = this.find(entry.conversationId)?.outgoing.has(entry.clientMsgId);
      if (!isTold) this.events.emit("message", this.inbox.sending(entry));
    }
  }
}

/** 128 bits of chance. `crypto.randomUUID` does not exist on pages without TLS. */
function newName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
