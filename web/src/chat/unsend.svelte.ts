import type { Message } from "nexo-sdk";
import { SvelteMap } from "svelte/reactivity";
import { limits } from "../limits.ts";
import { client } from "../session.svelte.ts";
import { t } from "../texts/t.svelte.ts";
import { SHOWN_MS, toasts } from "../toasts.svelte.ts";

/** Subtracted from the recall window, for the time to the server. */
const SPARE_MS = 2_000;

/** How long an own message can still be recalled; 0 if it is too late. */
export function unsendMsLeft(message: Message, now: number): number {
  const age = now + limits.clockAheadMs - message.at;
  return Math.max(0, limits.recallMs - SPARE_MS - age);
}

/** Pending recalls. The request is sent when the undo time has passed. */
class Unsends {
  private readonly pending = new SvelteMap<string, ReturnType<typeof setTimeout>>();

  constructor() {
    // Closing the page sends pending recalls at once.
    addEventListener("pagehide", () => {
      for (const id of [...this.pending.keys()]) this.commit(id);
    });
  }

  has(serverMsgId: string): boolean {
    return this.pending.has(serverMsgId);
  }

  /** Recalls a message after the undo time, at the latest in `withinMs`. */
  start({ serverMsgId }: Message, withinMs: number): void {
    if (this.has(serverMsgId)) return;
    const waitMs = Math.min(SHOWN_MS, withinMs);
    this.pending.set(serverMsgId, setTimeout(() => this.commit(serverMsgId), waitMs));
    toasts.show(t.chat.unsent, { text: t.chat.undo, act: () => this.undo(serverMsgId) }, waitMs);
  }

  private undo(serverMsgId: string): void {
    clearTimeout(this.pending.get(serverMsgId));
    this.pending.delete(serverMsgId);
  }

  private commit(serverMsgId: string): void {
    clearTimeout(this.pending.get(serverMsgId));
    void toasts.attempt(() => client.recall(serverMsgId)).finally(() => this.pending.delete(serverMsgId));
  }
}

export const unsends = new Unsends();
