import { Backoff } from "./backoff.js";
import type { Cancel, Clock } from "./clock.js";
import type { Conversation, Head } from "./conversation.js";
import type { ClientFrame } from "./frames.js";
import type { Http } from "./http.js";
import type { ConversationInfo, Inbox, GapFiller } from "./inbox.js";
import { type ChangeInfo, changeFromInfo, fromPage, type MessagesPage } from "./messages.js";
import type { OwnJoins } from "./ownJoins.js";
import { isPassing, Refused } from "./refusal.js";
import type { Timing } from "./timing.js";
import type { Change, Message } from "./types.js";

/** This many cursors fit into one frame with room to spare. */
const CURSORS_MAX = 500;
const PAGE = 100;
const HEADS_PAGE = 1000;
const CHANGES_PAGE = 200;
const SINGLE_INFOS_MAX = 3;
const PULLS_MAX = 4;

/** Finds missing messages and changes, by gaps and by comparing heads, and pulls them. */
export class Sync implements GapFiller {
  private isOnline = false;
  private isComparing = false;
  private compareAgain = false;
  private lastActive = 0;
  private infosAt = 0;
  /** Receipts were missed while offline. They are not pushed again; loading the infos brings them. */
  private receiptsMissed = false;
  private headsTimer: Cancel | undefined;
  private quietTimer: Cancel | undefined;
  /** Set while a page of missed messages is expected. */
  private pageTimer: Cancel | undefined;
  /** Gaps that may close by themselves, and gaps that are being pulled. */
  private readonly waiting = new Map<Conversation, Cancel>();
  private readonly pulling = new Set<Conversation>();
  private readonly backoff: Backoff;

  constructor(
    private readonly me: string,
    private readonly http: Http,
    private readonly inbox: Inbox,
    private readonly joins: OwnJoins,
    private readonly clock: Clock,
    private readonly timing: Timing,
    private readonly send: (frame: ClientFrame) => boolean,
    private readonly problem: (error: Error) => void,
  ) {
    const { backoffBaseMs: baseMs, backoffMaxMs: maxMs } = timing;
    this.backoff = new Backoff(clock, { baseMs, maxMs });
  }

  /**
   * Loads the conversations before the first connection: without their heads a push could not be told from a
   * gap.
   */
  async loadConversations(): Promise<void> {
    await this.compareHeads(true);
    await this.loadInfos();
  }

  /** Catches up after each connection, in pages, from this device's own cursors. */
  online(): void {
    this.isOnline = true;
    void this.runComparison(async () => {
      await this.compareHeads();
      const incomplete = [...this.inbox.conversations.values()].filter((one) => this.isBehind(one));
      if (incomplete.length > 0) this.resend({ type: "RESEND", cursors: cursorsOf(incomplete) });
      // On an unstable connection the infos are loaded at the next comparison instead of at each reconnect.
      const isOld = this.clock.now() - this.infosAt > this.timing.headsEveryMs;
      await (isOld ? this.loadInfos() : this.loadMissingInfos());
    });
  }

  offline(): void {
    this.isOnline = false;
    this.receiptsMissed = true;
    this.compareAgain = false;
    this.headsTimer?.();
    this.quietTimer?.();
    this.pageTimer?.();
    this.headsTimer = this.quietTimer = this.pageTimer = undefined;
    for (const cancel of this.waiting.values()) cancel();
    this.waiting.clear();
  }

  scheduleHeads(): void {
    if (!this.isOnline) return;
    if (this.isComparing) {
      this.compareAgain = true;
      return;
    }
    this.headsTimer?.();
    // The delay collects many calls into one comparison.
    this.headsTimer = this.clock.after(this.timing.gapDelayMs, () => void this.runComparison(() => this.refresh()));
  }

  noteActivity(): void {
    this.lastActive = this.clock.now();
    if (this.isOnline) this.quietTimer ??= this.clock.after(this.timing.quietMs, () => this.checkQuiet());
  }

  pageDone(hasMore: boolean): void {
    this.pageTimer?.();
    this.pageTimer = undefined;
    if (hasMore) this.resend({ type: "RESEND" });
  }

  scheduleFill(conversation: Conversation): void {
    if (!this.isOnline || !conversation.hasBegun || !this.isBehind(conversation)) return;
    if (this.waiting.has(conversation) || this.pulling.has(conversation)) return;
    const cursor = cursorOf(conversation);
    const timer = this.clock.after(this.timing.gapDelayMs, () => {
      this.waiting.delete(conversation);
      // Wait while a page is filling the gap, and limit the number of concurrent pulls.
      const isClosing = this.pageTimer !== undefined || cursorOf(conversation) !== cursor;
      if (isClosing || this.pulling.size >= PULLS_MAX) this.scheduleFill(conversation);
      else void this.fill(conversation);
    });
    this.waiting.set(conversation, timer);
  }

  /** Pulls messages older than those on this device. */
  async older(conversation: Conversation, limit: number) {
    const end = conversation.messages.first - 1;
    const begin = Math.max(conversation.minSeq, end - limit + 1);
    const found: Message[] = [];
    while (begin + found.length <= end) {
      const page = await this.pull(conversation, begin + found.length, end);
      const messages = fromPage(page, conversation.id, this.me);
      if (messages[0]?.seq !== begin + found.length) break;
      found.push(...messages);
    }
    // A concurrent call may have loaded them.
    const missing = found.filter(({ seq }) => seq < conversation.messages.first);
    if (missing.at(-1)?.seq !== conversation.messages.first - 1) return [];
    return conversation.prependOlder(missing);
  }

  /** The changes before a change seq, or the latest, oldest first. */
  async changesBefore({ id, changes }: Conversation, before: number | undefined, limit: number): Promise<Change[]> {
    const end = before === undefined ? (changes.gap()?.to ?? changes.last) : before - 1;
    const since = Math.max(0, end - Math.min(limit, CHANGES_PAGE));
    if (end <= 0) return [];
    const query = { conversation_id: id, since, limit: end - since };
    const { items } = await this.http.list<ChangeInfo>("/conversation/changes", query);
    return items.map(changeFromInfo).filter(({ changeSeq }) => changeSeq <= end);
  }

  /** Loads the name, avatar and member count, unless they are loaded. */
  async loadInfo(conversation: Conversation): Promise<void> {
    if (conversation.hasInfo) return;
    const query = { conversation_id: conversation.id };
    try {
      this.inbox.applyInfos([await this.http.get<ConversationInfo>("/conversation/info", query)]);
    } catch (error) {
      if (isPassing(error)) throw error;
      conversation.hasInfo = true; // it does not exist
    }
  }

  /** Requests a page of missed messages and allows it time to arrive. */
  private resend(frame: ClientFrame): void {
    if (!this.send(frame)) return;
    this.pageTimer?.();
    this.pageTimer = this.clock.after(this.timing.silenceMs, () => {
      this.pageTimer = undefined; // the page or its end was lost: gaps are pulled instead
    });
  }

  /** Whether messages or changes are missing. A blocked conversation fetches nothing until it is unblocked. */
  private isBehind({ arrived, changes, receive }: Conversation): boolean {
    if (receive === "blocked") return false;
    return arrived.gap() !== undefined || changes.gap() !== undefined;
  }

  private checkQuiet(): void {
    this.quietTimer = undefined;
    const left = this.lastActive + this.timing.quietMs - this.clock.now();
    if (left > 0) this.quietTimer = this.clock.after(left, () => this.checkQuiet());
    else this.scheduleHeads();
  }

  private async refresh(): Promise<void> {
    await this.compareHeads();
    await (this.receiptsMissed ? this.loadInfos() : this.loadMissingInfos());
  }

  /** One comparison of heads at a time; the next one is scheduled when it is done. */
  private async runComparison(look: () => Promise<void>): Promise<void> {
    if (this.isComparing) {
      this.compareAgain = true;
      return;
    }
    this.isComparing = true;
    this.headsTimer?.();
    this.headsTimer = undefined;
    let wait = this.timing.headsEveryMs * (0.8 + 0.4 * this.clock.random());
    try {
      await look();
      this.backoff.reset();
    } catch (error) {
      wait = this.waitAfter(error);
    }
    this.isComparing = false;
    if (!this.isOnline) return;
    if (this.compareAgain) {
      this.compareAgain = false;
      this.scheduleHeads();
    } else {
      this.headsTimer ??= this.clock.after(wait, () => void this.runComparison(() => this.refresh()));
    }
  }

  private async compareHeads(isFirst = false): Promise<void> {
    const heads: Head[] = [];
    const skipped: Head[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.http.get<{ heads: Head[]; has_more: boolean; next_cursor?: string }>(
        "/conversation/heads",
        { limit: HEADS_PAGE, include_empty: true, cursor },
      );
      skipped.push(...this.inbox.applyHeads(page.heads, isFirst));
      heads.push(...page.heads);
      cursor = page.has_more ? page.next_cursor : undefined;
    } while (cursor !== undefined);
    await this.joins.announce(heads, skipped);
  }

  /** Loads the infos of all conversations. They also bring the cursors of peers. */
  private async loadInfos(): Promise<void> {
    this.receiptsMissed = false;
    const path = "/conversation/all";
    const query = { with_last_message: true, limit: HEADS_PAGE };
    const request = this.http.get<{ list: ConversationInfo[] }>(path, query);
    const { list } = await request.catch((error: unknown) => {
      this.receiptsMissed = true;
      throw error;
    });
    this.inbox.applyInfos(list);
    this.infosAt = this.clock.now();
    // Conversations beyond the first page are treated as loaded.
    for (const one of this.inbox.conversations.values()) {
      if (one.hasBegun && one.isListed) one.hasInfo = true;
    }
  }

  /** Loads the infos of new or changed conversations: one by one, or all if there are many. */
  private async loadMissingInfos(): Promise<void> {
    const all = [...this.inbox.conversations.values()];
    const withoutInfo = all.filter((one) => one.hasBegun && one.isListed && !one.hasInfo);
    if (withoutInfo.length > SINGLE_INFOS_MAX) return this.loadInfos();
    for (const one of withoutInfo) await this.loadInfo(one);
  }

  private async fill(conversation: Conversation): Promise<void> {
    if (!this.isOnline || this.pulling.has(conversation)) return;
    this.pulling.add(conversation);
    const cursor = cursorOf(conversation);
    let retryMs = 0;
    try {
      await this.fillMessages(conversation);
      await this.fillChanges(conversation);
      this.backoff.reset();
      // The server did not return it; an immediate retry would not either.
      if (cursorOf(conversation) === cursor) retryMs = this.timing.headsEveryMs;
    } catch (error) {
      retryMs = this.waitAfter(error);
    }
    this.pulling.delete(conversation);
    if (retryMs === 0) this.scheduleFill(conversation);
    else this.clock.after(retryMs, () => this.scheduleFill(conversation));
  }

  private async fillMessages(conversation: Conversation): Promise<void> {
    const gap = conversation.arrived.gap();
    if (gap === undefined) return;
    for (let { from } = gap; from <= gap.to; from = conversation.arrived.last + 1) {
      const page = await this.pull(conversation, from, gap.to);
      const messages = fromPage(page, conversation.id, this.me);
      for (const message of messages) this.inbox.receive(message);
      if (conversation.arrived.last >= from) continue;
      // Nothing came for the requested seq: the user may not see it, or it does not exist.
      conversation.arrived.lowerExpected(page.max_seq);
      if (messages.length > 0) this.scheduleHeads();
      return;
    }
  }

  private async fillChanges(conversation: Conversation): Promise<void> {
    const { changes, id } = conversation;
    while (changes.gap() !== undefined) {
      const from = changes.last;
      const query = { conversation_id: id, since: from, limit: PAGE };
      const { items } = await this.http.list<ChangeInfo>("/conversation/changes", query);
      const first = items[0]?.change_seq;
      if (first === undefined) return changes.lowerExpected(from);
      changes.skipTo(first - 1); // changes from before the user joined are not visible
      for (const info of items) this.inbox.receiveChange(changeFromInfo(info));
    }
  }

  private async pull(conversation: Conversation, begin: number, end: number): Promise<MessagesPage> {
    const query = { conversation_id: conversation.id, begin_seq: begin, end_seq: end };
    const limit = Math.min(PAGE, end - begin + 1);
    try {
      return await this.http.get<MessagesPage>("/msg/pull", { ...query, limit });
    } catch (error) {
      if (!(error instanceof Refused) || error.reason !== "damaged") throw error;
      // Nothing of the range can be read, and asking again would not help.
      return { messages: [], max_seq: end, has_more: false, damaged: [{ from: begin, to: end }] };
    }
  }

  /** How long to wait after a failure; permanent errors are reported to the app. */
  private waitAfter(error: unknown): number {
    const retryAfterMs = error instanceof Refused ? error.retryAfterMs : undefined;
    if (!isPassing(error) && error instanceof Error) this.problem(error);
    return isPassing(error) ? Math.max(1, this.backoff.next(retryAfterMs)) : this.timing.headsEveryMs;
  }
}

/** The last contiguous seq of each conversation. */
function cursorsOf(conversations: Conversation[]): Record<string, string> {
  const some = conversations.slice(0, CURSORS_MAX);
  return Object.fromEntries(some.map((one) => [one.id, String(one.arrived.last)]));
}

function cursorOf({ arrived, changes }: Conversation): string {
  return `${arrived.last} ${changes.last}`;
}
