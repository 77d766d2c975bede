import type { Cancel, Clock } from "./clock.js";

/** Who is typing. Clients repeat TYPING while typing goes on, so an entry expires when it stops. */
export class Typing {
  private readonly sentAt = new Map<string, number>();
  private readonly expiries = new Map<string, Cancel>();

  constructor(
    private readonly clock: Clock,
    private readonly everyMs: number,
    private readonly onChange: (conversationId: string, userId: string, isTyping: boolean) => void,
  ) {}

  /** Records a TYPING frame if the interval has passed; returns whether to send it. */
  recordSendIfDue(conversationId: string): boolean {
    const now = this.clock.now();
    const last = this.sentAt.get(conversationId);
    if (last !== undefined && now - last < this.everyMs) return false;
    this.sentAt.set(conversationId, now);
    return true;
  }

  /** The message was sent: the next key sends TYPING at once. */
  reset(conversationId: string): void {
    this.sentAt.delete(conversationId);
  }

  start(conversationId: string, userId: string): void {
    const key = `${conversationId} ${userId}`;
    const timer = this.expiries.get(key);
    timer?.();
    const forget = () => this.stop(conversationId, userId);
    this.expiries.set(key, this.clock.after(this.everyMs * 2, forget));
    if (timer === undefined) this.onChange(conversationId, userId, true);
  }

  /** Ends typing: the message came, or the entry expired. */
  stop(conversationId: string, userId: string): void {
    const key = `${conversationId} ${userId}`;
    const timer = this.expiries.get(key);
    if (timer === undefined) return;
    timer();
    this.expiries.delete(key);
    this.onChange(conversationId, userId, false);
  }

  end(): void {
    for (const cancel of this.expiries.values()) cancel();
    this.expiries.clear();
    this.sentAt.clear();
  }
}
