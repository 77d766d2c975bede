import { Backoff } from "./backoff.js";
import type { Cancel, Clock } from "./clock.js";
import type { Reason } from "./codes.js";
import type { Limits } from "./frames.js";
import { type Entry, type Flight, Lane } from "./lane.js";
import { Pace } from "./pace.js";
import { mayRetry } from "./refusal.js";
import type { Store } from "./storage.js";
import type { Timing } from "./timing.js";

const LONGEST_SILENCE_MS = 30_000;

/**
 * Says everything until it is saved or refused, under the same name each time. Many messages of a
 * conversation are on the wire at once; whatever goes wrong, the unanswered ones go again in order.
 */
export class Outbox {
  private readonly lanes = new Map<string, Lane>();
  private readonly refusedOnes = new Map<string, Entry>();
  private readonly sends: Pace;
  private isOnline = false;
  private frameBytesMax = Number.POSITIVE_INFINITY;
  private written = 0;
  private order = 0;
  private turn = 0;
  private pacing: Cancel | undefined;

  /** It is refused for good. */
  onRefused: (entry: Entry, reason: Reason) => void = () => {};
  /** The last place of a conversation. */
  lastOf: (conversationId: string) => number = () => 0;

  constructor(
    private readonly userId: string,
    private readonly clock: Clock,
    private readonly timing: Timing,
    private readonly store: Store,
    /** What the connection allows, beside what the sender may. */
    private readonly frames: Pace,
    private readonly write: (text: string) => boolean,
  ) {
    this.sends = new Pace(clock);
  }

  /** What an earlier run left behind, in order; what was said since comes after it. */
  async load(): Promise<Entry[]> {
    const kept = await this.store.list(`outbox/${this.userId}/`);
    const entries = kept.map(([, entry]) => entry as Entry);
    const since = [...this.lanes.values()].flatMap(({ flights }) => [...flights.values()]);
    this.lanes.clear();
    for (const entry of [...entries, ...since.map((flight) => flight.entry)]) {
      this.order = Math.max(this.order, entry.order);
      if (entry.reason === undefined) this.enter(entry);
      else this.refusedOnes.set(entry.clientMsgId, entry);
    }
    return entries;
  }

  /** Takes something to say, and keeps it. */
  add(draft: Omit<Entry, "order">): Entry {
    this.order = Math.max(this.order + 1, this.clock.now() * 1000);
    const entry = { ...draft, order: this.order };
    void this.store.set(this.key(entry), entry);
    this.enter(entry);
    this.pump();
    return entry;
  }

  /** A new connection: everything unanswered goes again. */
  online(limits: Limits): void {
    this.isOnline = true;
    this.sends.limit(limits.userSendsPerSecond);
    this.frameBytesMax = limits.frameBytesMax;
    for (const lane of this.lanes.values()) lane.anew();
    this.pump();
  }

  offline(): void {
    this.isOnline = false;
    this.pacing?.();
    this.pacing = undefined;
    for (const lane of this.lanes.values()) lane.rest();
  }

  /** The connection answered: what it should have answered before got lost. */
  answered(conversationId: string, clientMsgId: string): void {
    const lane = this.lanes.get(conversationId);
    const flight = lane?.flights.get(clientMsgId);
    if (flight !== undefined) lane?.answered(flight);
  }

  /** Taken, but not on disk: it stays, and is asked after if nothing more is heard. */
  accepted(conversationId: string, clientMsgId: string): Entry | undefined {
    const lane = this.lanes.get(conversationId);
    const flight = lane?.flights.get(clientMsgId);
    if (lane === undefined || flight === undefined) return undefined;
    lane.silences = 0;
    flight.writtenAt = this.clock.now();
    return flight.entry;
  }

  /** On disk: it is done. */
  saved(conversationId: string, clientMsgId: string): Entry | undefined {
    const lane = this.lanes.get(conversationId);
    const flight = lane?.flights.get(clientMsgId);
    if (lane === undefined || flight === undefined) return undefined;
    lane.silences = 0;
    if (lane.paused === undefined) {
      lane.busy.reset();
      lane.isCareful = false;
    }
    this.leave(lane, flight.entry);
    this.pump();
    return flight.entry;
  }

  /** Refused: for good, or until the server has time. */
  refused(clientMsgId: string, reason: Reason): void {
    const lane = [...this.lanes.values()].find(({ flights }) => flights.has(clientMsgId));
    const flight = lane?.flights.get(clientMsgId);
    if (lane === undefined || flight === undefined) return;
    lane.silences = 0;
    if (!mayRetry(reason)) this.finish(lane, flight.entry, reason);
    else if (lane.paused === undefined) this.pause(lane); // the refusals of one burst are one
    this.pump();
  }

  /** Tries a refused one again. */
  retry(clientMsgId: string): Entry | undefined {
    const refused = this.refusedOnes.get(clientMsgId);
    if (refused === undefined) return undefined;
    this.refusedOnes.delete(clientMsgId);
    const { reason: _, after: __, ...entry } = refused;
    void this.store.set(this.key(entry), entry);
    this.enter(entry);
    this.pump();
    return entry;
  }

  /** Forgets a refused one. */
  discard(clientMsgId: string): Entry | undefined {
    const entry = this.refusedOnes.get(clientMsgId);
    if (entry === undefined) return undefined;
    this.refusedOnes.delete(clientMsgId);
    void this.store.delete(this.key(entry));
    return entry;
  }

  /** How many wait for an answer. */
  get size(): number {
    return [...this.lanes.values()].reduce((sum, { flights }) => sum + flights.size, 0);
  }

  /** Sorts by order. The name keeps two tabs apart that share a store. */
  private key({ order, clientMsgId }: Entry): string {
    return `outbox/${this.userId}/${String(order).padStart(17, "0")}-${clientMsgId}`;
  }

  private enter(entry: Entry): void {
    const { backoffBaseMs: baseMs, backoffMaxMs: maxMs, sendWindow } = this.timing;
    const known = this.lanes.get(entry.conversationId);
    const lane = known ?? new Lane(sendWindow, new Backoff(this.clock, { baseMs, maxMs }));
    this.lanes.set(entry.conversationId, lane);
    lane.enter(entry);
  }

  private leave(lane: Lane, entry: Entry): void {
    lane.flights.delete(entry.clientMsgId);
    void this.store.delete(this.key(entry));
    if (lane.flights.size > 0) return;
    lane.rest();
    this.lanes.delete(entry.conversationId);
  }

  private finish(lane: Lane, entry: Entry, reason: Reason): void {
    this.leave(lane, entry);
    const refused = { ...entry, reason, after: this.lastOf(entry.conversationId) };
    this.refusedOnes.set(entry.clientMsgId, refused);
    void this.store.set(this.key(entry), refused);
    this.onRefused(refused, reason);
  }

  private pause(lane: Lane): void {
    lane.again();
    lane.isCareful = true;
    lane.paused = this.clock.after(lane.busy.next(this.timing.backoffBaseMs), () => {
      lane.paused = undefined;
      this.pump();
    });
  }

  /** Writes what may be written, one of each conversation in turn. */
  private pump(): void {
    if (!this.isOnline || this.pacing !== undefined) return;
    const lanes = [...this.lanes.values()];
    for (let idle = 0; idle < lanes.length; this.turn += 1) {
      const lane = lanes[this.turn % lanes.length] as Lane;
      const flight = lane.next();
      if (flight === undefined) {
        idle += 1;
        continue;
      }
      idle = 0;
      const wait = this.frames.take() || this.sends.take();
      if (wait > 0) return this.goOnAfter(wait);
      if (!this.launch(lane, flight)) return;
    }
  }

  private goOnAfter(ms: number): void {
    this.pacing = this.clock.after(ms, () => {
      this.pacing = undefined;
      this.pump();
    });
  }

  private launch(lane: Lane, flight: Flight): boolean {
    // The server would end the connection, and we would try for ever.
    if (!fits(flight.frame, this.frameBytesMax)) {
      this.finish(lane, flight.entry, "frame_too_large");
      return true;
    }
    if (!this.write(flight.frame)) return false;
    this.written += 1;
    flight.writtenAs = this.written;
    flight.writtenAt = this.clock.now();
    flight.tries += 1;
    this.listen(lane);
    return true;
  }

  /** After a silence everything unanswered goes again, in order, and the next silence is longer. */
  private listen(lane: Lane): void {
    const first = lane.oldest();
    if (lane.timer !== undefined || first === undefined) return;
    const patience = Math.min(this.timing.silenceMs * 2 ** lane.silences, LONGEST_SILENCE_MS);
    const left = first.writtenAt + patience - this.clock.now();
    lane.timer = this.clock.after(Math.max(left, 0), () => {
      lane.timer = undefined;
      const oldest = lane.oldest();
      if (oldest !== undefined && this.clock.now() - oldest.writtenAt >= patience) {
        lane.silences = Math.min(lane.silences + 1, 10);
        lane.again();
        this.pump();
      } else {
        this.listen(lane);
      }
    });
  }
}

function fits(text: string, bytes: number): boolean {
  // At most three bytes per unit, so most texts need no count.
  return text.length * 3 <= bytes || new TextEncoder().encode(text).length <= bytes;
}
