import { Backoff } from "./backoff.js";
import type { Cancel, Clock } from "./clock.js";
import type { Reason } from "./codes.js";
import type { Limits } from "./frames.js";
import { type OutboxEntry, type PendingSend, Lane } from "./lane.js";
import { RateLimiter } from "./rateLimiter.js";
import { mayRetry } from "./refusal.js";
import type { Store } from "./storage.js";
import type { Timing } from "./timing.js";

const ANSWER_TIMEOUT_MAX_MS = 30_000;

/**
 * Sends every message until it is saved or refused, each time with the same client message id. Many messages
 * of a conversation are in flight at once; after any failure the unanswered ones are sent again in order.
 */
export class Outbox {
  private readonly lanes = new Map<string, Lane>();
  private readonly refusedEntries = new Map<string, OutboxEntry>();
  private readonly sends: RateLimiter;
  private isOnline = false;
  private frameBytesMax = Number.POSITIVE_INFINITY;
  private writes = 0;
  private order = 0;
  private nextLane = 0;
  private rateTimer: Cancel | undefined;

  /** Called when an entry is refused for good. */
  onRefused: (entry: OutboxEntry, reason: Reason) => void = () => {};
  /** Returns the last seq of a conversation. */
  lastSeqOf: (conversationId: string) => number = () => 0;

  constructor(
    private readonly userId: string,
    private readonly clock: Clock,
    private readonly timing: Timing,
    private readonly store: Store,
    /** The frame limit of the connection; `sends` is the send limit of the user. */
    private readonly frameRate: RateLimiter,
    private readonly write: (text: string) => boolean,
  ) {
    this.sends = new RateLimiter(clock);
  }

  /** Loads what an earlier run left, in order; entries added meanwhile come after it. */
  async load(): Promise<OutboxEntry[]> {
    const stored = await this.store.list(`outbox/${this.userId}/`);
    const entries = stored.map(([, entry]) => entry as OutboxEntry);
    const addedMeanwhile = [...this.lanes.values()].flatMap(({ pending }) => [...pending.values()]);
    this.lanes.clear();
    for (const entry of [...entries, ...addedMeanwhile.map((send) => send.entry)]) {
      this.order = Math.max(this.order, entry.order);
      if (entry.reason === undefined) this.enter(entry);
      else this.refusedEntries.set(entry.clientMsgId, entry);
    }
    return entries;
  }

  /** Adds an entry, assigns its order and stores it. */
  add(draft: Omit<OutboxEntry, "order">): OutboxEntry {
    this.order = Math.max(this.order + 1, this.clock.now() * 1000);
    const entry = { ...draft, order: this.order };
    void this.store.set(this.key(entry), entry);
    this.enter(entry);
    this.pump();
    return entry;
  }

  /** Starts on a new connection: all unanswered entries are sent again. */
  online(limits: Limits): void {
    this.isOnline = true;
    this.sends.setRate(limits.userSendsPerSecond);
    this.frameBytesMax = limits.frameBytesMax;
    for (const lane of this.lanes.values()) lane.restart();
    this.pump();
  }

  offline(): void {
    this.isOnline = false;
    this.rateTimer?.();
    this.rateTimer = undefined;
    for (const lane of this.lanes.values()) lane.clearTimers();
  }

  /** Handles an answer of the connection: entries it should have answered before were lost. */
  answered(conversationId: string, clientMsgId: string): void {
    const lane = this.lanes.get(conversationId);
    const send = lane?.pending.get(clientMsgId);
    if (send !== undefined) lane?.answered(send);
  }

  /** The server accepted it, not yet on disk: it stays, and is sent again if nothing follows. */
  accepted(conversationId: string, clientMsgId: string): OutboxEntry | undefined {
    const lane = this.lanes.get(conversationId);
    const send = lane?.pending.get(clientMsgId);
    if (lane === undefined || send === undefined) return undefined;
    lane.silentRounds = 0;
    send.writtenAt = this.clock.now();
    return send.entry;
  }

  /** The server saved it: removes it. */
  saved(conversationId: string, clientMsgId: string): OutboxEntry | undefined {
    const lane = this.lanes.get(conversationId);
    const send = lane?.pending.get(clientMsgId);
    if (lane === undefined || send === undefined) return undefined;
    lane.silentRounds = 0;
    if (lane.paused === undefined) {
      lane.busyBackoff.reset();
      lane.isOneAtATime = false;
    }
    this.leave(lane, send.entry);
    this.pump();
    return send.entry;
  }

  /** The server refused it, for good or because it is busy. */
  refused(clientMsgId: string, reason: Reason): void {
    const lane = [...this.lanes.values()].find(({ pending }) => pending.has(clientMsgId));
    const send = lane?.pending.get(clientMsgId);
    if (lane === undefined || send === undefined) return;
    lane.silentRounds = 0;
    if (!mayRetry(reason)) this.refuseForGood(lane, send.entry, reason);
    else if (lane.paused === undefined) this.pause(lane); // pause once for all refusals of a burst
    this.pump();
  }

  /** Sends a refused entry again. */
  retry(clientMsgId: string): OutboxEntry | undefined {
    const refused = this.refusedEntries.get(clientMsgId);
    if (refused === undefined) return undefined;
    this.refusedEntries.delete(clientMsgId);
    const { reason: _, after: __, ...entry } = refused;
    void this.store.set(this.key(entry), entry);
    this.enter(entry);
    this.pump();
    return entry;
  }

  /** Deletes a refused entry. */
  discard(clientMsgId: string): OutboxEntry | undefined {
    const entry = this.refusedEntries.get(clientMsgId);
    if (entry === undefined) return undefined;
    this.refusedEntries.delete(clientMsgId);
    void this.store.delete(this.key(entry));
    return entry;
  }

  /** The number of unanswered entries. */
  get size(): number {
    return [...this.lanes.values()].reduce((sum, { pending }) => sum + pending.size, 0);
  }

  /** Sorts by order. The client message id keeps two tabs apart that share a store. */
  private key({ order, clientMsgId }: OutboxEntry): string {
    return `outbox/${this.userId}/${String(order).padStart(17, "0")}-${clientMsgId}`;
  }

  private enter(entry: OutboxEntry): void {
    const { backoffBaseMs: baseMs, backoffMaxMs: maxMs, sendWindow } = this.timing;
    const existing = this.lanes.get(entry.conversationId);
    const lane = existing ?? new Lane(sendWindow, new Backoff(this.clock, { baseMs, maxMs }));
    this.lanes.set(entry.conversationId, lane);
    lane.enter(entry);
  }

  private leave(lane: Lane, entry: OutboxEntry): void {
    lane.pending.delete(entry.clientMsgId);
    void this.store.delete(this.key(entry));
    if (lane.pending.size > 0) return;
    lane.clearTimers();
    this.lanes.delete(entry.conversationId);
  }

  private refuseForGood(lane: Lane, entry: OutboxEntry, reason: Reason): void {
    this.leave(lane, entry);
    const refused = { ...entry, reason, after: this.lastSeqOf(entry.conversationId) };
    this.refusedEntries.set(entry.clientMsgId, refused);
    void this.store.set(this.key(entry), refused);
    this.onRefused(refused, reason);
  }

  private pause(lane: Lane): void {
    lane.rewriteAll();
    lane.isOneAtATime = true;
    lane.paused = this.clock.after(lane.busyBackoff.next(this.timing.backoffBaseMs), () => {
      lane.paused = undefined;
      this.pump();
    });
  }

  /** Writes what the windows and limits allow, one entry per conversation in turn. */
  private pump(): void {
    if (!this.isOnline || this.rateTimer !== undefined) return;
    const lanes = [...this.lanes.values()];
    for (let idle = 0; idle < lanes.length; this.nextLane += 1) {
      const lane = lanes[this.nextLane % lanes.length] as Lane;
      const send = lane.next();
      if (send === undefined) {
        idle += 1;
        continue;
      }
      idle = 0;
      const wait = this.frameRate.take() || this.sends.take();
      if (wait > 0) return this.pumpAfter(wait);
      if (!this.writeOne(lane, send)) return;
    }
  }

  private pumpAfter(ms: number): void {
    this.rateTimer = this.clock.after(ms, () => {
      this.rateTimer = undefined;
      this.pump();
    });
  }

  private writeOne(lane: Lane, send: PendingSend): boolean {
    // The server would close the connection for it, at every attempt.
    if (!fits(send.frame, this.frameBytesMax)) {
      this.refuseForGood(lane, send.entry, "frame_too_large");
      return true;
    }
    if (!this.write(send.frame)) return false;
    this.writes += 1;
    send.writeNumber = this.writes;
    send.writtenAt = this.clock.now();
    send.tries += 1;
    this.armTimer(lane);
    return true;
  }

  /** If no answer comes in time, all unanswered entries are written again in order, and the timeout doubles. */
  private armTimer(lane: Lane): void {
    const first = lane.oldest();
    if (lane.timer !== undefined || first === undefined) return;
    const timeoutMs = Math.min(this.timing.silenceMs * 2 ** lane.silentRounds, ANSWER_TIMEOUT_MAX_MS);
    const left = first.writtenAt + timeoutMs - this.clock.now();
    lane.timer = this.clock.after(Math.max(left, 0), () => {
      lane.timer = undefined;
      const oldest = lane.oldest();
      if (oldest !== undefined && this.clock.now() - oldest.writtenAt >= timeoutMs) {
        lane.silentRounds = Math.min(lane.silentRounds + 1, 10);
        lane.rewriteAll();
        this.pump();
      } else {
        this.armTimer(lane);
      }
    });
  }
}

function fits(text: string, bytes: number): boolean {
  // At most three bytes per UTF-16 unit, so most texts need not be encoded.
  return text.length * 3 <= bytes || new TextEncoder().encode(text).length <= bytes;
}
