import type { Backoff } from "./backoff.js";
import type { Cancel } from "./clock.js";
import type { Reason } from "./codes.js";
import type { ClientFrame, MessageType } from "./frames.js";

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
  /** The last place of its conversation when it was refused. */
  after?: number;
}

/** An entry on its way. */
export interface Flight {
  readonly entry: Entry;
  readonly frame: string;
  /** When it was written, and as which of all; 0 if it is to be written (again). */
  writtenAt: number;
  writtenAs: number;
  /** How often on this connection. */
  tries: number;
}

/** What is unanswered of one conversation, in order. The foremost of it is on the wire. */
export class Lane {
  readonly flights = new Map<string, Flight>();
  /** Rounds without any answer. */
  silences = 0;
  timer: Cancel | undefined;
  /** The server is busy: until then nothing is written. */
  paused: Cancel | undefined;
  /** The server was busy: one at a time, until one is saved. */
  isCareful = false;

  constructor(
    private readonly window: number,
    readonly busy: Backoff,
  ) {}

  enter(entry: Entry): void {
    const frame = JSON.stringify(frameOf(entry));
    this.flights.set(entry.clientMsgId, { entry, frame, writtenAt: 0, writtenAs: 0, tries: 0 });
  }

  /** What to write next, if the window has room. */
  next(): Flight | undefined {
    if (this.paused !== undefined) return undefined;
    for (const flight of this.foremost()) if (flight.writtenAs === 0) return flight;
    return undefined;
  }

  /** The one that waits longest for an answer. */
  oldest(): Flight | undefined {
    for (const flight of this.foremost()) if (flight.writtenAs > 0) return flight;
    return undefined;
  }

  /**
   * A connection answers in order: what was written before this one and is not answered got lost,
   * and goes again. Of one that was written twice nobody knows which time is answered, so it proves
   * nothing.
   */
  answered(proof: Flight): void {
    if (proof.tries !== 1) return;
    for (const flight of this.foremost()) {
      if (flight.writtenAs > 0 && flight.writtenAs < proof.writtenAs) flight.writtenAs = 0;
    }
  }

  /** Everything is to be written again, in order. */
  again(): void {
    this.rest();
    for (const flight of this.flights.values()) flight.writtenAs = 0;
  }

  /** The same, on a connection that has heard nothing yet. */
  anew(): void {
    this.again();
    for (const flight of this.flights.values()) flight.tries = 0;
  }

  rest(): void {
    this.timer?.();
    this.paused?.();
    this.timer = this.paused = undefined;
  }

  private *foremost(): Generator<Flight> {
    let left = this.isCareful ? 1 : this.window;
    for (const flight of this.flights.values()) {
      if (left === 0) return;
      left -= 1;
      yield flight;
    }
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
