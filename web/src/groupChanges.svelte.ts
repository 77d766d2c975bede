import type { Change } from "nexo-sdk";
import { SvelteMap } from "svelte/reactivity";
import { client } from "./session.svelte.ts";

const PAGE = 200;
/** At most this many are loaded per conversation: more than users scroll back to. */
const CHANGES_MAX = 5_000;
const NONE: readonly Change[] = [];

/** The changes of groups: joins, leaves, new names and the like. */
class GroupChanges {
  private readonly byConversation = new SvelteMap<string, readonly Change[]>();
  private readonly recalledBy = new SvelteMap<string, string>();
  /** The oldest loaded change of each conversation; seq 0 if it is the first one. */
  private readonly oldestLoaded = new Map<string, { seq: number; at: number }>();
  private readonly loading = new Set<string>();

  constructor() {
    client.on("change", (change) => this.add(change.conversationId, [change]));
  }

  of(conversationId: string): readonly Change[] {
    return this.byConversation.get(conversationId) ?? NONE;
  }

  /** Who recalled a message, if known. */
  recalledByUser(serverMsgId: string): string | undefined {
    return this.recalledBy.get(serverMsgId);
  }

  /** Loads the changes since this time, which are shown among the messages. */
  async loadSince(conversationId: string, at: number): Promise<void> {
    if (this.loading.has(conversationId)) return;
    this.loading.add(conversationId);
    try {
      for (;;) {
        const oldest = this.oldestLoaded.get(conversationId);
        const isEnough = oldest !== undefined && (oldest.seq === 0 || oldest.at < at);
        if (isEnough || this.of(conversationId).length >= CHANGES_MAX) return;
        const found = await client.changes(conversationId, oldest?.seq, PAGE);
        const [first] = found;
        const isAll = found.length < PAGE || first === undefined;
        this.oldestLoaded.set(conversationId, isAll ? { seq: 0, at: 0 } : { seq: first.changeSeq, at: first.at });
        this.add(conversationId, found);
      }
    } catch {
      // The next call retries.
    } finally {
      this.loading.delete(conversationId);
    }
  }

  private add(conversationId: string, changes: readonly Change[]): void {
    const known = this.of(conversationId);
    const seen = new Set(known.map(({ changeSeq }) => changeSeq));
    const fresh: Change[] = [];
    for (const change of changes) {
      if (change.kind === "recalled") {
        if (change.serverMsgId) this.recalledBy.set(change.serverMsgId, change.by);
      } else if (change.kind !== "memberUpdated" && !seen.has(change.changeSeq)) {
        fresh.push(change); // a member's new name is not shown
      }
    }
    if (fresh.length === 0) return;
    const all = [...known, ...fresh].sort((a, b) => a.changeSeq - b.changeSeq);
    this.byConversation.set(conversationId, all);
  }
}

export const groupChanges = new GroupChanges();
