import type { Backoff } from "./backoff.js";
import type { Cancel } from "./clock.js";
import type { Reason } from "./codes.js";
import type { ClientFrame, MessageType } from "./frames.js";

/** A message in the outbox until the server saves or refuses it. Also its stored format. */
export interface OutboxEntry {
  /** The order of sending, across conversations and reloads. */
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
  /** Why it was refused for good; it stays until the app retries or discards it. */
  reason?: Reason;
  /** For a refused entry: the last seq of the conversation at that time. It is shown after it. */
  after?: number;
}

/** An entry that waits for its answer. */
export interface PendingSend {
  readonly entry: OutboxEntry;
  readonly frame: string;
  /** When it was written, and its number among all writes; 0 if it has to be written (again). */
  writtenAt: number;
  writeNumber: number;
  /** How often it was written on this connection. */
  tries: number;
}

/** The unanswered entries of one conversation, in order. The first `window` of them are on the wire. */
export class Lane {
  readonly pending = new Map<string, PendingSend>();
  /** How often the answer timeout has passed in a row. */
  silentRounds = 0;
  timer: Cancel | undefined;
  /** Set while the server is busy: nothing is written meanwhile. */
  paused: Cancel | undefined;
  /** After the server was busy: one entry at a time until one is saved. */
  isOneAtATime = false;

  constructor(
    private readonly window: number,
    readonly busyBackoff: Backoff,
  ) {}

  enter(entry: OutboxEntry): void {
    const frame = JSON.stringify(frameOf(entry));
    this.pending.set(entry.clientMsgId, { entry, frame, writtenAt: 0, writeNumber: 0, tries: 0 });
  }

  /** The next entry to write, if the window has room. */
  next(): PendingSend | undefined {
    if (this.paused !== undefined) return undefined;
    for (const send of this.foremost()) if (send.writeNumber === 0) return send;
    return undefined;
  }

  /** The entry that has waited longest for an answer. */
  oldest(): PendingSend | undefined {
    for (const send of this.foremost()) if (send.writeNumber > 0) return send;
    return undefined;
  }

  /**
   * A connection answers in order, so entries written before this one without an answer were lost and are
   * written again. An entry that was written twice proves nothing: the answer may be to either write.
   */
  answered(proof: PendingSend): void {
    if (proof.tries !== 1) return;
    for (const send of this.foremost()) {
      if (send.writeNumber > 0 && send.writeNumber < proof.writeNumber) send.writeNumber = 0;
    }
  }

  /** Marks every entry to be written again, in order. */
  rewriteAll(): void {
    this.clearTimers();
    for (const send of this.pending.values()) send.writeNumber = 0;
  }

  /** Marks every entry to be written again on a new connection. */
  restart(): void {
    this.rewriteAll();
    for (const send of this.pending.values()) send.tries = 0;
  }

  clearTimers(): void {
    this.timer?.();
    this.paused?.();
    this.timer = this.paused = undefined;
  }

  private *foremost(): Generator<PendingSend> {
    let left = this.isOneAtATime ? 1 : this.window;
    for (const send of this.pending.values()) {
      if (left === 0) return;
      left -= 1;
      yield send;
    }
  }
}

function frameOf(entry: OutboxEntry): ClientFrame {
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
