import { Backoff } from "./backoff.js";
import type { Cancel, Clock } from "./clock.js";
import type { Conversation, Head } from "./conversation.js";
import type { ClientFrame } from "./frames.js";
import type { Http } from "./http.js";
import type { ConversationInfo, Inbox, Mender } from "./inbox.js";
import { type ChangeInfo, changeFromInfo, fromInfo, type MessageInfo } from "./messages.js";
import { isPassing, Refused } from "./refusal.js";
import type { Timing } from "./timing.js";
import type { Change } from "./types.js";

/** Cursors that fit into one frame with room to spare. */
const CURSORS_MAX = 500;
const PAGE = 100;
const HEADS_PAGE = 1000;
const CHANGES_PAGE = 200;
const FEW = 3;
const PULLS_MAX = 4;

interface Pulled {
  messages: MessageInfo[];
  max_seq: number;
  has_more: boolean;
}

/** Finds what is missing, by holes and by comparing heads, and pulls it. */
export class Sync implements Mender {
  private isOnline = false;
  private isAsking = false;
  private asksAgain = false;
  private lastActive = 0;
  private namesAt = 0;
  /** The line was away: what others received and read meanwhile nobody tells us again. */
  private owesReceipts = false;
  private heads: Cancel | undefined;
  private quiet: Cancel | undefined;
  /** A page of what was missed is on its way. */
  private page: Cancel | undefined;
  /** Holes that may close by themselves, and holes that are being pulled. */
  private readonly waiting = new Map<Conversation, Cancel>();
  private readonly pulling = new Set<Conversation>();
  private readonly backoff: Backoff;

  constructor(
    private readonly me: string,
    private readonly http: Http,
    private readonly inbox: Inbox,
    private readonly clock: Clock,
    private readonly timing: Timing,
    private readonly send: (frame: ClientFrame) => boolean,
    private readonly problem: (error: Error) => void,
  ) {
    const { backoffBaseMs: baseMs, backoffMaxMs: maxMs } = timing;
    this.backoff = new Backoff(clock, { baseMs, maxMs });
  }

  /** Before the first connection: the conversations there are. Pushes can then be told from holes. */
  async first(): Promise<void> {
    await this.compare(true);
    await this.learnNames();
  }

  /** After each connection: whatever happened meanwhile, in pages, each device from its own place. */
  online(): void {
    this.isOnline = true;
    void this.run(async () => {
      await this.compare();
      const behind = [...this.inbox.conversations.values()].filter((one) => this.isBehind(one));
      if (behind.length > 0) this.resend({ type: "RESEND", cursors: cursorsOf(behind) });
      // A line that breaks often does not ask for it often, but at the next look.
      const isOld = this.clock.now() - this.namesAt > this.timing.headsEveryMs;
      await (isOld ? this.learnNames() : this.learnNew());
    });
  }

  offline(): void {
    this.isOnline = false;
    this.owesReceipts = true;
    this.asksAgain = false;
    this.heads?.();
    this.quiet?.();
    this.page?.();
    this.heads = this.quiet = this.page = undefined;
    for (const cancel of this.waiting.values()) cancel();
    this.waiting.clear();
  }

  askHeads(): void {
    if (!this.isOnline) return;
    if (this.isAsking) {
      this.asksAgain = true;
      return;
    }
    this.heads?.();
    // Many may ask at once.
    this.heads = this.clock.after(this.timing.gapDelayMs, () => void this.run(() => this.review()));
  }

  active(): void {
    this.lastActive = this.clock.now();
    if (this.isOnline) this.quiet ??= this.clock.after(this.timing.quietMs, () => this.hush());
  }

  pageDone(hasMore: boolean): void {
    this.page?.();
    this.page = undefined;
    if (hasMore) this.resend({ type: "RESEND" });
  }

  hole(conversation: Conversation): void {
    if (!this.isOnline || !conversation.hasBegun || !this.isBehind(conversation)) return;
    if (this.waiting.has(conversation) || this.pulling.has(conversation)) return;
    const at = placeOf(conversation);
    const later = this.clock.after(this.timing.gapDelayMs, () => {
      this.waiting.delete(conversation);
      // While a page of the server closes it there is nothing to do, and not everything at once.
      const isClosing = this.page !== undefined || placeOf(conversation) !== at;
      if (isClosing || this.pulling.size >= PULLS_MAX) this.hole(conversation);
      else void this.fill(conversation);
    });
    this.waiting.set(conversation, later);
  }

  /** Older messages than those that are here. */
  async older(conversation: Conversation, limit: number) {
    const end = conversation.held.first - 1;
    const begin = Math.max(conversation.min, end - limit + 1);
    const found: MessageInfo[] = [];
    while (begin + found.length <= end) {
      const page = await this.pull(conversation, begin + found.length, end);
      if (page.messages[0]?.seq !== begin + found.length) break;
      found.push(...page.messages);
    }
    // Somebody else may have loaded them meanwhile.
    const missing = found.filter(({ seq }) => seq < conversation.held.first);
    if (missing.at(-1)?.seq !== conversation.held.first - 1) return [];
    return conversation.takeOlder(missing.map((info) => fromInfo(info, this.me)));
  }

  /** What happened before a change, or last: the newest of it, oldest first. */
  async changesBefore({ id, changes }: Conversation, before: number | undefined, limit: number): Promise<Change[]> {
    const end = before === undefined ? (changes.hole()?.to ?? changes.last) : before - 1;
    const since = Math.max(0, end - Math.min(limit, CHANGES_PAGE));
    if (end <= 0) return [];
    const query = { conversation_id: id, since, limit: end - since };
    const { items } = await this.http.list<ChangeInfo>("/conversation/changes", query);
    return items.map(changeFromInfo).filter(({ changeSeq }) => changeSeq <= end);
  }

  /** What one is called; nothing is asked if that is known. */
  async learnName(conversation: Conversation): Promise<void> {
    if (conversation.hasInfo) return;
    const query = { conversation_id: conversation.id };
    try {
      this.inbox.hearInfos([await this.http.get<ConversationInfo>("/conversation/info", query)]);
    } catch (error) {
      if (isPassing(error)) throw error;
      conversation.hasInfo = true; // there is none
    }
  }

  /** Asks for a page of what was missed, and gives it time to come. */
  private resend(frame: ClientFrame): void {
    if (!this.send(frame)) return;
    this.page?.();
    this.page = this.clock.after(this.timing.silenceMs, () => {
      this.page = undefined; // the page or its end got lost: holes are pulled
    });
  }

  /** Whether something is missing. Nothing is of a blocked conversation, until it is unblocked. */
  private isBehind({ arrived, changes, receive }: Conversation): boolean {
    if (receive === "blocked") return false;
    return arrived.hole() !== undefined || changes.hole() !== undefined;
  }

  private hush(): void {
    this.quiet = undefined;
    const left = this.lastActive + this.timing.quietMs - this.clock.now();
    if (left > 0) this.quiet = this.clock.after(left, () => this.hush());
    else this.askHeads();
  }

  private async review(): Promise<void> {
    await this.compare();
    await (this.owesReceipts ? this.learnNames() : this.learnNew());
  }

  /** One look at the heads at a time; the next one is planned when it is done. */
  private async run(look: () => Promise<void>): Promise<void> {
    if (this.isAsking) {
      this.asksAgain = true;
      return;
    }
    this.isAsking = true;
    this.heads?.();
    this.heads = undefined;
    let wait = this.timing.headsEveryMs * (0.8 + 0.4 * this.clock.random());
    try {
      await look();
      this.backoff.reset();
    } catch (error) {
      wait = this.waitAfter(error);
    }
    this.isAsking = false;
    if (!this.isOnline) return;
    if (this.asksAgain) {
      this.asksAgain = false;
      this.askHeads();
    } else {
      this.heads ??= this.clock.after(wait, () => void this.run(() => this.review()));
    }
  }

  private async compare(isFirst = false): Promise<void> {
    let cursor: string | undefined;
    do {
      const page = await this.http.get<{ heads: Head[]; has_more: boolean; next_cursor?: string }>(
        "/conversation/heads",
        { limit: HEADS_PAGE, cursor },
      );
      this.inbox.hearHeads(page.heads, isFirst);
      cursor = page.has_more ? page.next_cursor : undefined;
    } while (cursor !== undefined);
  }

  /** It also tells how far others have received and read. */
  private async learnNames(): Promise<void> {
    this.owesReceipts = false;
    const path = "/conversation/all";
    const query = { with_last_message: true, limit: HEADS_PAGE };
    const asked = this.http.get<{ list: ConversationInfo[] }>(path, query);
    const { list } = await asked.catch((error: unknown) => {
      this.owesReceipts = true;
      throw error;
    });
    this.inbox.hearInfos(list);
    this.namesAt = this.clock.now();
    // Beyond the first thousand nobody looks.
    for (const one of this.inbox.conversations.values()) {
      if (one.hasBegun && one.isListed) one.hasInfo = true;
    }
  }

  /** The names of those that are new or have changed; many at once are asked for together. */
  private async learnNew(): Promise<void> {
    const all = [...this.inbox.conversations.values()];
    const nameless = all.filter((one) => one.hasBegun && one.isListed && !one.hasInfo);
    if (nameless.length > FEW) return this.learnNames();
    for (const one of nameless) await this.learnName(one);
  }

  private async fill(conversation: Conversation): Promise<void> {
    if (!this.isOnline || this.pulling.has(conversation)) return;
    this.pulling.add(conversation);
    const at = placeOf(conversation);
    let again = 0;
    try {
      await this.fillMessages(conversation);
      await this.fillChanges(conversation);
      this.backoff.reset();
      // What the server does not give now it does not give in a moment either.
      if (placeOf(conversation) === at) again = this.timing.headsEveryMs;
    } catch (error) {
      again = this.waitAfter(error);
    }
    this.pulling.delete(conversation);
    if (again === 0) this.hole(conversation);
    else this.clock.after(again, () => this.hole(conversation));
  }

  private async fillMessages(conversation: Conversation): Promise<void> {
    const hole = conversation.arrived.hole();
    if (hole === undefined) return;
    for (let { from } = hole; from <= hole.to; from = conversation.arrived.last + 1) {
      const page = await this.pull(conversation, from, hole.to);
      for (const info of page.messages) this.inbox.take(fromInfo(info, this.me));
      if (conversation.arrived.last >= from) continue;
      // Nothing came for the place we asked for: it is not ours to see, or not there.
      conversation.arrived.endsAt(page.max_seq);
      if (page.messages.length > 0) this.askHeads();
      return;
    }
  }

  private async fillChanges(conversation: Conversation): Promise<void> {
    const { changes, id } = conversation;
    while (changes.hole() !== undefined) {
      const from = changes.last;
      const query = { conversation_id: id, since: from, limit: PAGE };
      const { items } = await this.http.list<ChangeInfo>("/conversation/changes", query);
      const first = items[0]?.change_seq;
      if (first === undefined) return changes.endsAt(from);
      changes.skipTo(first - 1); // what was before we came is not ours to see
      for (const info of items) this.inbox.takeChange(changeFromInfo(info));
    }
  }

  private pull(conversation: Conversation, begin: number, end: number): Promise<Pulled> {
    return this.http.get<Pulled>("/msg/pull", {
      conversation_id: conversation.id,
      begin_seq: begin,
      end_seq: end,
      limit: Math.min(PAGE, end - begin + 1),
    });
  }

  /** How long to wait after a failure; what does not pass is the app's to know. */
  private waitAfter(error: unknown): number {
    const told = error instanceof Refused ? error.retryAfterMs : undefined;
    if (!isPassing(error) && error instanceof Error) this.problem(error);
    return isPassing(error) ? Math.max(1, this.backoff.next(told)) : this.timing.headsEveryMs;
  }
}

/** Where each conversation is on this device. */
function cursorsOf(conversations: Conversation[]): Record<string, string> {
  const some = conversations.slice(0, CURSORS_MAX);
  return Object.fromEntries(some.map((one) => [one.id, String(one.arrived.last)]));
}

function placeOf({ arrived, changes }: Conversation): string {
  return `${arrived.last} ${changes.last}`;
}
