import type { Cancel, Clock } from "./clock.js";

/** Who is writing. Told again and again while somebody writes, so it is forgotten when that stops. */
export class Typing {
  private readonly told = new Map<string, number>();
  private readonly heard = new Map<string, Cancel>();

  constructor(
    private readonly clock: Clock,
    private readonly everyMs: number,
    private readonly tell: (conversationId: string, userId: string, on: boolean) => void,
  ) {}

  /** Whether it is time to tell the others again. */
  mayTell(conversationId: string): boolean {
    const now = this.clock.now();
    const last = this.told.get(conversationId);
    if (last !== undefined && now - last < this.everyMs) return false;
    this.told.set(conversationId, now);
    return true;
  }

  /** What was being written is said: the next word is told at once. */
  said(conversationId: string): void {
    this.told.delete(conversationId);
  }

  hear(conversationId: string, userId: string): void {
    const key = `${conversationId} ${userId}`;
    const known = this.heard.get(key);
    known?.();
    const forget = () => this.stop(conversationId, userId);
    this.heard.set(key, this.clock.after(this.everyMs * 2, forget));
    if (known === undefined) this.tell(conversationId, userId, true);
  }

  /** They have said it, or nothing more is heard. */
  stop(conversationId: string, userId: string): void {
    const key = `${conversationId} ${userId}`;
    const known = this.heard.get(key);
    if (known === undefined) return;
    known();
    this.heard.delete(key);
    this.tell(conversationId, userId, false);
  }

  end(): void {
    for (const cancel of this.heard.values()) cancel();
    this.heard.clear();
    this.told.clear();
  }
}
