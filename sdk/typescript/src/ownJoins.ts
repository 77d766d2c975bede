import type { Head } from "./conversation.js";
import type { Emitter } from "./events.js";
import type { Http } from "./http.js";
import { type ChangeInfo, changeFromInfo } from "./messages.js";
import type { OnlineStatus } from "./people.js";
import type { Store } from "./storage.js";
import type { Change, Events } from "./types.js";

const CHANGES_PAGE = 200;

/**
 * Emits the user's own `joined` changes of groups that are new on this device. A new conversation skips its
 * earlier changes, and the message cursor does not tell whether the join is news: with `history: "all"` it
 * starts at the newest message. So this compares when the user joined with the newest join that this device
 * knows of.
 */
export class OwnJoins {
  private readonly key: string;
  /** Joins up to this time are no news; loaded once per sign-in. */
  private newsAfter: number | undefined;
  /** The newest join that was stored; 0 for a user without a group. */
  private newest = -1;
  /** Heads to look at; they stay here until their changes could be loaded. */
  private readonly pending = new Map<string, Head>();
  /** The change seq of the last emitted join, by conversation. */
  private readonly emitted = new Map<string, number>();

  constructor(
    private readonly me: string,
    private readonly events: Emitter<Events>,
    private readonly store: Store,
    private readonly http: Http,
  ) {
    this.key = `joins/${me}`;
  }

  /** Records a change that is emitted. */
  note(change: Change): void {
    if (!this.isOwnJoin(change)) return;
    this.emitted.set(change.conversationId, change.changeSeq);
    if (this.newsAfter !== undefined) void this.storeNewest(change.at);
  }

  /** Emits the joins among these heads; `skipped` are those whose changes this device did not receive. */
  async announce(heads: readonly Head[], skipped: readonly Head[]): Promise<void> {
    for (const head of skipped) {
      if (head.joined_at !== undefined && head.is_active) this.pending.set(head.conversation_id, head);
    }
    const newest = Math.max(0, ...heads.map((head) => head.joined_at ?? 0));
    // A user without a group gets news of the first one.
    const newsAfter = (this.newsAfter ??= newest === 0 ? 0 : await this.loadNewsAfter(newest));
    const inOrder = [...this.pending.values()].sort((a, b) => a.joined_at! - b.joined_at!);
    for (const head of inOrder) {
      const join = head.joined_at! > newsAfter ? await this.find(head) : undefined;
      this.pending.delete(head.conversation_id);
      if (join === undefined || this.emitted.get(join.conversationId) === join.changeSeq) continue;
      this.note(join);
      this.events.emit("change", join);
    }
    await this.storeNewest(newest);
  }

  /**
   * The newest join this device knows of. A device without one, such as a new one, starts with the time the
   * user was last online; if the user is online on another device, that one was told.
   */
  private async loadNewsAfter(newest: number): Promise<number> {
    const stored = await this.store.get(this.key);
    if (typeof stored === "number") return stored;
    const body = { user_ids: [this.me] };
    const [own] = await this.http.post<OnlineStatus[]>("/user/get_users_online_status", body);
    return own?.status === 1 ? newest : (own?.last_seen_at ?? 0);
  }

  /** The user's latest join, searched from the newest change back. */
  private async find(head: Head): Promise<Change | undefined> {
    const first = head.min_change_seq - 1;
    for (let end = head.change_seq; end > first; end -= CHANGES_PAGE) {
      const since = Math.max(first, end - CHANGES_PAGE);
      const query = { conversation_id: head.conversation_id, since, limit: end - since };
      const { items } = await this.http.list<ChangeInfo>("/conversation/changes", query);
      const changes = items.map(changeFromInfo).reverse();
      const join = changes.find((change) => this.isOwnJoin(change));
      const isBefore = (changes.at(-1)?.at ?? 0) < head.joined_at!;
      if (join !== undefined || isBefore) return join;
    }
    return undefined;
  }

  private isOwnJoin({ kind, userIds }: Change): boolean {
    return kind === "joined" && userIds.includes(this.me);
  }

  private async storeNewest(at: number): Promise<void> {
    if (at <= this.newest) return;
    this.newest = at;
    await this.store.set(this.key, at);
  }
}
