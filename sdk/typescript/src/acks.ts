import type { Cancel, Clock } from "./clock.js";
import type { Conversation } from "./conversation.js";
import type { ClientFrame } from "./frames.js";
import type { Pace } from "./pace.js";
import type { Message } from "./types.js";

/**
 * Tells the server how far we are: the end of what is here without a hole, and what was read of it.
 * At most once per conversation in a window of time, however much arrives.
 */
export class Acks {
  private readonly waiting = new Set<Conversation>();
  private timer: Cancel | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly windowMs: number,
    private readonly frames: Pace,
    private readonly send: (frame: ClientFrame) => boolean,
  ) {}

  /** There may be something to tell. */
  soon(conversation: Conversation): void {
    this.waiting.add(conversation);
    this.timer ??= this.clock.after(this.windowMs, () => this.flush());
  }

  /** Nobody hears us. What is not told is found by comparing heads. */
  offline(): void {
    this.timer?.();
    this.timer = undefined;
    this.waiting.clear();
  }

  private flush(): void {
    this.timer = undefined;
    for (const conversation of [...this.waiting]) {
      const wait = this.isBehind(conversation) ? this.frames.take() : 0;
      if (wait > 0) {
        this.timer = this.clock.after(wait, () => this.flush());
        return;
      }
      this.waiting.delete(conversation);
      this.tell(conversation);
    }
  }

  private isBehind({ held, ackedDelivered, ackedRead, readForSure }: Conversation): boolean {
    return held.last > ackedDelivered || readForSure > ackedRead;
  }

  private tell(conversation: Conversation): void {
    const { held } = conversation;
    const read = held.at(Math.min(conversation.readForSure, held.last));
    if (read !== undefined && read.seq > conversation.ackedRead && this.ack("read", read)) {
      conversation.ackedRead = read.seq;
      conversation.ackedDelivered = Math.max(conversation.ackedDelivered, read.seq);
    }
    const last = held.at(held.last);
    if (last !== undefined && last.seq > conversation.ackedDelivered && this.ack("delivered", last)) {
      conversation.ackedDelivered = last.seq;
    }
  }

  private ack(ackType: "delivered" | "read", { serverMsgId, seq }: Message): boolean {
    return this.send({ type: "ACK", ackType, serverMsgId, msgSeq: String(seq) });
  }
}
