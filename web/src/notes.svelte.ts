import type { Change } from "nexo-sdk";
import { SvelteMap } from "svelte/reactivity";
import { client } from "./session.svelte.ts";

const PAGE = 200;
/** So many are brought for one conversation: more than anybody scrolls back to. */
const MOST = 5_000;
const NONE: readonly Change[] = [];

/** What happened to groups: who came, who went, what it is called now. */
class Notes {
  private readonly byConversation = new SvelteMap<string, readonly Change[]>();
  private readonly recalledBy = new SvelteMap<string, string>();
  /** The oldest change that was brought of each; place 0 if there are none before it. */
  private readonly reached = new Map<string, { seq: number; at: number }>();
  private readonly busy = new Set<string>();

  constructor() {
    client.on("change", (change) => this.take(change.conversationId, [change]));
  }

  of(conversationId: string): readonly Change[] {
    return this.byConversation.get(conversationId) ?? NONE;
  }

  /** Who took a message back, if it is known here. */
  whoRecalled(serverMsgId: string): string | undefined {
    return this.recalledBy.get(serverMsgId);
  }

  /** Brings what happened since this time, to stand among the messages from there on. */
  async reach(conversationId: string, at: number): Promise<void> {
    if (this.busy.has(conversationId)) return;
    this.busy.add(conversationId);
    try {
      for (;;) {
        const reached = this.reached.get(conversationId);
        const isEnough = reached !== undefined && (reached.seq === 0 || reached.at < at);
        if (isEnough || this.of(conversationId).length >= MOST) return;
        const found = await client.changes(conversationId, reached?.seq, PAGE);
        const [first] = found;
        const isAll = found.length < PAGE || first === undefined;
        this.reached.set(conversationId, isAll ? { seq: 0, at: 0 } : { seq: first.changeSeq, at: first.at });
        this.take(conversationId, found);
      }
    } catch {
      // The next look asks again.
    } finally {
      this.busy.delete(conversationId);
    }
  }

  private take(conversationId: string, changes: readonly Change[]): void {
    const known = this.of(conversationId);
    const seen = new Set(known.map(({ changeSeq }) => changeSeq));
    const fresh: Change[] = [];
    for (const change of changes) {
      if (change.kind === "recalled") {
        if (change.serverMsgId) this.recalledBy.set(change.serverMsgId, change.by);
      } else if (change.kind !== "member_updated" && !seen.has(change.changeSeq)) {
        fresh.push(change); // a member's new name is no event
      }
    }
    if (fresh.length === 0) return;
    const all = [...known, ...fresh].sort((a, b) => a.changeSeq - b.changeSeq);
    this.byConversation.set(conversationId, all);
  }
}

export const notes = new Notes();
