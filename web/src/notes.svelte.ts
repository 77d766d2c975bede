import type { Change } from "nexo-sdk";
import { SvelteMap } from "svelte/reactivity";
import { client } from "./session.svelte.ts";

const KEEP = 200;
const NONE: readonly Change[] = [];

/** What happened to groups while this page was open: who came, who went, what it is called now. */
class Notes {
  private readonly byConversation = new SvelteMap<string, readonly Change[]>();
  private readonly recalledBy = new SvelteMap<string, string>();

  constructor() {
    client.on("change", (change) => {
      if (change.kind === "recalled") {
        if (change.serverMsgId) this.recalledBy.set(change.serverMsgId, change.by);
        return;
      }
      if (change.kind === "member_updated") return; // names are not events
      const known = this.of(change.conversationId);
      this.byConversation.set(change.conversationId, [...known, change].slice(-KEEP));
    });
  }

  of(conversationId: string): readonly Change[] {
    return this.byConversation.get(conversationId) ?? NONE;
  }

  /** Who took a message back, if this page has heard it. */
  whoRecalled(serverMsgId: string): string | undefined {
    return this.recalledBy.get(serverMsgId);
  }
}

export const notes = new Notes();
