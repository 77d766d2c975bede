import type { Cancel, Clock } from "./clock.js";
import type { Conversation } from "./conversation.js";
import type { ClientFrame } from "./frames.js";
import type { RateLimiter } from "./rateLimiter.js";
import type { Message } from "./types.js";

/**
 * Sends our cursors to the server: the last contiguous message and the last read one. At most once per
 * conversation and window of time, however much arrives.
 */
export class Acks {
  private readonly waiting = new Set<Conversation>();
  private timer: Cancel | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly windowMs: number,
    private readonly frameRate: RateLimiter,
    private readonly send: (frame: ClientFrame) => boolean,
  ) {}

  /** Schedules an ACK for this conversation. */
  schedule(conversation: Conversation): void {
    this.waiting.add(conversation);
    this.timer ??= this.clock.after(this.windowMs, () => this.flush());
  }

  /** Drops what is scheduled; comparing heads finds it again after reconnecting. */
  offline(): void {
    this.timer?.();
    this.timer = undefined;
    this.waiting.clear();
  }

  private flush(): void {
    this.timer = undefined;
    for (const conversation of [...this.waiting]) {
      const wait = this.needsAck(conversation) ? this.frameRate.take() : 0;
      if (wait > 0) {
        this.timer = this.clock.after(wait, () => this.flush());
        return;
      }
      this.waiting.delete(conversation);
      this.sendAcks(conversation);
    }
  }

  private needsAck({ messages, ackedDelivered, ackedRead, confirmedRead }: Conversation): boolean {
    return messages.last > ackedDelivered || confirmedRead > ackedRead;
  }

  private sendAcks(conversation: Conversation): void {
    const { messages } = conversation;
    const read = messages.lastReadable(Math.min(conversation.confirmedRead, messages.last));
    if (read !== undefined && read.seq > conversation.ackedRead && this.sendAck("read", read)) {
      conversation.ackedRead = read.seq;
      conversation.ackedDelivered = Math.max(conversation.ackedDelivered, read.seq);
    }
    const last = messages.lastReadable(messages.last);
    if (last !== undefined && last.seq > conversation.ackedDelivered && this.sendAck("delivered", last)) {
      conversation.ackedDelivered = last.seq;
    }
  }

  private sendAck(ackType: "delivered" | "read", { serverMsgId, seq }: Message): boolean {
    return this.send({ type: "ACK", ackType, serverMsgId, msgSeq: String(seq) });
  }
}
