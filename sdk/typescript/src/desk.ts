import { Acks } from "./acks.js";
import type { Clock } from "./clock.js";
import { Ear } from "./ear.js";
import type { Emitter } from "./events.js";
import type { Limits, ServerFrame } from "./frames.js";
import type { Http } from "./http.js";
import { Inbox } from "./inbox.js";
import type { Link } from "./link.js";
import { Outbox } from "./outbox.js";
import { Pace } from "./pace.js";
import type { Store } from "./storage.js";
import { Sync } from "./sync.js";
import type { Timing } from "./timing.js";
import type { Events } from "./types.js";
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
    clock: Clock,
    timing: Timing,
    store: Store,
    http: Http,
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
    this.sync.offline();
  }

  hear(frame: ServerFrame): void {
    this.ear.hear(frame);
  }

  find(conversationId: string) {
    return this.inbox.conversations.get(conversationId);
  }

  private async load(): Promise<void> {
    for (const entry of await this.outbox.load()) {
      // What was said while we looked has been told.
      const isTold = this.find(entry.conversationId)?.outgoing.has(entry.clientMsgId);
      if (!isTold) this.events.emit("message", this.inbox.sending(entry));
    }
  }
}
