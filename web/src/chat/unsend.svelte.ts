import type { Message } from "nexo-sdk";
import { SvelteMap } from "svelte/reactivity";
import { limits } from "../limits.ts";
import { client } from "../session.svelte.ts";
import { t } from "../texts/t.svelte.ts";
import { SHOWN_MS, toasts } from "../toasts.svelte.ts";

/** Kept back from the end of the time one has, for the way to the server. */
const SPARE_MS = 2_000;

/** How long an own message can still be taken back; 0 if it is too late. */
export function unsendMsLeft(message: Message, now: number): number {
  const age = now + limits.aheadMs - message.at;
  return Math.max(0, limits.recallMs - SPARE_MS - age);
}

/** Messages that are being taken back. The server hears of it when nobody can undo it any more. */
class Unsends {
  private readonly pending = new SvelteMap<string, ReturnType<typeof setTimeout>>();

  constructor() {
    // Whoever closes the page has decided.
    addEventListener("pagehide", () => {
      for (const id of [...this.pending.keys()]) this.go(id);
    });
  }

  has(serverMsgId: string): boolean {
    return this.pending.has(serverMsgId);
  }

  /** Takes it back in a moment, at the latest in so many milliseconds. */
  start({ serverMsgId }: Message, withinMs: number): void {
    if (this.has(serverMsgId)) return;
    const waitMs = Math.min(SHOWN_MS, withinMs);
    this.pending.set(serverMsgId, setTimeout(() => this.go(serverMsgId), waitMs));
    toasts.say(t.chat.unsent, { text: t.chat.undo, act: () => this.undo(serverMsgId) }, waitMs);
  }

  private undo(serverMsgId: string): void {
    clearTimeout(this.pending.get(serverMsgId));
    this.pending.delete(serverMsgId);
  }

  private go(serverMsgId: string): void {
    clearTimeout(this.pending.get(serverMsgId));
    void toasts.attempt(() => client.recall(serverMsgId)).finally(() => this.pending.delete(serverMsgId));
  }
}

export const unsends = new Unsends();
