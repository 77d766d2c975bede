import { Backoff } from "./backoff.js";
import type { Cancel, Clock } from "./clock.js";
import type { Reason } from "./codes.js";
import type { ClientFrame, Limits, MessageType } from "./frames.js";
import { Pace } from "./pace.js";
import { mayRetry } from "./refusal.js";
import type { Store } from "./storage.js";
import type { Timing } from "./timing.js";

/** Something to be said, until the server has saved or refused it. */
export interface Entry {
  /** In the order of sending, over all conversations and reloads. */
  order: number;
  clientMsgId: string;
  conversationId: string;
  address: { to: string } | { groupId: string };
  type: MessageType;
  body: string;
  extra?: Record<string, string>;
  mentions?: string[];
  replyTo?: string;
  at: number;
  /** Why it was refused for good; it then waits for the app. */
  reason?: Reason;
}

/** An entry on its way. */
interface Flight {
  entry: Entry;
  frame: string;
  /** When and as how manyeth frame it was written; 0 if it is to be written (again). */
  writtenAt: number;
  writtenAs: number;
  /** How often on this connection. */
  tries: number;
}

/** What is unanswered of one conversation, in order. */
interface Lane {
  flights: Map<string, Flight>;
  /** Rounds without any answer. */
  silences: number;
  timer?: Cancel | undefined;
  /** The server is busy: until then nothing is written. */
  paused?: Cancel | undefined;
  busy: Backoff;
}

const LONGEST_SILENCE_MS = 30_000;

/**
 * Says everything until it is saved or refused, under the same name each time. Many messages of a
 * conversation are on the wire at once; whatever goes wrong, the unanswered ones go again in order.
 */
export class Outbox {
  private readonly lanes = new Map<string, Lane>();
  private readonly refusedOnes = new Map<string, Entry>();
  private readonly pace: Pace;
  private isOnline = false;
  private frameBytesMax = Number.POSITIVE_INFINITY;
  private written = 0;
  private order = 0;
  private turn = 0;
  private pacing: Cancel | undefined;

  /** It is refused for good. */
  onRefused: (entry: Entry, reason: Reason) => void = () => {};

  constructor(
    private readonly userId: string,
    private readonly clock: Clock,
    private readonly timing: Timing,
    private readonly store: Store,
    /** What the connection allows, beside what the sender may. */
    private readonly frames: Pace,
    private readonly write: (text: string) => boolean,
  ) {
    this.pace = new Pace(clock);
  }

  /** What an earlier run left behind, in order. */
  async load(): Promise<Entry[]> {
    const kept = await this.store.list(this.key(""));
    const entries = kept.map(([, entry]) => entry as Entry);
    for (const entry of entries) {
      this.order = Math.max(this.order, entry.order);
      if (entry.reason === undefined) this.enter(entry);
      else this.refusedOnes.set(entry.clientMsgId, entry);
    }
    return entries;
  }

  /** Takes something to say; it is kept before anybody else hears of it. */
  add(draft: Omit<Entry, "order">): Entry {
    this.order = Math.max(this.order + 1, this.clock.now() * 1000);
    const entry = { ...draft, order: this.order };
    void this.store.set(this.key(entry.order), entry);
    this.enter(entry);
    this.pump();
    return entry;
  }

  /** A new connection: everything unanswered goes again. */
  online(limits: Limits): void {
    this.isOnline = true;
    this.pace.limit(limits.userSendsPerSecond);
    this.frameBytesMax = limits.frameBytesMax;
    for (const lane of this.lanes.values()) {
      this.again(lane);
      for (const flight of lane.flights.values()) flight.tries = 0;
    }
    this.pump();
  }

  offline(): void {
    this.isOnline = false;
    this.pacing?.();
    this.pacing = undefined;
    for (const lane of this.lanes.values()) this.rest(lane);
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
    lane.busy.reset();
    this.leave(lane, flight.entry);
    this.pump();
    return flight.entry;
  }

  /**
   * The connection answered this one. It answers in order: what was written before and is not
   * answered got lost, and goes again at once. Of one that was written twice nobody knows which
   * time is answered, so it proves nothing.
   */
  answered(conversationId: string, clientMsgId: string): void {
    const lane = this.lanes.get(conversationId);
    const proof = lane?.flights.get(clientMsgId);
    if (lane === undefined || proof === undefined || proof.tries !== 1) return;
    for (const flight of this.foremost(lane)) {
      if (flight.writtenAs > 0 && flight.writtenAs < proof.writtenAs) flight.writtenAs = 0;
    }
  }

  /** Refused: for good, or until the server has time. */
  refused(clientMsgId: string, reason: Reason): void {
    const found = this.find(clientMsgId);
    if (found === undefined) return;
    const { lane, flight } = found;
    lane.silences = 0;
    if (mayRetry(reason)) {
      this.pause(lane);
    } else {
      this.finish(lane, flight.entry, reason);
      this.pump();
    }
  }

  /** Tries a refused one again. */
  retry(clientMsgId: string): Entry | undefined {
    const entry = this.refusedOnes.get(clientMsgId);
    if (entry === undefined) return undefined;
    this.refusedOnes.delete(clientMsgId);
    delete entry.reason;
    void this.store.set(this.key(entry.order), entry);
    this.enter(entry);
    this.pump();
    return entry;
  }

  /** Forgets a refused one. */
  discard(clientMsgId: string): Entry | undefined {
    const entry = this.refusedOnes.get(clientMsgId);
    if (entry === undefined) return undefined;
    this.refusedOnes.delete(clientMsgId);
    void this.store.delete(this.key(entry.order));
    return entry;
  }

  /** How many wait for an answer. */
  get size(): number {
    let size = 0;
    for (const lane of this.lanes.values()) size += lane.flights.size;
    return size;
  }

  private key(order: number | ""): string {
    return `outbox/${this.userId}/${order === "" ? "" : String(order).padStart(17, "0")}`;
  }

  private enter(entry: Entry): void {
    let lane = this.lanes.get(entry.conversationId);
    if (lane === undefined) {
      const { backoffBaseMs: baseMs, backoffMaxMs: maxMs } = this.timing;
      const busy = new Backoff(this.clock, { baseMs, maxMs });
      lane = { flights: new Map(), silences: 0, busy };
      this.lanes.set(entry.conversationId, lane);
    }
    const frame = JSON.stringify(frameOf(entry));
    lane.flights.set(entry.clientMsgId, { entry, frame, writtenAt: 0, writtenAs: 0, tries: 0 });
  }

  private leave(lane: Lane, entry: Entry): void {
    lane.flights.delete(entry.clientMsgId);
    void this.store.delete(this.key(entry.order));
    if (lane.flights.size > 0) return;
    this.rest(lane);
    this.lanes.delete(entry.conversationId);
  }

  private finish(lane: Lane, entry: Entry, reason: Reason): void {
    this.leave(lane, entry);
    const refused = { ...entry, reason };
    this.refusedOnes.set(entry.clientMsgId, refused);
    void this.store.set(this.key(entry.order), refused);
    this.onRefused(refused, reason);
  }

  private find(clientMsgId: string): { lane: Lane; flight: Flight } | undefined {
    for (const lane of this.lanes.values()) {
      const flight = lane.flights.get(clientMsgId);
      if (flight !== undefined) return { lane, flight };
    }
    return undefined;
  }

  /** Marks everything of a conversation to be written again. */
  private again(lane: Lane): void {
    this.rest(lane);
    for (const flight of lane.flights.values()) flight.writtenAs = 0;
  }

  private rest(lane: Lane): void {
    lane.timer?.();
    lane.paused?.();
    lane.timer = lane.paused = undefined;
  }

  private pause(lane: Lane): void {
    this.again(lane);
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
      const flight = this.nextOf(lane);
      if (flight === undefined) {
        idle += 1;
        continue;
      }
      idle = 0;
      const wait = this.frames.take() || this.pace.take();
      if (wait > 0) {
        this.pacing = this.clock.after(wait, () => {
          this.pacing = undefined;
          this.pump();
        });
        return;
      }
      if (!this.launch(lane, flight)) return;
    }
  }

  private nextOf(lane: Lane): Flight | undefined {
    if (lane.paused !== undefined) return undefined;
    for (const flight of this.foremost(lane)) if (flight.writtenAs === 0) return flight;
    return undefined;
  }

  /** Those that may be on the wire. */
  private *foremost(lane: Lane): Generator<Flight> {
    let left = this.timing.sendWindow;
    for (const flight of lane.flights.values()) {
      if (left === 0) return;
      left -= 1;
      yield flight;
    }
  }

  private oldest(lane: Lane): Flight | undefined {
    for (const flight of this.foremost(lane)) if (flight.writtenAs > 0) return flight;
    return undefined;
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
    if (lane.timer !== undefined) return;
    const patience = Math.min(this.timing.silenceMs * 2 ** lane.silences, LONGEST_SILENCE_MS);
    const first = this.oldest(lane);
    if (first === undefined) return;
    const left = first.writtenAt + patience - this.clock.now();
    lane.timer = this.clock.after(Math.max(left, 0), () => {
      lane.timer = undefined;
      const oldest = this.oldest(lane);
      if (oldest !== undefined && this.clock.now() - oldest.writtenAt >= patience) {
        lane.silences = Math.min(lane.silences + 1, 10);
        this.again(lane);
        this.pump();
      } else {
        this.listen(lane);
      }
    });
  }
}

function frameOf(entry: Entry): ClientFrame {
  const { clientMsgId, body, type: msgType, extra, mentions, replyTo, address } = entry;
  const fields = {
    clientMsgId,
    body,
    msgType,
    ...(extra && { extra }),
    ...(mentions && { mentions }),
    ...(replyTo !== undefined && { replyToServerMsgId: replyTo }),
  };
  return "to" in address
    ? { type: "SINGLE_CHAT", ...address, ...fields }
    : { type: "GROUP_CHAT", ...address, ...fields };
}

function fits(text: string, bytes: number): boolean {
  // At most three bytes per unit, so most texts need no count.
  return text.length * 3 <= bytes || new TextEncoder().encode(text).length <= bytes;
}
